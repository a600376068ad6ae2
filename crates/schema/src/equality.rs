//! Equality of values: numbers are equal by value, objects in any order of their members.

use std::collections::HashSet;

use kanat_json::write_string;

use crate::document::{Kind, Value};

/// Appends a text that equal values have in common, and no others. Takes time for the length of the
/// value alone.
pub(crate) fn write(value: Value<'_>, out: &mut Vec<u8>) {
    match value.kind() {
        Kind::Null => out.push(b'n'),
        Kind::Boolean => out.push(if value.as_bool() == Some(true) {
            b't'
        } else {
            b'f'
        }),
        Kind::Number => {
            out.push(b'#');
            if let Some(number) = value.as_number() {
                number.decimal().write_canonical(out);
            }
            out.push(b';');
        }
        Kind::String => write_string(&value.as_str().unwrap_or_default(), out),
        Kind::List => {
            out.push(b'[');
            value.items().for_each(|item| write(item, out));
            out.push(b']');
        }
        Kind::Object => {
            let mut members: Vec<_> = value
                .members()
                .map(|(key, value)| (key.name(), value))
                .collect();
            members.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
            out.push(b'{');
            for (key, value) in members {
                write_string(&key, out);
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Returns whether no two items of a list are equal.
pub(crate) fn is_unique(list: Value<'_>) -> bool {
    let mut seen: HashSet<Vec<u8>> = HashSet::with_capacity(list.count());
    list.items().all(|item| {
        let mut text = Vec::with_capacity(item.raw().len() + 4);
        write(item, &mut text);
        seen.insert(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[track_caller]
    fn unique(text: &str, expected: bool) {
        let document = Document::read(text).unwrap();
        assert_eq!(is_unique(document.root()), expected, "{text}");
    }

    #[test]
    fn distinguishes_values() {
        unique("[1,2,true,\"1\",null,false,0,\"\",[],{}]", true);
        unique("[1,1.0]", false);
        unique("[9007199254740993,9007199254740992]", true);
        unique(r#"[{"a":1,"b":2},{"b":2.0,"\u0061":1}]"#, false);
        unique(r#"[["a","b"],["ab"],["a","b",null]]"#, true);
        unique(r#"["a","\u0061"]"#, false);
        unique("[{\"a\":1},{\"a\":2}]", true);
    }
}
