//! Strict percent-decoding: half an escape or invalid UTF-8 is an error.

use percent_encoding::percent_decode_str;

/// Decodes a text. Returns `None` when `%` is not followed by two hexadecimal digits, or the bytes
/// are not UTF-8.
pub(crate) fn decode(text: &str) -> Option<String> {
    let escapes_are_whole = text.as_bytes().split(|&b| b == b'%').skip(1).all(|after| {
        let digits = after.get(..2).unwrap_or_default();
        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
    });
    escapes_are_whole
        .then(|| percent_decode_str(text).decode_utf8().ok())
        .flatten()
        .map(Into::into)
}

/// Decodes a text of a form or a query, where `+` is a space.
pub(crate) fn decode_query(text: &str) -> Option<String> {
    decode(&text.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_half_an_escape() {
        assert_eq!(decode("a%2Fb%C3%A4").as_deref(), Some("a/bä"));
        assert_eq!(decode_query("a+b%2B").as_deref(), Some("a b+"));
        for broken in ["%", "%2", "a%zz", "%C3", "%%20"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
