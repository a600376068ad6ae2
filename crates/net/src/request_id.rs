//! Id of a request: taken from the caller or generated, and returned with the response.

use http::{HeaderMap, HeaderName, HeaderValue};
use kanat_model::id::RequestId;

/// The header that carries the id, in both directions.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Length of the longest id that is taken from a caller.
const MAX_LENGTH: usize = 128;

/// Returns the caller's id when it is 1 to 128 visible ASCII characters, else a new one.
pub fn of(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(HEADER).filter(|value| {
        let bytes = value.as_bytes();
        (1..=MAX_LENGTH).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    });
    given.cloned().unwrap_or_else(|| {
        HeaderValue::from_str(RequestId::generate().as_str())
            .unwrap_or(HeaderValue::from_static("req_0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_sound_id_and_makes_one_otherwise() {
        let of = |value: &str| {
            let value = HeaderValue::from_str(value).unwrap();
            of(&HeaderMap::from_iter([(HEADER, value)]))
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(of("abc-1"), "abc-1");
        for unsound in ["", "a b", &"x".repeat(129)] {
            assert!(of(unsound).starts_with("req_"), "{unsound}");
        }
    }
}
