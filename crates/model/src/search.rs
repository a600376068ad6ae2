//! A caller's search text: its bound, what counts as the same letter, the patterns in which
//! databases look for it, and its words.

mod kind;
mod words;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::Error;

pub use kind::Kind;
pub use words::{Word, words};

/// Longest search text, in characters.
pub const MAX_CHARS: usize = 500;

/// Letters that differ only in case, by their common form, for all forms of more than
/// themselves.
static CASES: LazyLock<HashMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut cases: HashMap<char, Vec<char>> = HashMap::new();
    for c in ('\0'..=char::MAX).filter(|c| c.is_alphabetic() || !c.is_ascii()) {
        let folded = common_case(c);
        if folded != c {
            cases.entry(folded).or_insert_with(|| vec![folded]).push(c);
        }
    }
    cases
});

/// Refuses a text that is longer than a search may be.
///
/// # Errors
///
/// Names the field `search`.
pub fn check(text: &str) -> Result<(), Error> {
    if text.chars().nth(MAX_CHARS).is_some() {
        return Err(Error::field(
            "search",
            format!("has more than {MAX_CHARS} characters"),
        ));
    }
    Ok(())
}

/// Returns whether `text` has `wanted` anywhere, in any case of its letters.
pub fn contains(text: &str, wanted: &str) -> bool {
    ignoring_case(text).contains(&ignoring_case(wanted))
}

/// Pattern of SQLite's `GLOB` that finds `text` anywhere, in any case of its letters.
pub fn glob(text: &str) -> String {
    let mut pattern = String::from("*");
    for c in text.chars() {
        push_class(&mut pattern, &cases(c));
    }
    pattern.push('*');
    pattern
}

/// Patterns of SQLite's `GLOB`, one of which finds `text` in every document whose text people see
/// has it: JSON writes quotes and backslashes, and may write every character, as an escape.
pub fn globs_in_json(text: &str) -> Vec<String> {
    let mut patterns = vec![glob(text)];
    for ascii in [false, true] {
        let mut pattern = String::from("*");
        for c in text.chars() {
            match escape(c) {
                Some(escaped) => escaped.chars().for_each(|c| push_class(&mut pattern, &[c])),
                None if ascii && !c.is_ascii() => push_hexadecimal(&mut pattern, c),
                None => push_class(&mut pattern, &cases(c)),
            }
        }
        pattern.push('*');
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    patterns
}

/// Regular expression of PostgreSQL that finds `text` anywhere, in any case of its letters.
pub fn regex(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        push_alternatives(
            &mut pattern,
            cases(c).into_iter().map(String::from).collect(),
        );
    }
    pattern
}

/// Regular expression of PostgreSQL that finds `text` as people see it in JSON that
/// `encode(..., 'escape')` has made text.
pub fn regex_in_encoded_json(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        let mut forms = Vec::new();
        for c in cases(c) {
            forms.push(c.to_string());
            forms.extend(escape(c));
            if !c.is_ascii_alphanumeric() {
                forms.extend([hexadecimal(c), upper_hexadecimal(c)]);
            }
        }
        forms.dedup();
        push_alternatives(
            &mut pattern,
            forms.iter().map(|form| encoded(form)).collect(),
        );
    }
    pattern
}

/// Returns the text in a form that is equal for texts that differ only in case. A text
/// [`contains`] another one where this form of it has this form of the other one as a part.
pub fn ignoring_case(text: &str) -> String {
    text.chars().map(common_case).collect()
}

/// Simple case folding; a letter whose other case is several letters stays as it is.
fn common_case(c: char) -> char {
    lower(upper(c))
}

fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    all.next().filter(|_| all.next().is_none()).unwrap_or(c)
}

fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    all.next().filter(|_| all.next().is_none()).unwrap_or(c)
}

/// All letters that differ from `c` only in case, and `c`.
fn cases(c: char) -> Vec<char> {
    CASES
        .get(&common_case(c))
        .cloned()
        .unwrap_or_else(|| vec![c])
}

