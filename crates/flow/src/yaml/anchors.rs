//! The places in a file of the characters of a scalar, which YAML may have folded, indented, quoted
//! or escaped.

use std::iter::Peekable;
use std::str::Chars;

use granit_parser::ScalarStyle;

use crate::diagnostic::Position;

/// Place of a character of a text; the characters after it, up to the next anchor, follow it on its
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Byte in the text.
    pub(crate) offset: usize,
    pub(crate) at: Position,
}

/// Returns the anchors of a text that is written as `written`, which begins at `at`: a block at its
/// first line. The last ones are absent where the text cannot be found again.
pub(super) fn anchors(text: &str, written: &str, style: ScalarStyle, at: Position) -> Vec<Anchor> {
    let mut source = Source {
        letters: written.chars().peekable(),
        at,
    };
    if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
        source.advance();
    }
    let mut anchors: Vec<Anchor> = Vec::new();
    let mut expected = None;
    for (offset, letter) in text.char_indices() {
        let Some(at) = source.find(letter, style) else {
            break;
        };
        if expected != Some(at) {
            anchors.push(Anchor { offset, at });
        }
        expected = Some(Position {
            column: at.column + 1,
            ..at
        });
    }
    anchors
}

/// Returns the place of byte `offset` of a text.
pub(crate) fn locate(anchors: &[Anchor], text: &str, offset: usize) -> Option<Position> {
    let after = anchors.partition_point(|anchor| anchor.offset <= offset);
    let anchor = anchors.get(after.checked_sub(1)?)?;
    let between = text.get(anchor.offset..offset.min(text.len()))?;
    let characters = u32::try_from(between.chars().count()).unwrap_or(0);
    Some(Position {
        line: anchor.at.line,
        column: anchor.at.column + characters,
    })
}

/// Rest of a scalar, as it is written.
struct Source<'w> {
    letters: Peekable<Chars<'w>>,
    at: Position,
}

impl Source<'_> {
    fn advance(&mut self) {
        match self.letters.next() {
            Some('\n') => {
                self.at.line += 1;
                self.at.column = 1;
            }
            Some(_) => self.at.column += 1,
            None => {}
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.letters.peek().copied()
    }

    /// Returns the place of the next character, which the text has as `letter`, and steps over it.
    fn find(&mut self, letter: char, style: ScalarStyle) -> Option<Position> {
        loop {
            let at = self.at;
            let found = self.peek()?;
            if found == '\\' && style == ScalarStyle::DoubleQuoted {
                if self.escape() {
                    return Some(at);
                }
            } else if found == letter {
                self.advance();
                if found == '\'' && style == ScalarStyle::SingleQuoted {
                    self.advance();
                }
                return Some(at);
            } else if !found.is_whitespace() {
                return None;
            } else if letter == ' ' || letter == '\n' {
                // A fold: the blanks that it is written with are one.
                while self.peek().is_some_and(char::is_whitespace) {
                    self.advance();
                }
                return Some(at);
            } else {
                self.advance();
            }
        }
    }

    /// Steps over an escape. Returns whether it is a character, and not the end of a line.
    fn escape(&mut self) -> bool {
        self.advance();
        let digits = match self.peek() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('\n' | '\r') => return false,
            Some(_) | None => 0,
        };
        for _ in 0..=digits {
            self.advance();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::yaml::Text;
    use crate::yaml::Value;

    /// The line and the column of `#` in the value of `a`.
    #[track_caller]
    fn check(yaml: &str, line: u32, column: u32) {
        let node = crate::yaml::read(yaml).0.unwrap();
        let Value::Map(members) = &node.value else {
            panic!("a map")
        };
        let Value::Text(Text { text, anchors, .. }) = &members[0].value.value else {
            panic!("a text")
        };
        let found = super::locate(anchors, text, text.find('#').unwrap()).unwrap();
        assert_eq!([found.line, found.column], [line, column], "{yaml}");
    }

    #[test]
    fn finds_characters_wherever_they_are_written() {
        check("a: b#c\n", 1, 5);
        check("a: b c\n  d\n\n  e#\n", 4, 4);
        check("a: 'it''s #'\n", 1, 11);
        check("a: \"\\\"é\\u00e9\\n#\"\n", 1, 16);
        check("a: \"b \\\n   c #\"\n", 2, 6);
        check("a: >-\n  b\n  c #\n", 3, 5);
        check("a: |\n  b\n    c #\n", 3, 7);
    }
}
