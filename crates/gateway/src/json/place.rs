//! Where a text stops being JSON, as the path of the field that it breaks in.

use super::unescape;
use crate::field;

/// What is open at some place of a text.
enum Open {
    Object { key: Option<String> },
    List { at: usize },
}

/// The path that `sound`, the part of a text that is JSON so far, ends in; `body` at the root.
pub(super) fn at_the_end_of(sound: &str) -> String {
    let path = open_at_the_end_of(sound)
        .iter()
        .fold(String::new(), |path, open| match open {
            Open::Object { key: Some(key) } => field::member(&path, key),
            Open::Object { key: None } => path,
            Open::List { at } => format!("{path}[{at}]"),
        });
    if path.is_empty() {
        "body".to_owned()
    } else {
        path
    }
}

fn open_at_the_end_of(sound: &str) -> Vec<Open> {
    let bytes = sound.as_bytes();
    let mut open = Vec::new();
    let mut position = 0;
    while let Some(byte) = bytes.get(position) {
        match byte {
            b'{' => open.push(Open::Object { key: None }),
            b'[' => open.push(Open::List { at: 0 }),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Object { key }) => *key = None,
                Some(Open::List { at }) => *at += 1,
                None => {}
            },
            b'"' => {
                let end = kanat_json::closing_quote(bytes, position + 1);
                if let Some(Open::Object { key: key @ None }) = open.last_mut() {
                    *key = unescape(&sound[position..end]).map(std::borrow::Cow::into_owned);
                }
                position = end;
                continue;
            }
            _ => {}
        }
        position += 1;
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_field_that_a_text_ends_in() {
        for (sound, path) in [
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
            assert_eq!(at_the_end_of(sound), path, "{sound}");
        }
    }
}
