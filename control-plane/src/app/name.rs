//! Names, texts and code that people give to resources.

use kanat_model::{Error, Result};

const MAX_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 10_000;

/// A name without the white space around it. Errors name `field`.
pub fn check(field: &str, name: &str) -> Result<String> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::field(field, "must not be empty"));
    }
    if name.chars().count() > MAX_CHARS {
        return Err(Error::field(
            field,
            format!("has more than {MAX_CHARS} characters"),
        ));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::field(field, "must not contain control characters"));
    }
    Ok(name.to_owned())
}

/// A description or another text for people, as it is. Errors name `field`.
pub fn check_text(field: &str, text: String) -> Result<String> {
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(Error::field(
            field,
            format!("has more than {MAX_TEXT_CHARS} characters"),
        ));
    }
    // PostgreSQL cannot store it, and nobody types it.
    if text.contains('\0') {
        return Err(Error::field(field, "must not contain a NUL character"));
    }
    Ok(text)
}

/// Code or an expression, as it is, of at most `max` bytes. Errors name `field`.
pub fn check_code(field: &str, text: String, max: usize) -> Result<String> {
    let fault = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.len() > max {
        format!("has {} bytes; it may have {max}", text.len())
    } else if text.contains('\0') {
        "must not contain a NUL character".to_owned()
    } else {
        return Ok(text);
    };
    Err(Error::field(field, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_and_refuses_what_cannot_be_read() {
        assert_eq!(check("name", " orders ").unwrap(), "orders");
        for wrong in ["", "  ", "a\nb", &"x".repeat(201)] {
            assert_eq!(
                check("name", wrong).unwrap_err().details[0].field,
                "name",
                "{wrong:?}"
            );
        }
    }
}
