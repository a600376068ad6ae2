//! XML to objects and back: attributes as `@name`, text as `#text`, repeated elements as lists.

mod element;
mod read;
mod write;

pub(super) use read::parse;
pub(super) use write::write;

/// Returns whether a text is a name of XML.
pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(is_name_start) && letters.all(is_name_part)
}

fn is_name_start(letter: char) -> bool {
    matches!(letter,
        ':' | '_' | 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

fn is_name_part(letter: char) -> bool {
    is_name_start(letter)
        || matches!(letter, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}'
            | '\u{203f}'..='\u{2040}')
}

/// Returns whether XML allows a character.
fn is_allowed(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
        | '\u{10000}'..)
}
