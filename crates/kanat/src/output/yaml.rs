//! JSON trees as block-style YAML.

use super::Json;
use super::json::quote;

/// Words that YAML reads as something other than text.
const RESERVED: [&str; 10] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "~",
];

/// The document as YAML, ending in a newline.
pub fn write(tree: &Json) -> String {
    let mut out = String::new();
    value(tree, 0, &mut out);
    out
}

/// Writes `tree` where a line has begun already, and ends the line.
fn value(tree: &Json, depth: usize, out: &mut String) {
    match tree {
        Json::Bare(bare) => end(out, bare),
        Json::Text(text) => end(out, &scalar(text, depth)),
        Json::List(items) if items.is_empty() => end(out, "[]"),
        Json::Object(members) if members.is_empty() => end(out, "{}"),
        Json::List(items) => {
            for (index, item) in items.iter().enumerate() {
                indent(out, depth, index);
                out.push_str("- ");
                value(item, depth + 1, out);
            }
        }
        Json::Object(members) => {
            for (index, (name, member)) in members.iter().enumerate() {
                indent(out, depth, index);
                out.push_str(&key(name));
                out.push(':');
                match member {
                    Json::List(items) if !items.is_empty() => below(member, depth, out),
                    Json::Object(members) if !members.is_empty() => below(member, depth, out),
                    _ => {
                        out.push(' ');
                        value(member, depth + 1, out);
                    }
                }
            }
        }
    }
}

fn below(tree: &Json, depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth + 1));
    value(tree, depth + 1, out);
}

fn end(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// The first item stands where its parent left the cursor.
fn indent(out: &mut String, depth: usize, index: usize) {
    if index > 0 {
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

fn key(name: &str) -> String {
    if plain(name) {
        name.to_owned()
    } else {
        quote(name)
    }
}

fn scalar(text: &str, depth: usize) -> String {
    if plain(text) {
        return text.to_owned();
    }
    let printable = !text.chars().any(|c| c.is_control() && c != '\n')
        && !text.contains(['\u{feff}', '\u{2028}']);
    if text.contains('\n') && printable && !text.starts_with([' ', '\n']) {
        return block(text, depth);
    }
    quote(text)
}

/// A literal block: every line as it is.
fn block(text: &str, depth: usize) -> String {
    let chomp = match text.strip_suffix('\n') {
        None => "-",
        Some(rest) if rest.ends_with('\n') => "+",
        Some(_) => "",
    };
    let margin = "  ".repeat(depth.max(1));
    let mut out = format!("|{chomp}");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&margin);
            out.push_str(line);
        }
    }
    out
}

/// Returns whether `text` can stand bare and is read back as text.
fn plain(text: &str) -> bool {
    let first = text
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '/');
    let rest = text
        .chars()
        .all(|c| c.is_alphanumeric() || "_-./ ".contains(c));
    first && rest && !text.ends_with(' ') && !RESERVED.contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, yaml: &str) {
        assert_eq!(write(&Json::parse(json).unwrap()), yaml);
    }

    #[test]
    fn writes_trees_as_blocks() {
        check(
            r#"{"a":{"b":[1,{"c":2,"d":[]}]},"e":{}}"#,
            "a:\n  b:\n    - 1\n    - c: 2\n      d: []\ne: {}\n",
        );
        check(r#"[[1,2],"x"]"#, "- - 1\n  - 2\n- x\n");
    }

    #[test]
    fn quotes_what_would_be_read_as_something_else() {
        check(
            r#"{"on":"no","n":"12","t":"a: b","d":"2026-01-01","ok":"plain text"}"#,
            "\"on\": \"no\"\n\"n\": \"12\"\nt: \"a: b\"\nd: \"2026-01-01\"\nok: plain text\n",
        );
    }

    #[test]
    fn keeps_digits() {
        check(
            r#"{"id":9007199254740993,"x":1.10}"#,
            "id: 9007199254740993\nx: 1.10\n",
        );
    }

    #[test]
    fn writes_text_of_many_lines_as_a_block() {
        check(
            r#"{"x":{"z":"a: 1\n\nb: 2\n"}}"#,
            "x:\n  z: |\n    a: 1\n\n    b: 2\n",
        );
        check(r#"{"z":"a\nb"}"#, "z: |-\n  a\n  b\n");
    }
}
