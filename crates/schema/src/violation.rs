//! Violations of a schema by a document, with their paths.

use std::fmt::Write as _;

use crate::document::Step;

/// Greatest number of characters of a key in a path.
const MAX_KEY_CHARACTERS: usize = 100;
/// Path of the whole document.
const ROOT: &str = "(root)";

/// Violation of a schema by a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the value at fault, as in `items[0].qty`; `(root)` for the whole. A missing or an
    /// unexpected member has a path too. Keys other than letters, digits, `_` and `-`
    /// stand as `["a.b"]`.
    pub field: String,
    /// Message that follows the name of the field, without any of the document's values.
    pub message: String,
}

/// Writes a path, and the member at its end.
pub(crate) fn field(path: &[Step<'_>], member: Option<&str>) -> String {
    let mut field = String::new();
    for step in path {
        match step {
            Step::Member(key) => write_member(key, &mut field),
            Step::Item(index) => {
                let _ = write!(field, "[{index}]");
            }
        }
    }
    if let Some(key) = member {
        write_member(key, &mut field);
    }
    if field.is_empty() {
        ROOT.to_owned()
    } else {
        field
    }
}

fn write_member(key: &str, field: &mut String) {
    let is_plain = !key.is_empty()
        && key
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
    let cut = key
        .char_indices()
        .nth(MAX_KEY_CHARACTERS)
        .map(|(end, _)| format!("{}…", &key[..end]));
    let key = cut.as_deref().unwrap_or(key);
    if is_plain {
        let point = if field.is_empty() { "" } else { "." };
        let _ = write!(field, "{point}{key}");
    } else {
        let mut quoted = Vec::new();
        kanat_json::write_string(key, &mut quoted);
        let _ = write!(field, "[{}]", String::from_utf8_lossy(&quoted));
    }
}

/// Writes a path as a JSON pointer.
pub(crate) fn pointer(path: &[Step<'_>]) -> String {
    let mut pointer = String::new();
    for step in path {
        let _ = match step {
            Step::Member(key) => write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Step::Item(index) => write!(pointer, "/{index}"),
        };
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_paths_as_the_flow_language_does() {
        let member = |key: &'static str| Step::Member(key.into());
        let mut path = vec![member("items"), Step::Item(0)];
        assert_eq!(field(&path, Some("qty")), "items[0].qty");
        assert_eq!(field(&[], None), "(root)");
        assert_eq!(field(&[Step::Item(2)], Some("a")), "[2].a");
        path.extend([
            member("a.b"),
            member(""),
            member("say \"x\""),
            member("größe-1"),
        ]);
        assert_eq!(
            field(&path, None),
            r#"items[0]["a.b"][""]["say \"x\""].größe-1"#
        );
        assert_eq!(pointer(&[member("a/b~c"), Step::Item(3)]), "/a~1b~0c/3");
    }

    #[test]
    fn cuts_long_keys() {
        assert_eq!(
            field(&[], Some(&"k".repeat(1000))).chars().count(),
            MAX_KEY_CHARACTERS + 1
        );
    }
}
