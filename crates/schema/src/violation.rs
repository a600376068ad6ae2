//! What a document has wrong by its schema, and where.

use std::fmt::Write as _;

/// A key in a path is cut after so many characters.
const MAX_KEY: usize = 100;

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of what is wrong, as in `items[0].qty`; `(root)` for the whole. A missing member is named as the member,
    /// an unexpected one too. Keys other than letters, digits, `_` and `-` stand as `["a.b"]`.
    pub field: String,
    /// Words that follow the name of the field, without any of the document's values.
    pub message: String,
}

/// A path that is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Field(String);

impl Field {
    pub(crate) fn member(&mut self, key: &str) {
        let plain =
            !key.is_empty() && key.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
        let key = match key.char_indices().nth(MAX_KEY) {
            Some((end, _)) => format!("{}…", &key[..end]),
            None => key.to_owned(),
        };
        if !plain {
            let mut quoted = Vec::new();
            kanat_json::write_string(&key, &mut quoted);
            let _ = write!(self.0, "[{}]", String::from_utf8_lossy(&quoted));
            return;
        }
        if !self.0.is_empty() {
            self.0.push('.');
        }
        self.0.push_str(&key);
    }

    pub(crate) fn index(&mut self, index: usize) {
        let _ = write!(self.0, "[{index}]");
    }

    pub(crate) fn finish(self) -> String {
        if self.0.is_empty() { "(root)".to_owned() } else { self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_paths_as_the_flow_language_does() {
        let mut field = Field::default();
        assert_eq!(field.clone().finish(), "(root)");
        field.member("items");
        field.index(0);
        field.member("qty");
        assert_eq!(field.clone().finish(), "items[0].qty");
        field.member("a.b");
        field.member("");
        field.member("say \"x\"");
        field.member("größe-1");
        assert_eq!(field.finish(), r#"items[0].qty["a.b"][""]["say \"x\""].größe-1"#);
    }

    #[test]
    fn cuts_long_keys() {
        let mut field = Field::default();
        field.member(&"k".repeat(1000));
        assert_eq!(field.finish().chars().count(), MAX_KEY + 1);
    }
}
