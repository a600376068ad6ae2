//! JSON strings: finding their end, their text, writing them.

use std::borrow::Cow;

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    loop {
        let end = plain_end(bytes, start);
        out.extend_from_slice(&bytes[start..end]);
        let Some(byte) = bytes.get(end) else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hexadecimal(byte >> 4), hexadecimal(byte & 15)]);
            }
        }
        start = end + 1;
    }
    out.push(b'"');
}

/// Returns the text of a JSON string that stands with its quotes. Half a surrogate pair becomes
/// U+FFFD.
pub fn decode(raw: &str) -> Cow<'_, str> {
    let inner = raw.strip_prefix('"').unwrap_or(raw);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    match inner.find('\\') {
        None => Cow::Borrowed(inner),
        Some(first) => Cow::Owned(unescape(inner, first)),
    }
}

/// Returns the text of the string whose first quote stands at `start`, and the position after its
/// last one.
pub fn read_string(text: &str, start: usize) -> (Cow<'_, str>, usize) {
    let bytes = text.as_bytes();
    let stop = quote_or_backslash(bytes, start + 1);
    if bytes.get(stop) == Some(&b'"') {
        let plain = text.get(start + 1..stop).unwrap_or_default();
        return (Cow::Borrowed(plain), stop + 1);
    }
    let end = closing_quote(bytes, stop);
    (decode(text.get(start..end).unwrap_or_default()), end)
}

/// Returns whether a key, with its quotes, is `name`.
pub fn key_is(raw: &str, name: &str) -> bool {
    let bytes = raw.as_bytes();
    if bytes.len() == name.len() + 2 && &bytes[1..=name.len()] == name.as_bytes() {
        // A backslash in the key begins an escape, one in the name is itself.
        return !name.contains('\\');
    }
    bytes.len() > name.len() + 2 && bytes.contains(&b'\\') && decode(raw) == name
}

/// Returns the position after the quote that ends the string whose text begins at `position`, or
/// the end of `bytes` when there is none.
pub fn closing_quote(bytes: &[u8], mut position: usize) -> usize {
    loop {
        position = quote_or_backslash(bytes, position);
        match bytes.get(position) {
            None => return bytes.len(),
            Some(b'"') => return position + 1,
            Some(_) => position += 2,
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of the lowest byte of `word` that is `byte`: that byte is zero in the
/// difference, where `x - 1` borrows and `x` had no high bit. A borrow reaches the bytes above, so
/// only the lowest bit is exact.
fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    difference.wrapping_sub(ONES) & !difference & HIGH
}

/// Returns the end of the characters from `position` that stand for themselves in a string, which
/// is a quote, a backslash, a control character or the end of `bytes`. Reads eight bytes at a time.
pub fn plain_end(bytes: &[u8], mut position: usize) -> usize {
    while let Some(chunk) = bytes.get(position..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = equal(word, b'"') | equal(word, b'\\') | control;
        if found != 0 {
            return position + found.trailing_zeros() as usize / 8;
        }
        position += 8;
    }
    while bytes
        .get(position)
        .is_some_and(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\')
    {
        position += 1;
    }
    position
}

fn quote_or_backslash(bytes: &[u8], mut position: usize) -> usize {
    while let Some(chunk) = bytes.get(position..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let found = equal(word, b'"') | equal(word, b'\\');
        if found != 0 {
            return position + found.trailing_zeros() as usize / 8;
        }
        position += 8;
    }
    while bytes
        .get(position)
        .is_some_and(|byte| *byte != b'"' && *byte != b'\\')
    {
        position += 1;
    }
    position
}

fn unescape(inner: &str, first: usize) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    let mut next = Some(first);
    while let Some(backslash) = next {
        text.push_str(&rest[..backslash]);
        let escape = &rest[backslash + 1..];
        let taken = match escape.chars().next() {
            Some('u') => unicode(escape, &mut text),
            Some(letter) => {
                text.push(match letter {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                });
                letter.len_utf8()
            }
            None => 0,
        };
        rest = &escape[taken..];
        next = rest.find('\\');
    }
    text.push_str(rest);
    text
}

/// Pushes the character of `uXXXX`, or of the two that make a pair. Returns the number of bytes
/// that it read.
fn unicode(escape: &str, text: &mut String) -> usize {
    let Some(unit) = code_unit(escape) else {
        text.push(char::REPLACEMENT_CHARACTER);
        return 1;
    };
    let low = escape
        .get(5..)
        .and_then(|rest| rest.strip_prefix('\\'))
        .and_then(code_unit);
    if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (unit, low) {
        let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return 11;
    }
    text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
    5
}

fn code_unit(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())?
}

fn hexadecimal(digit: u8) -> u8 {
    if digit < 10 {
        b'0' + digit
    } else {
        b'a' + digit - 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_escapes_and_pairs() {
        assert_eq!(decode(r#""plain""#), "plain");
        assert_eq!(
            decode(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00z""#),
            "a\"\\/\u{8}\u{c}\n\r\té😀z"
        );
        assert_eq!(decode(r#""\ud83dx\udc00""#), "\u{fffd}x\u{fffd}");
    }

    #[test]
    fn writes_what_it_can_read_back() {
        let text = "a\"\\\u{1}\u{1f}\n\r\té😀\u{7f}";
        let mut out = Vec::new();
        write_string(text, &mut out);
        let written = String::from_utf8(out).unwrap();
        assert_eq!(written, "\"a\\\"\\\\\\u0001\\u001f\\n\\r\\té😀\u{7f}\"");
        assert_eq!(decode(&written), text);
    }

    #[test]
    fn finds_the_end_of_a_string() {
        for text in [
            "",
            "short",
            "exactly8",
            "longer than eight bytes",
            r#"an \\ escaped \" quote, é too"#,
        ] {
            let raw = format!("\"{text}\" rest");
            assert_eq!(closing_quote(raw.as_bytes(), 1), text.len() + 2, "{text}");
        }
        assert_eq!(closing_quote(b"never \\", 0), 7);
    }

    #[test]
    fn finds_what_does_not_stand_for_itself() {
        for plain in [
            "",
            "short",
            "exactly8",
            "longer than eight, with é and \u{7f}",
        ] {
            for next in ["", "\"", "\\", "\n", "\u{1f}", "\0"] {
                let text = format!("{plain}{next}{plain}");
                let expected = if next.is_empty() {
                    text.len()
                } else {
                    plain.len()
                };
                assert_eq!(plain_end(text.as_bytes(), 0), expected, "{text:?}");
            }
        }
        assert_eq!(plain_end(b"a", 7), 7);
    }

    #[test]
    fn compares_keys_by_their_text() {
        assert!(key_is(r#""id""#, "id") && key_is(r#""\u0069d""#, "id"));
        assert!(!key_is(r#""ib""#, "id") && !key_is(r#""idx""#, "id"));
        assert!(
            key_is(r#""a\\n""#, r"a\n") && !key_is(r#""a\n""#, r"a\n") && key_is(r#""a\n""#, "a\n")
        );
    }

    #[test]
    fn reads_a_string_and_goes_on_after_it() {
        for (text, expected, end) in [
            (r#"{"name":1}"#, "name", 7),
            (r#"{"a\"b":1}"#, "a\"b", 7),
            (r#"{"\u0066":1}"#, "f", 9),
            (r#"{"":1}"#, "", 3),
            (r#"{"open"#, "open", 6),
            (r#"{"open\"#, "open", 7),
        ] {
            let (read, after) = read_string(text, 1);
            assert_eq!(read, expected, "{text}");
            assert_eq!(after, end, "{text}");
        }
    }
}
