//! Paths of published APIs, such as `orders/{id}/lines`, and of requests.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Maximum number of segments of a path.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Path of a published API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Static(String),
    /// Matches any one segment that is not empty.
    Parameter(String),
}

impl Path {
    /// Parses the text of a path.
    ///
    /// # Errors
    /// The text is no path; the error is for an operator.
    pub fn parse(text: &str) -> Result<Self, String> {
        let segments: Vec<Segment> = text.split('/').map(segment).collect::<Result<_, _>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err(format!(
                "the path {text:?} has more than {MAX_SEGMENTS} segments"
            ));
        }
        Ok(Self { segments })
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the names and values of the parameters, for a request whose path this one matches.
    pub fn parameters<'p, 'r>(
        &'p self,
        segments: &'r [Cow<'r, str>],
    ) -> impl Iterator<Item = (&'p str, &'r str)> + use<'p, 'r> {
        self.segments
            .iter()
            .zip(segments)
            .filter_map(|(own, given)| match own {
                Segment::Static(_) => None,
                Segment::Parameter(name) => Some((name.as_str(), given.as_ref())),
            })
    }
}

fn segment(text: &str) -> Result<Segment, String> {
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let braced = |text: &str| text.contains(['{', '}']);
    match inner {
        Some(name) if name.is_empty() || braced(name) => {
            Err(format!("{text:?} is no parameter of a path"))
        }
        Some(name) => Ok(Segment::Parameter(name.to_owned())),
        None if text.is_empty() => Err("a path has no empty segments".to_owned()),
        None if braced(text) => Err(format!("the segment {text:?} of a path has braces within")),
        None => match percent_decode_str(text).decode_utf8() {
            Ok(decoded) if !decoded.contains(['/', '{', '}']) => {
                Ok(Segment::Static(decoded.into_owned()))
            }
            Ok(_) | Err(_) => Err(format!(
                "the segment {text:?} of a path is not UTF-8, or has a slash or a \
                 brace, after decoding"
            )),
        },
    }
}

/// Path of a request: the version that it names, and its segments, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestPath<'r> {
    pub version: Option<u32>,
    pub segments: Vec<Cow<'r, str>>,
}

impl<'r> RequestPath<'r> {
    /// `None` for a path that no API can have.
    pub fn parse(path: &'r str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (version, rest) = match path
            .split_once('/')
            .map(|(first, rest)| (version(first), rest))
        {
            Some((Some(version), rest)) => (Some(version), rest),
            Some((None, _)) | None => (None, path),
        };
        let mut segments = Vec::with_capacity(8);
        for segment in rest.split('/') {
            if segment.is_empty() || segments.len() == MAX_SEGMENTS {
                return None;
            }
            segments.push(percent_decode_str(segment).decode_utf8().ok()?);
        }
        Some(Self { version, segments })
    }
}

/// Returns the number in a segment such as `v2`.
fn version(segment: &str) -> Option<u32> {
    let digits = segment.strip_prefix('v')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(path: &str) -> Option<(Option<u32>, Vec<String>)> {
        let RequestPath { version, segments } = RequestPath::parse(path)?;
        Some((version, segments.into_iter().map(Cow::into_owned).collect()))
    }

    #[test]
    fn takes_the_version_off_and_decodes_segments_one_by_one() {
        let of = |version, segments: &[&str]| {
            Some((version, segments.iter().map(|s| (*s).to_owned()).collect()))
        };
        assert_eq!(
            requested("/v1/orders/a%2Fb%20c"),
            of(Some(1), &["orders", "a/b c"])
        );
        assert_eq!(requested("/orders"), of(None, &["orders"]));
        assert_eq!(requested("/v10/x"), of(Some(10), &["x"]));
        for unversioned in ["/v01/x", "/v/x", "/v0/x", "/vx/x", "/V1/x"] {
            assert_eq!(requested(unversioned).unwrap().0, None, "{unversioned}");
        }
        // It is all of the path, so it is no version of anything.
        assert_eq!(requested("/v1"), of(None, &["v1"]));
        for nothing in ["", "/", "/v1/", "/a//b", "/a/", "/%ff"] {
            assert_eq!(requested(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn parameters_get_the_segments_in_their_places() {
        let path = Path::parse("orders/{id}/lines/{line}").unwrap();
        let requested = RequestPath::parse("/orders/7/lines/a%2Fb").unwrap();
        let parameters: Vec<_> = path.parameters(&requested.segments).collect();
        assert_eq!(parameters, [("id", "7"), ("line", "a/b")]);
        for wrong in ["", "a//b", "{}", "a{b}", "{a{b}}", "/a", "a/", "%2f", "%ff"] {
            assert!(Path::parse(wrong).is_err(), "{wrong}");
        }
    }
}
