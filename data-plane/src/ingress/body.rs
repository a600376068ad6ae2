//! Reads the body of a request and decodes its content encoding within its bounds.

use std::future::poll_fn;
use std::io::Read;
use std::pin::Pin;
use std::task::Poll;

use brotli::Decompressor;
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, header};
use http_body::Frame;
use kanat_net::body::{BoxError, IncomingBody, TooSlow};

use crate::admission::{Admission, BodyReservation, Holders, NoRoom, Waiting};

/// Size up to which a body is copied rather than kept as a slice of the read buffer, in bytes.
const MAX_COPIED_BYTES: usize = 8 << 10;

/// Buffer size of the Brotli decoder, in bytes.
const BROTLI_BUFFER: usize = 4 << 10;

/// Reason why a body is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("content encoding {0:?} is not supported: gzip, br and identity are")]
    Encoding(String),
    #[error("the body is not valid {0}")]
    Undecodable(&'static str),
    #[error("the body broke off")]
    Broken,
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
}

/// Origin of a body, and the admission that bounds it.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub admission: &'a Admission,
    pub holders: Holders<'a>,
}

/// Returns the decoded body. The limit of `reservation` bounds its bytes on the wire and decoded.
pub(super) async fn read<B: IncomingBody>(
    headers: &HeaderMap,
    body: B,
    reservation: &mut BodyReservation,
    source: Source<'_>,
) -> Result<Bytes, BodyError> {
    let coding = coding(headers)?;
    let raw = collect(body, reservation, source).await?;
    match coding {
        Coding::Identity => Ok(raw),
        Coding::Gzip => expand("gzip", MultiGzDecoder::new(raw.as_ref()), reservation),
        Coding::Brotli => expand(
            "br",
            Decompressor::new(raw.as_ref(), BROTLI_BUFFER),
            reservation,
        ),
    }
}

/// Collects the frames of a body. Most bodies have one.
async fn collect<B: IncomingBody>(
    body: B,
    reservation: &mut BodyReservation,
    source: Source<'_>,
) -> Result<Bytes, BodyError> {
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut waiting = None;
    while let Some(frame) =
        frame(body.as_mut(), first.len() + all.len(), &mut waiting, source).await?
    {
        // Trailers follow the data.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let size = first.len() + all.len() + data.len();
        reservation.grow(size)?;
        if let Some(waiting) = &mut waiting {
            waiting.grow(size)?;
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    if !all.is_empty() {
        return Ok(all.freeze());
    }
    // A short slice would keep the entire read buffer of the connection while its message waits.
    Ok(if first.len() < MAX_COPIED_BYTES {
        Bytes::copy_from_slice(&first)
    } else {
        first
    })
}

/// Returns the next frame of a body of which `size` bytes were read. A body that is not ready takes
/// of the shares of its holders from then on.
async fn frame<'a, B: IncomingBody>(
    mut body: Pin<&mut B>,
    size: usize,
    waiting: &mut Option<Waiting<'a>>,
    source: Source<'a>,
) -> Result<Option<Frame<Bytes>>, BodyError> {
    let mut was_asked = false;
    let frame = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
        Poll::Ready(frame) => Poll::Ready(Ok(frame)),
        Poll::Pending => {
            if !was_asked {
                // Most bodies are ready when they are polled.
                was_asked = true;
                cx.waker().wake_by_ref();
            } else if waiting.is_none() {
                match source.admission.wait(source.holders, size) {
                    Ok(share) => *waiting = Some(share),
                    Err(full) => return Poll::Ready(Err(full)),
                }
            }
            Poll::Pending
        }
    });
    frame
        .await?
        .transpose()
        .map_err(|error| broken(error.into()))
}

fn broken(error: BoxError) -> BodyError {
    error
        .downcast_ref::<TooSlow>()
        .map_or(BodyError::Broken, |slow| BodyError::TooSlow(*slow))
}

#[derive(Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Brotli,
}

fn coding(headers: &HeaderMap) -> Result<Coding, BodyError> {
    let mut found = Coding::Identity;
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let text = value.to_str().unwrap_or("unreadable");
        for name in text.split(',').map(str::trim) {
            match name.to_ascii_lowercase().as_str() {
                "" | "identity" => {}
                "gzip" | "x-gzip" if found == Coding::Identity => found = Coding::Gzip,
                "br" if found == Coding::Identity => found = Coding::Brotli,
                _ => return Err(BodyError::Encoding(text.to_owned())),
            }
        }
    }
    Ok(found)
}

