//! Media types of content (RFC 9110, section 8.3.1).

/// Returns the type and subtype of a content type, without its parameters.
pub fn essence(content_type: &str) -> &str {
    let end = content_type.find(';').unwrap_or(content_type.len());
    content_type[..end].trim()
}

/// Returns whether a content type is one of JSON: `application/json`, `text/json`, or a type with
/// the suffix `+json` (RFC 6839, section 3.1). Case and parameters make no difference.
///
/// Browsers take the same types as JSON (WHATWG MIME Sniffing, section 4.6).
pub fn is_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    let suffix = essence.as_bytes().last_chunk();
    essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("text/json")
        || suffix.is_some_and(|suffix: &[u8; 5]| suffix.eq_ignore_ascii_case(b"+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_two_names_and_a_suffix() {
        for json in [
            "application/json",
            "Application/JSON ; charset=utf-8",
            "text/json",
            "application/problem+json",
            "Model/Gltf+Json;v=2",
        ] {
            assert!(is_json(json), "{json}");
        }
    }

    #[test]
    fn names_with_json_in_them_may_be_other_formats() {
        for other in [
            "",
            "json",
            "model/json",
            "application/x-ndjson",
            "application/json5",
            "application/json-seq",
            "text/plain; profile=+json",
            "application/json, text/html",
        ] {
            assert!(!is_json(other), "{other}");
        }
    }

    #[test]
    fn an_essence_ends_before_the_parameters() {
        assert_eq!(essence(" text/CSV ;charset=utf-8;a"), "text/CSV");
        assert_eq!(essence("text/csv"), "text/csv");
        assert_eq!(essence(""), "");
    }
}
