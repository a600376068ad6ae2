//! Reading JSON that has been checked, without a tree: where a value ends, the items of a list, the
//! members of an object.
//!
//! On text that is not JSON the answers mean nothing, but every function ends and none panics.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::string::{closing_quote, decode, key_is};

/// Returns the position after the white space that begins at `position`.
pub fn skip_whitespace(bytes: &[u8], mut position: usize) -> usize {
    while matches!(bytes.get(position), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        position += 1;
    }
    position
}

/// Returns the end of the value that begins at `position`.
pub fn skip_value(bytes: &[u8], position: usize) -> usize {
    match bytes.get(position) {
        Some(b'"') => closing_quote(bytes, position + 1),
        Some(b'{' | b'[') => skip_container(bytes, position),
        Some(_) | None => skip_scalar(bytes, position),
    }
}

/// Iterates over the items of a list, as they stand. Another value has none.
pub fn items(list: &str) -> impl Iterator<Item = &str> {
    let bytes = list.as_bytes();
    let mut position = if bytes.first() == Some(&b'[') {
        1
    } else {
        bytes.len()
    };
    std::iter::from_fn(move || {
        let start = skip_whitespace(bytes, position);
        let end = skip_value(bytes, start);
        if end == start {
            return None;
        }
        position = skip_comma(bytes, end);
        list.get(start..end)
    })
}

/// Returns the members of an object, keys with their quotes. Each key stands once, at the place of
/// its first occurrence and with the value of its last one.
pub fn members(object: &str) -> Vec<(&str, &str)> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    let mut indexes = HashMap::new();
    for (key, value) in occurrences(object) {
        match indexes.entry(decode(key)) {
            Entry::Vacant(index) => {
                index.insert(members.len());
                members.push((key, value));
            }
            Entry::Occupied(index) => members[*index.get()].1 = value,
        }
    }
    members
}

/// Returns the value of the last member of that name.
pub fn member<'s>(object: &'s str, name: &str) -> Option<&'s str> {
    occurrences(object)
        .filter(|(key, _)| key_is(key, name))
        .last()
        .map(|(_, value)| value)
}

/// Returns whether an object has a member of that name.
pub fn has_key(object: &str, name: &str) -> bool {
    occurrences(object).any(|(key, _)| key_is(key, name))
}

/// Iterates over the members of an object, as they stand, equal keys too. Another value has none.
pub fn occurrences(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let bytes = object.as_bytes();
    let mut position = if bytes.first() == Some(&b'{') {
        1
    } else {
        bytes.len()
    };
    std::iter::from_fn(move || {
        let key_start = skip_whitespace(bytes, position);
        if bytes.get(key_start) != Some(&b'"') {
            return None;
        }
        let key_end = closing_quote(bytes, key_start + 1);
        let value_start = skip_colon(bytes, key_end);
        let value_end = skip_value(bytes, value_start);
        if value_end == value_start {
            return None;
        }
        position = skip_comma(bytes, value_end);
        Some((
            object.get(key_start..key_end)?,
            object.get(value_start..value_end)?,
        ))
    })
}

/// Returns the position after the `:` that follows a key, and after the white space around it.
pub fn skip_colon(bytes: &[u8], position: usize) -> usize {
    let colon = skip_whitespace(bytes, position);
    skip_whitespace(
        bytes,
        if bytes.get(colon) == Some(&b':') {
            colon + 1
        } else {
            colon
        },
    )
}

/// Returns the position after the `,` that follows a value, if there is one.
pub fn skip_comma(bytes: &[u8], position: usize) -> usize {
    let comma = skip_whitespace(bytes, position);
    if bytes.get(comma) == Some(&b',') {
        comma + 1
    } else {
        comma
    }
}

fn skip_container(bytes: &[u8], mut position: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(position) {
        position += 1;
        match byte {
            b'"' => position = closing_quote(bytes, position),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return position;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

fn skip_scalar(bytes: &[u8], mut position: usize) -> usize {
    while !matches!(
        bytes.get(position),
        None | Some(b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t')
    ) {
        position += 1;
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_items_as_they_stand() {
        let list = r#"[ 1.10 , "a,]\"", {"b": [2]} ,[], null]"#;
        assert_eq!(
            items(list).collect::<Vec<_>>(),
            ["1.10", r#""a,]\"""#, r#"{"b": [2]}"#, "[]", "null"]
        );
        assert_eq!(
            items("{}").count() + items("[ ]").count() + items("").count(),
            0
        );
    }

    #[test]
    fn the_last_of_equal_keys_wins_at_the_place_of_the_first() {
        let object = r#"{"a":1,"b" : 2 , "\u0061":3}"#;
        assert_eq!(members(object), [(r#""a""#, "3"), (r#""b""#, "2")]);
        assert!(has_key(object, "b") && !has_key(object, "c"));
    }

    #[test]
    fn ends_on_text_that_is_not_json() {
        for text in [
            "[", "[1", "{\"a", "{\"a\"", "{\"a\":", "[,]", "[:]", "{\"a\":}", "[\"\\", "[}]", "]",
        ] {
            items(text).count();
            members(text);
            skip_value(text.as_bytes(), 0);
        }
    }
}
