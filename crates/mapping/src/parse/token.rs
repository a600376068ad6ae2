//! Words, strings and numbers, and the errors of other text in their place.

use super::operators::is_date;
use super::{ParseResult, Parser};
use crate::{ParseError, json};

const ESCAPES: &str =
    "an escape: `\\\\` `\\'` `\\\"` `\\/` `\\b` `\\f` `\\n` `\\r` `\\t` `\\uXXXX`";

/// Returns whether names may have the character.
pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

impl<'t> Parser<'t> {
    /// Returns the rest of the text, without the blanks before it.
    pub(super) fn rest(&mut self) -> &'t str {
        self.skip_whitespace();
        &self.text[self.position..]
    }

    pub(super) fn here(&self) -> &'t str {
        &self.text[self.position..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.here().chars().next()
    }

    pub(super) fn skip_whitespace(&mut self) {
        let here = self.here();
        self.position += here.len() - here.trim_start().len();
    }

    /// Reads the word that stands here; empty when there is none.
    pub(super) fn word(&mut self) -> &'t str {
        let here = self.here();
        let word = &here[..here.find(|letter| !is_word(letter)).unwrap_or(here.len())];
        self.position += word.len();
        word
    }

    /// Steps over `keyword` when it stands here as a word of its own.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let found = self
            .rest()
            .strip_prefix(keyword)
            .is_some_and(|after| !after.starts_with(is_word));
        if found {
            self.position += keyword.len();
        }
        found
    }

    pub(super) fn number(&mut self) -> ParseResult<String> {
        let here = self.here();
        let sign_of_exponent = |index: usize| here[..index].ends_with(['e', 'E']);
        let end = here.char_indices().find(|(index, letter)| match letter {
            '+' => !sign_of_exponent(*index),
            '-' => *index > 0 && !sign_of_exponent(*index),
            letter => !letter.is_ascii_digit() && !matches!(letter, '.' | 'e' | 'E'),
        });
        let number = &here[..end.map_or(here.len(), |(index, _)| index)];
        if !json::is_number(number) {
            let hint = match is_date(self.text.trim()) {
                true => format!("; for the text itself write \"'{}'\"", self.text.trim()),
                false => String::new(),
            };
            return Err(self.error(format!("found `{number}`, expected a number{hint}")));
        }
        self.position += number.len();
        // A minus after it is an operator.
        if self
            .peek()
            .is_some_and(|after| is_word(after) && after != '-')
        {
            return Err(self.unexpected("a number"));
        }
        Ok(number.to_owned())
    }

    /// Parses a string in single or double quotes.
    pub(super) fn string(&mut self) -> ParseResult<String> {
        let start = self.position;
        let quote = self.peek();
        let mut characters = self.here().char_indices().skip(1);
        let mut text = String::new();
        while let Some((index, letter)) = characters.next() {
            if Some(letter) == quote {
                self.position = start + index + 1;
                return Ok(text);
            }
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            self.position = start + index;
            let (unescaped, taken) = self.escape()?;
            text.push(unescaped);
            for _ in 1..taken {
                characters.next();
            }
        }
        self.position = start;
        Err(self.error("a string that does not end"))
    }

    /// Parses a regular expression in quotes. A backslash in it stands for itself, but before a
    /// quote.
    pub(super) fn pattern(&mut self) -> ParseResult<String> {
        let start = self.position;
        let quote = self.peek().filter(|letter| matches!(letter, '"' | '\''));
        let Some(quote) = quote else {
            return Err(self.unexpected("a regular expression in quotes"));
        };
        let mut characters = self.here().char_indices().skip(1);
        let mut pattern = String::new();
        while let Some((index, letter)) = characters.next() {
            if letter == quote {
                self.position = start + index + 1;
                return Ok(pattern);
            }
            if letter != '\\' {
                pattern.push(letter);
                continue;
            }
            match characters.next() {
                Some((_, escaped)) if escaped == quote => pattern.push(quote),
                Some((_, escaped)) => pattern.extend([letter, escaped]),
                None => break,
            }
        }
        Err(self.error("a string that does not end"))
    }

    /// Returns the character of the escape that stands here, and the number of characters that
    /// spell it.
    fn escape(&self) -> ParseResult<(char, usize)> {
        let found = self.here().chars().nth(1);
        let simple = match found {
            Some(same @ ('\\' | '\'' | '"' | '/')) => same,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode_escape(),
            Some(letter) => {
                return Err(self.error(format!("found `\\{letter}`, expected {ESCAPES}")));
            }
            None => return Err(self.error(format!("found `\\`, expected {ESCAPES}"))),
        };
        Ok((simple, 2))
    }

    fn unicode_escape(&self) -> ParseResult<(char, usize)> {
        let here = self.here();
        for length in [12, 6] {
            let Some(escape) = here.get(..length) else {
                continue;
            };
            let raw = format!("\"{escape}\"");
            if crate::json::check_text(&raw, 0).is_err() {
                continue;
            }
            let mut decoded = crate::json::decode(&raw).into_owned();
            if let (Some(letter), true) = (decoded.pop(), decoded.is_empty()) {
                return Ok((letter, length));
            }
        }
        Err(self.error("`\\u` without four hexadecimal digits"))
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.position, message)
    }

    pub(super) fn unexpected(&mut self, expected: &str) -> ParseError {
        self.skip_whitespace();
        let here = self.here();
        let word = &here[..here.find(|letter| !is_word(letter)).unwrap_or(here.len())];
        let found = match (
            word.chars().take(40).collect::<String>(),
            here.chars().next(),
        ) {
            (_, None) => "the end".to_owned(),
            (word, Some(sign)) if word.is_empty() || sign == '-' => {
                format!("`{}`", sign.escape_debug())
            }
            (word, Some(_)) => format!("`{word}`"),
        };
        self.error(format!("found {found}, expected {expected}"))
    }
}
