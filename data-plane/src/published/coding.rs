//! Compression of responses.

use std::io::Write;

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use kanat_model::media_type;
use kanat_net::{Body, body as bodies, quality};

/// Size from which a body is compressed: a shorter one fits one packet.
const MIN_BYTES: u64 = 1 << 10;
/// Size from which a body is compressed on a thread of its own.
const BLOCKING_BYTES: usize = 64 << 10;
/// Fast, and still well ahead of gzip.
const BROTLI_QUALITY: i32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Brotli,
}

/// Content coding that the caller accepts, by `Accept-Encoding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptedCoding(Option<Coding>);

impl AcceptedCoding {
    pub fn of(headers: &HeaderMap) -> Self {
        let mut qualities = Qualities::default();
        for value in headers.get_all(header::ACCEPT_ENCODING) {
            quality::items(value.to_str().unwrap_or_default()).for_each(|item| qualities.add(item));
        }
        Self(qualities.best())
    }

    /// Encodes a response in the preferred coding, if it is large and compressible.
    pub async fn encode(self, response: Response<Body>) -> Response<Body> {
        let (mut parts, body) = response.into_parts();
        let is_long = body
            .size_hint()
            .exact()
            .is_some_and(|length| length >= MIN_BYTES);
        if !is_long || !is_compressible(&parts.headers) {
            return Response::from_parts(parts, body);
        }
        parts
            .headers
            .append(header::VARY, HeaderValue::from_static("accept-encoding"));
        let Some(coding) = self.0 else {
            return Response::from_parts(parts, body);
        };
        let Ok(plain) = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
        else {
            return Response::from_parts(parts, bodies::empty());
        };
        let encoded = if plain.len() > BLOCKING_BYTES {
            let given = plain.clone();
            tokio::task::spawn_blocking(move || coding.encode(&given))
                .await
                .unwrap_or_default()
        } else {
            coding.encode(&plain)
        };
        let Some(encoded) = encoded else {
            return Response::from_parts(parts, bodies::full(plain));
        };
        parts.headers.insert(
            header::CONTENT_ENCODING,
            HeaderValue::from_static(coding.name()),
        );
        Response::from_parts(parts, bodies::full(encoded))
    }
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }

    fn encode(self, plain: &[u8]) -> Option<Bytes> {
        let mut out = Vec::with_capacity(plain.len() / 3);
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(&mut out, Compression::default());
                encoder.write_all(plain).ok()?;
                encoder.finish().ok()?;
            }
            Self::Brotli => {
                let params = BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    ..BrotliEncoderParams::default()
                };
                brotli::BrotliCompress(&mut &plain[..], &mut out, &params).ok()?;
            }
        }
        Some(out.into())
    }
}

/// Quality of each coding; `None` where the header does not name it.
#[derive(Default)]
struct Qualities {
    gzip: Option<u16>,
    brotli: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Qualities {
    fn add(&mut self, item: quality::Item<'_>) {
        let coding = match item.value.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => &mut self.gzip,
            "br" => &mut self.brotli,
            "identity" => &mut self.identity,
            "*" => &mut self.any,
            _ => return,
        };
        *coding = Some(item.quality);
    }

    /// Returns the coding of the highest quality; of two alike, Brotli.
    fn best(&self) -> Option<Coding> {
        let quality = |named: Option<u16>| named.or(self.any).unwrap_or(0);
        let gzip = quality(self.gzip);
        let brotli = quality(self.brotli);
        let (coding, best) = if brotli >= gzip {
            (Coding::Brotli, brotli)
        } else {
            (Coding::Gzip, gzip)
        };
        (best > 0 && best >= self.identity.unwrap_or(0)).then_some(coding)
    }
}

fn is_compressible(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = media_type::essence(content_type).to_ascii_lowercase();
    // Texts of more types than those of JSON and XML shrink: `application/x-ndjson` too.
    let is_text =
        essence.starts_with("text/") || essence.ends_with("json") || essence.ends_with("xml");
    is_text && !headers.contains_key(header::CONTENT_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_says_which_coding_it_wants() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
            AcceptedCoding::of(&headers).0
        };
        for (text, expected) in [
            ("gzip, deflate, br", Some(Coding::Brotli)),
            ("gzip", Some(Coding::Gzip)),
            ("br;q=0.5, gzip;q=0.8", Some(Coding::Gzip)),
            ("*", Some(Coding::Brotli)),
            ("*;q=0.1, br;q=0", Some(Coding::Gzip)),
            ("gzip;q=0", None),
            ("identity, gzip;q=0.5", None),
            ("gzip;q=x", None),
            ("deflate", None),
            ("", None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(AcceptedCoding::of(&HeaderMap::new()), AcceptedCoding(None));
    }

    #[tokio::test]
    async fn only_what_is_long_and_text_is_compressed() {
        let of = async |length: usize, content_type: &'static str| {
            let mut response = Response::new(bodies::full(vec![b'a'; length]));
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            let response = AcceptedCoding(Some(Coding::Brotli)).encode(response).await;
            let length = response.body().size_hint().exact().unwrap();
            (
                response.headers().contains_key(header::CONTENT_ENCODING),
                length,
            )
        };
        assert_eq!(of(1000, "application/json").await, (false, 1000));
        assert_eq!(of(10_000, "image/png").await, (false, 10_000));
        for length in [10_000, 100_000] {
            let (encoded, length) = of(length, "application/json; charset=utf-8").await;
            assert!(encoded && length < 200, "{length}");
        }
    }
}
