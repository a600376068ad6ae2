//! The path of the field in which a text stops being JSON.

use std::ops::Range;

use kanat_json::{Kind, MAX_DEPTH, Visitor};

use super::unescape;
use crate::field;

/// Returns the path of the field in which `bytes` stop being JSON; `body` at the root.
pub(super) fn fault_path(bytes: &[u8]) -> String {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut path = OpenPath {
        text: valid,
        open: Vec::new(),
    };
    // The fault itself is reported by the caller.
    let _ = kanat_json::read(valid, MAX_DEPTH, &mut path);
    path.render()
}

/// Path to the token that the lexer has come to.
struct OpenPath<'t> {
    text: &'t str,
    open: Vec<Container>,
}

enum Container {
    Object { key: Option<String> },
    List { index: usize },
}

impl OpenPath<'_> {
    fn render(&self) -> String {
        let path = self
            .open
            .iter()
            .fold(String::new(), |path, open| match open {
                Container::Object { key: Some(key) } => field::member(&path, key),
                Container::Object { key: None } => path,
                Container::List { index } => format!("{path}[{index}]"),
            });
        if path.is_empty() {
            "body".to_owned()
        } else {
            path
        }
    }
}

impl Visitor for OpenPath<'_> {
    fn open(&mut self, kind: Kind, _start: usize) {
        self.open.push(if kind == Kind::Object {
            Container::Object { key: None }
        } else {
            Container::List { index: 0 }
        });
    }

    fn close(&mut self, _end: usize) {
        self.open.pop();
    }

    fn key(&mut self, range: Range<usize>, _has_escapes: bool) {
        let name = unescape(&self.text[range]).map(std::borrow::Cow::into_owned);
        if let Some(Container::Object { key }) = self.open.last_mut() {
            *key = name;
        }
    }

    fn comma(&mut self) {
        match self.open.last_mut() {
            Some(Container::Object { key }) => *key = None,
            Some(Container::List { index }) => *index += 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_field_in_which_a_text_breaks() {
        for (text, path) in [
            ("", "body"),
            ("{", "body"),
            (r#"{"name": "#, "name"),
            (r#"{"name": "x", "#, "body"),
            (r#"{"na\"me":"x\\","b" "#, "b"),
            (
                r#"{"entries":[{"key":"a,{"},{"key":"b","value":"#,
                "entries[1].value",
            ),
            (r#"{"entries":[{"key":"a"}], "#, "body"),
            ("[1,[2,", "[1][1]"),
            (r#"{"name":"cut"#, "name"),
        ] {
            assert_eq!(fault_path(text.as_bytes()), path, "{text}");
        }
    }
}
