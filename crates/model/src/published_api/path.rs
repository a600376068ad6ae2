//! The path of a published API: segments joined by `/`, some of them parameters in braces.

use crate::published_api::version_number;

/// A path that consumers can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
}

/// Kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'p> {
    /// Matches itself.
    Literal(&'p str),
    /// Matches any one segment; its name.
    Parameter(&'p str),
}

/// The first segments that the service keeps for itself; `v` and a number are kept too.
pub const RESERVED: &[&str] = &[
    "api", "webhooks", "inbound", "health", "ready", "metrics", "mcp",
];

const MAX_BYTES: usize = 500;
const MAX_SEGMENTS: usize = 32;

impl Path {
    /// Reads a path, with or without a `/` in front. Errors say what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('/').unwrap_or(text);
        if text.is_empty() {
            return Err("must not be empty: give a path such as orders or orders/{id}".to_owned());
        }
        if text.len() > MAX_BYTES || text.split('/').count() > MAX_SEGMENTS {
            return Err(format!(
                "has more than {MAX_BYTES} bytes or {MAX_SEGMENTS} segments"
            ));
        }
        let mut parameters: Vec<&str> = Vec::new();
        for (at, segment) in text.split('/').enumerate() {
            match read(segment)? {
                Segment::Parameter(name) if parameters.contains(&name) => {
                    return Err(format!("has the parameter {name:?} twice"));
                }
                Segment::Parameter(name) => parameters.push(name),
                Segment::Literal(literal) if at == 0 && is_reserved(literal) => {
                    return Err(format!(
                        "begins with {literal:?}, which the service keeps for itself"
                    ));
                }
                Segment::Literal(_) => {}
            }
        }
        Ok(Self {
            text: text.to_owned(),
        })
    }

    /// The path without a `/` in front.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text that all paths have in common that match the same requests: parameters
    /// without their names.
    pub fn shape(&self) -> String {
        let segments: Vec<&str> = self
            .segments()
            .map(|segment| match segment {
                Segment::Literal(literal) => literal,
                Segment::Parameter(_) => "{}",
            })
            .collect();
        segments.join("/")
    }

    /// The segments in their order.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.text
            .split('/')
            .map(|segment| read(segment).unwrap_or(Segment::Literal(segment)))
    }

    /// The names of its parameters, in their order.
    pub fn parameters(&self) -> Vec<&str> {
        let names = self.segments().filter_map(|segment| match segment {
            Segment::Literal(_) => None,
            Segment::Parameter(name) => Some(name),
        });
        names.collect()
    }
}

/// Returns whether a path that begins with this segment cannot be published.
fn is_reserved(segment: &str) -> bool {
    RESERVED.contains(&segment) || is_version(segment)
}

/// `v` and digits, whatever number they make.
fn is_version(segment: &str) -> bool {
    let digits = segment.strip_prefix('v').unwrap_or_default();
    version_number(segment).is_some()
        || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn read(segment: &str) -> Result<Segment<'_>, String> {
    if let Some(name) = segment
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        return if begins
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            Ok(Segment::Parameter(name))
        } else {
            Err(format!(
                "has the parameter {segment:?}, whose name is not a letter followed by letters, \
                 digits, _ and -"
            ))
        };
    }
    if segment.is_empty() {
        return Err("has an empty segment".to_owned());
    }
    if segment == "." || segment == ".." {
        return Err(format!(
            "has the segment {segment:?}, which no caller can send"
        ));
    }
    match segment
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"-._~!$&'()*+,;=:@".contains(*c))
    {
        Some('{' | '}') => Err(format!(
            "has braces in {segment:?}: a parameter is a segment of its own, as in {{id}}"
        )),
        Some(other) => Err(format!(
            "has {other:?} in {segment:?}, which cannot stand in a path"
        )),
        None => Ok(Segment::Literal(segment)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_segments_and_parameters() {
        let path = Path::parse("/orders/{order_id}/lines/{n}").unwrap();
        assert_eq!(path.as_str(), "orders/{order_id}/lines/{n}");
        assert_eq!(path.shape(), "orders/{}/lines/{}");
        assert_eq!(path.parameters(), ["order_id", "n"]);
        let segments: Vec<_> = path.segments().take(2).collect();
        assert_eq!(
            segments,
            [Segment::Literal("orders"), Segment::Parameter("order_id")]
        );
        for good in [
            "orders",
            "a.b/c-d/~x",
            "{tenant}/orders",
            "versions",
            "v",
            "v2x",
            "orders/v1",
            "orders/api",
            "Api",
        ] {
            assert!(Path::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn paths_that_match_the_same_requests_have_one_shape() {
        let shape = |text: &str| Path::parse(text).unwrap().shape();
        assert_eq!(shape("orders/{id}"), shape("/orders/{order}"));
        assert_ne!(shape("orders/{id}"), shape("orders/latest"));
        assert_ne!(shape("orders"), shape("Orders"));
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, expect) in [
            ("", "empty"),
            ("/", "empty"),
            ("a//b", "empty segment"),
            ("a/", "empty segment"),
            ("//a", "empty segment"),
            ("a/../b", "no caller"),
            ("a b", "' '"),
            ("a?b", "'?'"),
            ("a%20b", "'%'"),
            ("bestellung/ä", "'ä'"),
            ("a/{}", "parameter"),
            ("a/{1x}", "parameter"),
            ("a/x{id}", "braces"),
            ("a/{id}/{id}", "twice"),
            ("v1/orders", "\"v1\""),
            ("v007", "\"v007\""),
            ("api/orders", "\"api\""),
            ("webhooks", "\"webhooks\""),
            ("inbound/x", "\"inbound\""),
            ("health", "\"health\""),
            ("ready", "\"ready\""),
            ("metrics", "\"metrics\""),
            ("mcp", "\"mcp\""),
        ] {
            let said = Path::parse(text).unwrap_err();
            assert!(said.contains(expect), "{text}: {said}");
        }
        assert!(Path::parse(&"a".repeat(501)).is_err());
        assert!(Path::parse(&vec!["a"; 33].join("/")).is_err());
    }
}
