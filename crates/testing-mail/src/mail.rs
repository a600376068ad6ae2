//! A mail as the server received it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Mail that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMail {
    /// Address of the envelope.
    pub from: String,
    /// Addresses of the envelope.
    pub to: Vec<String>,
    /// Decoded (RFC 2047).
    pub subject: String,
    /// Body as it was sent, with `\n` at the ends of lines. Encodings are not undone.
    pub text: String,
    /// Headers and body as they were sent, without the dots of the transfer.
    pub raw: String,
    /// Whether the connection was encrypted.
    pub is_encrypted: bool,
    /// User and password of the login, if there was one.
    pub login: Option<(String, String)>,
}

impl ReceivedMail {
    /// Returns the value of a header in one line, or an empty text.
    pub fn header(&self, name: &str) -> String {
        header(&self.raw, name)
    }
}

/// Returns headers and body.
pub fn parts(raw: &str) -> (&str, &str) {
    raw.split_once("\r\n\r\n").unwrap_or((raw, ""))
}

/// Returns the value of a header in one line, or an empty text.
pub fn header(raw: &str, name: &str) -> String {
    let (headers, _) = parts(raw);
    let joined = headers.replace("\r\n ", " ").replace("\r\n\t", " ");
    let found = joined.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    });
    found.unwrap_or_default()
}

/// Undoes the encoded words in Base64 (RFC 2047) of a header. Blanks between two of them are no
/// part of the text.
pub fn decoded(value: &str) -> String {
    let mut text = String::new();
    let mut separator = "";
    let mut was_encoded = false;
    for word in value.split(' ') {
        let encoded = encoded_word(word);
        let is_encoded = encoded.is_some();
        if !(was_encoded && is_encoded) {
            text.push_str(separator);
        }
        text.push_str(encoded.as_deref().unwrap_or(word));
        separator = " ";
        was_encoded = is_encoded;
    }
    text
}

fn encoded_word(word: &str) -> Option<String> {
    let inner = word.strip_prefix("=?")?.strip_suffix("?=")?;
    let mut parts = inner.splitn(3, '?');
    let is_base64 =
        parts.next()?.eq_ignore_ascii_case("utf-8") && parts.next()?.eq_ignore_ascii_case("b");
    if !is_base64 {
        return None;
    }
    String::from_utf8(STANDARD.decode(parts.next()?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_header_are_joined_and_decoded() {
        let raw = [
            "To: a@example.com",
            "Subject: to",
            " =?utf-8?b?w4c=?=",
            " =?utf-8?b?YcSf?= x",
            "",
            "Text",
        ]
        .join("\r\n");
        assert_eq!(
            header(&raw, "subject"),
            "to =?utf-8?b?w4c=?= =?utf-8?b?YcSf?= x"
        );
        assert_eq!(decoded(&header(&raw, "Subject")), "to Çağ x");
        assert_eq!(header(&raw, "Text"), "");
    }
}