fn expand(
    name: &'static str,
    decoder: impl Read,
    reservation: &mut BodyReservation,
) -> Result<Bytes, BodyError> {
    // The decoded size is unknown: memory for the limit is reserved during decoding.
    reservation.grow(reservation.limit())?;
    let bound = u64::try_from(reservation.limit())
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut out = Vec::new();
    decoder
        .take(bound)
        .read_to_end(&mut out)
        .map_err(|_| BodyError::Undecodable(name))?;
    reservation.grow(out.len())?;
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;
    use kanat_model::id::FlowId;
    use std::io::Write;
    use std::sync::LazyLock;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(plain: &[u8]) -> Vec<u8> {
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 9, 22);
        encoder.write_all(plain).unwrap();
        encoder.into_inner()
    }

    fn source(admission: &Admission) -> Source<'_> {
        static FLOW: LazyLock<FlowId> = LazyLock::new(|| FlowId::from("flw_1"));
        Source {
            admission,
            holders: Holders {
                flow: &FLOW,
                peer: None,
            },
        }
    }

    async fn taken(
        encoding: &'static str,
        body: Vec<u8>,
        limit: usize,
    ) -> Result<Bytes, BodyError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        let admission = Admission::new(limit, 0);
        read(
            &headers,
            kanat_net::body::full(body),
            &mut admission.admit(None).unwrap(),
            source(&admission),
        )
        .await
    }

    #[tokio::test]
    async fn gzip_and_br_are_undone_and_identity_left() {
        assert_eq!(taken("gzip", gzip(b"{}"), 100).await.unwrap(), "{}");
        assert_eq!(taken("br", brotli(b"{}"), 100).await.unwrap(), "{}");
        assert_eq!(taken("identity", b"{}".to_vec(), 2).await.unwrap(), "{}");
    }

    #[tokio::test]
    async fn pieces_are_put_together_up_to_the_limit() {
        let pieces = |count: usize| {
            let frames = (0..count).map(|_| {
                Ok::<_, BoxError>(http_body::Frame::data(Bytes::from_static(b"0123456789")))
            });
            http_body_util::StreamBody::new(futures::stream::iter(frames))
        };
        let admission = Admission::new(30, 0);
        let mut reservation = admission.admit(None).unwrap();
        let source = source(&admission);
        let headers = HeaderMap::new();
        assert_eq!(
            read(&headers, pieces(3), &mut reservation, source)
                .await
                .unwrap(),
            "0123456789".repeat(3)
        );
        assert_eq!(
            read(&headers, pieces(4), &mut reservation, source).await,
            Err(NoRoom::TooLarge { limit: 30 }.into())
        );
    }

    #[tokio::test]
    async fn a_small_body_that_swells_past_the_limit_is_refused() {
        let blank = vec![b' '; 10 << 20];
        for (name, bomb) in [("gzip", gzip(&blank)), ("br", brotli(&blank))] {
            assert!(bomb.len() < 1 << 16);
            assert_eq!(
                taken(name, bomb, 1 << 16).await,
                Err(NoRoom::TooLarge { limit: 1 << 16 }.into())
            );
        }
    }

    #[tokio::test]
    async fn broken_encodings_and_others_are_refused() {
        let mut cut = gzip(b"hello hello hello");
        cut.truncate(cut.len() - 5);
        assert_eq!(
            taken("gzip", cut, 100).await,
            Err(BodyError::Undecodable("gzip"))
        );
        assert_eq!(
            taken("gzip", b"plain".to_vec(), 100).await,
            Err(BodyError::Undecodable("gzip"))
        );
        assert_eq!(
            taken("br", b"plain".to_vec(), 100).await,
            Err(BodyError::Undecodable("br"))
        );
        assert_eq!(
            taken("zstd", b"x".to_vec(), 100).await,
            Err(BodyError::Encoding("zstd".to_owned()))
        );
        assert_eq!(
            taken("gzip, gzip", b"x".to_vec(), 100).await,
            Err(BodyError::Encoding("gzip, gzip".to_owned()))
        );
    }
}
