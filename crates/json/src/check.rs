//! Strict checks of a JSON text, with errors by line and column.

use crate::lex::read;

/// Fault of a text that is not JSON. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct JsonError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Fault of a text that is not JSON, by its offset in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub offset: usize,
    pub message: String,
}

impl Fault {
    /// Returns the fault by its line and column in `bytes`, the text that was read.
    pub fn locate(self, bytes: &[u8]) -> JsonError {
        let before = String::from_utf8_lossy(&bytes[..self.offset.min(bytes.len())]);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        JsonError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: self.message,
        }
    }
}

/// Checks that `bytes` are one JSON text (RFC 8259) in UTF-8, nested at most `max_depth` deep.
/// Equal keys pass.
pub fn check(bytes: &[u8], max_depth: usize) -> Result<(), JsonError> {
    check_text(text(bytes)?, max_depth).map_err(|fault| fault.locate(bytes))
}

/// Checks a text as [`check`] does, with the offset of the fault.
pub fn check_text(text: &str, max_depth: usize) -> Result<(), Fault> {
    read(text, max_depth, &mut ())
}

/// Returns `bytes` as text when they are UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let message = "found a byte that is not UTF-8".to_owned();
        Fault {
            offset: error.valid_up_to(),
            message,
        }
        .locate(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, line: usize, column: usize, message: &str) {
        assert_eq!(
            check(text.as_bytes(), 4),
            Err(JsonError {
                line,
                column,
                message: message.to_owned()
            }),
            "{text}"
        );
    }

    #[test]
    fn takes_json() {
        for text in [
            "0",
            " -1.5e+3 ",
            r#""a\u00e9\n""#,
            "[]",
            "{}",
            r#"{"a":[1,{"b":null}],"a":true}"#,
            "1e400",
        ] {
            assert_eq!(check(text.as_bytes(), 4), Ok(()), "{text}");
        }
    }

    #[test]
    fn says_where_it_stops_being_json() {
        refuses("", 1, 1, "found the end, expected a value");
        refuses(
            "{\n  \"a\": 1,\n}",
            3,
            1,
            "found `}`, expected a key in double quotes",
        );
        refuses("{\"é\" 1}", 1, 6, "found `1`, expected `:`");
        refuses(
            "{'a': 1}",
            1,
            2,
            "found `'`, expected a key in double quotes",
        );
        refuses("[1 \"b\"]", 1, 4, "found `\"`, expected `,` or `]`");
        refuses("[1 2]", 1, 4, "found `2`, expected `,` or `]`");
        refuses("[1,]", 1, 4, "found `]`, expected a value");
        refuses("01", 1, 2, "a number with a leading zero");
        refuses("1.", 1, 3, "found the end, expected a digit");
        refuses("nul", 1, 1, "found `n`, expected a value");
        refuses("\"a", 1, 1, "a string that does not end");
        refuses(
            "\"\\x\"",
            1,
            3,
            "found `x`, expected one of the escapes `\"` `\\` `/` `b` `f` `n` `r` `t` `u`",
        );
        refuses("\"\\u12g4\"", 1, 2, "`\\u` without four hexadecimal digits");
        refuses("1 1", 1, 3, "found `1`, expected the end");
        refuses("NaN", 1, 1, "found `N`, expected a value");
        assert_eq!(
            check(b"[\"\xff\"]", 4).map_err(|error| error.column),
            Err(3)
        );
    }

    #[test]
    fn knows_numbers() {
        for number in ["0", "-1.50", "1e400", "12345678901234567890"] {
            assert!(crate::is_number(number), "{number}");
        }
        for other in ["", "-", "01", "1.", "+1", " 1", "1 ", "1,", "0x1", "NaN"] {
            assert!(!crate::is_number(other), "{other}");
        }
    }

    #[test]
    fn bounds_the_depth() {
        assert_eq!(check(b"[[[[1]]]]", 4), Ok(()));
        refuses("[[[[[1]]]]]", 1, 5, "nested deeper than 4 levels");
        let deep = "[".repeat(1_000_000);
        assert!(check(deep.as_bytes(), crate::MAX_DEPTH).is_err());
        let deepest = format!("{}0{}", "[{\"a\":".repeat(64), "}]".repeat(64));
        assert_eq!(check(deepest.as_bytes(), crate::MAX_DEPTH), Ok(()));
        assert!(check(format!("[{deepest}]").as_bytes(), crate::MAX_DEPTH).is_err());
    }
}
