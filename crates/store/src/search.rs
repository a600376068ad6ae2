//! A caller's search text as a `LIKE` pattern.

/// Finds `text` anywhere, without regard to case. To be compared with `LOWER(column) LIKE LOWER($n) ESCAPE '\'`, and
/// only where it is not empty: an empty text has an empty pattern and is meant to find everything.
pub(crate) fn pattern(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c.to_ascii_lowercase());
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_the_text_stand_for_themselves() {
        assert_eq!(pattern("50%_A\\"), "%50\\%\\_a\\\\%");
        assert_eq!(pattern(""), "");
    }
}