fn push_class(pattern: &mut String, class: &[char]) {
    match class {
        [c] if !matches!(c, '*' | '?' | '[') => pattern.push(*c),
        class => {
            pattern.push('[');
            pattern.extend(class);
            pattern.push(']');
        }
    }
}

/// `c` as JSON has it in ASCII, its hexadecimal digits in any case. Where the cases of a letter
/// differ in one digit, that digit is any of theirs; letters whose cases differ in more are found
/// as they were written.
fn push_hexadecimal(pattern: &mut String, c: char) {
    let forms: Vec<Vec<char>> = cases(c)
        .into_iter()
        .map(|c| hexadecimal(c).chars().collect())
        .collect();
    let written: Vec<char> = hexadecimal(c).chars().collect();
    let differs = |at: usize| forms.iter().any(|form| form.get(at) != written.get(at));
    let alike = forms.iter().all(|form| form.len() == written.len());
    let one = alike && (0..written.len()).filter(|at| differs(*at)).count() == 1;
    for (at, digit) in written.iter().enumerate() {
        let mut class = vec![*digit];
        if one {
            class.extend(forms.iter().filter_map(|form| form.get(at)));
        }
        if *digit != 'u' {
            class.extend(class.clone().iter().map(char::to_ascii_uppercase));
        }
        class.sort_unstable();
        class.dedup();
        push_class(pattern, &class);
    }
}

/// How JSON has to write a character that cannot stand in a string.
fn escape(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\0'..='\u{1f}' => hexadecimal(c),
        _ => return None,
    })
}

/// Returns `\uxxxx` in small letters, twice for a character that takes two.
fn hexadecimal(c: char) -> String {
    let buffer = &mut [0; 2];
    let units = c.encode_utf16(buffer).iter();
    units.map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Returns `\uXXXX` in capitals, twice for a character that takes two.
fn upper_hexadecimal(c: char) -> String {
    let buffer = &mut [0; 2];
    let units = c.encode_utf16(buffer).iter();
    units.map(|unit| format!("\\u{unit:04X}")).collect()
}

/// As PostgreSQL's `encode(..., 'escape')` writes the bytes of a text.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
            _ => out.push(char::from(byte)),
        }
    }
    out
}

fn push_alternatives(pattern: &mut String, forms: Vec<String>) {
    let quoted: Vec<String> = forms.iter().map(|form| quoted(form)).collect();
    match quoted.as_slice() {
        [one] => pattern.push_str(one),
        many => {
            pattern.push_str("(?:");
            pattern.push_str(&many.join("|"));
            pattern.push(')');
        }
    }
}

/// Text that stands for itself in a regular expression.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_themselves_and_letters_for_all_their_cases() {
        assert_eq!(glob("5*?[a]"), "*5[*][?][[][aA]]*");
        assert_eq!(glob("äP"), "*[äÄ][pP]*");
        assert_eq!(glob("σ"), "*[σΣς]*");
        assert_eq!(regex("5%.a"), "5\\%\\.(?:a|A)");
    }

    #[test]
    fn json_is_searched_as_people_see_it() {
        assert_eq!(globs_in_json("1 \"2"), ["*1 \"2*", "*1 \\\"2*"]);
        assert_eq!(globs_in_json("ü")[1..], ["*\\u00[DFdf][Cc]*"]);
        assert_eq!(
            regex_in_encoded_json("\""),
            "(?:\\\"|\\\\\\\\\\\"|\\\\\\\\u0022)"
        );
    }

    #[test]
    fn case_does_not_count() {
        assert!(contains("Äpfel und ΣΊΣΥΦΟΣ", "ÄPFEL"));
        assert!(contains("Σίσυφος", "ΣΊΣΥΦΟΣ"));
        assert!(!contains("Apfel", "Äpfel"));
    }

    #[test]
    fn a_search_has_at_most_five_hundred_characters() {
        assert!(check(&"ä".repeat(500)).is_ok());
        assert_eq!(
            check(&"x".repeat(501)).unwrap_err().details[0].field,
            "search"
        );
    }
}
