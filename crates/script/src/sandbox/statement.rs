//! Position of the statement that made an error. The engine names the position of the last
//! operation before the call, which is in the midst of the arguments, and maybe on another line.
//!
//! This reads no JavaScript, only where its words and brackets are. Where that is not enough to
//! tell, the engine's place stands.

use crate::failure::Position;

/// Words after which a slash begins a regular expression.
const BEFORE_REGEX: [&str; 12] = [
    "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "await",
];

/// The begin of `throw new Class(...)`, or of `new Class(...)` alone, around a place in the code.
pub(super) fn begin(code: &str, place: Position, class: &str) -> Option<Position> {
    let tokens = tokens(code);
    let is_made = |at: usize| tokens.get(at).is_some_and(|token| token.text == class);
    // Of each open bracket, where the call begins whose arguments are in it.
    let mut open: Vec<Option<Position>> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => {
                let call = at
                    .checked_sub(1)
                    .filter(|name| token.text == "(" && is_made(*name));
                open.push(call.map(|name| call_begin(&tokens, name)));
            }
            ")" | "]" | "}" => {
                if let Some(begin) = open.pop()?
                    && (begin..=token.place).contains(&place)
                {
                    return Some(begin);
                }
            }
            // Made without any brackets.
            _ if token.place == place
                && is_made(at)
                && tokens.get(at + 1).is_none_or(|next| next.text != "(") =>
            {
                return Some(call_begin(&tokens, at));
            }
            _ => {}
        }
    }
    None
}

/// Returns the position at which a call of the class whose name is at `name` begins, with the words
/// before it.
fn call_begin(tokens: &[Token<'_>], name: usize) -> Position {
    let before = |at: usize, word: &str| {
        at.checked_sub(1)
            .filter(|before| tokens[*before].text == word)
    };
    let made = before(name, "new").unwrap_or(name);
    tokens[before(made, "throw").unwrap_or(made)].place
}

#[derive(Clone, Copy)]
struct Token<'a> {
    /// Empty for what is only passed over: strings, templates, regular expressions.
    text: &'a str,
    place: Position,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut text = Text {
        rest: code,
        place: Position { line: 1, column: 1 },
    };
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(first) = text.rest.chars().next() {
        let place = text.place;
        let passed = |text| Token { text, place };
        match first {
            _ if first.is_whitespace() => text.pass(first.len_utf8()),
            '/' if text.rest.starts_with("//") => {
                text.pass(text.rest.find('\n').unwrap_or(text.rest.len()))
            }
            '/' if text.rest.starts_with("/*") => {
                text.pass(
                    text.rest[2..]
                        .find("*/")
                        .map_or(text.rest.len(), |end| end + 4),
                );
            }
            '/' if tokens.last().is_none_or(|last| before_regex(last.text)) => {
                text.pass(quoted(text.rest, '/'));
                tokens.push(passed(""));
            }
            '"' | '\'' => {
                text.pass(quoted(text.rest, first));
                tokens.push(passed(""));
            }
            '`' => {
                text.pass(template(text.rest));
                tokens.push(passed(""));
            }
            _ => {
                let end = text
                    .rest
                    .find(|c: char| !is_word(c))
                    .unwrap_or(text.rest.len())
                    .max(first.len_utf8());
                tokens.push(passed(&text.rest[..end]));
                text.pass(end);
            }
        }
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn before_regex(last: &str) -> bool {
    // What was passed over is a value, as names, numbers and closed brackets are.
    let operator = last
        .chars()
        .next()
        .is_some_and(|first| !is_word(first) && !matches!(first, ')' | ']' | '}'));
    operator || BEFORE_REGEX.contains(&last)
}

/// The length of what stands in quotes, with them; to the end of the line where they do not end.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let mut class = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' if !escaped => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if quote == '/' => class = true,
            ']' => class = false,
            _ if c == quote && !class => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of a template, with what is in its braces and the templates in there.
fn template(text: &str) -> usize {
    let mut escaped = false;
    // What is open: templates, and braces in them.
    let mut open = Vec::new();
    for (at, c) in text.char_indices() {
        let in_text = open.last() == Some(&'`');
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '`' if in_text => {
                open.pop();
                if open.is_empty() {
                    return at + 1;
                }
            }
            '`' => open.push('`'),
            '{' if !in_text || text[..at].ends_with('$') => open.push('{'),
            '}' if !in_text => {
                open.pop();
            }
            _ => {}
        }
    }
    text.len()
}

struct Text<'a> {
    rest: &'a str,
    place: Position,
}

impl Text<'_> {
    fn pass(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        for c in passed.chars() {
            self.place = match c {
                '\n' => Position {
                    line: self.place.line + 1,
                    column: 1,
                },
                _ => Position {
                    column: self.place.column + 1,
                    ..self.place
                },
            };
        }
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `>` stands before the place that the engine names, `<` before the begin that is found; none
    /// when it is not.
    fn check(marked: &str, class: &str) {
        let at = |mark: char| {
            let text: String = marked
                .chars()
                .filter(|c| *c == mark || !"<>".contains(*c))
                .collect();
            let before = &text[..text.find(mark)?];
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            Some(Position {
                line: u32::try_from(line).unwrap(),
                column: u32::try_from(column).unwrap(),
            })
        };
        let code: String = marked.chars().filter(|c| !"<>".contains(*c)).collect();
        assert_eq!(begin(&code, at('>').unwrap(), class), at('<'), "{marked}");
    }

    #[test]
    fn an_error_is_at_its_statement() {
        check("if (a) <throw new >RangeError('no')", "RangeError");
        check("<throw new Error('of ' + input.>id)", "Error");
        check("<throw Error(`of ${>input.id} } \\` ${`)`}`)", "Error");
        check(
            "é();\n  <throw new Error(\n    'a' + /[/)]\"/.test(x) + // )\n    input.>id)",
            "Error",
        );
        check("const e = <new Own(f(1), [input.>id])\nthrow e", "Own");
        check("<throw new >Own;", "Own");
        check("<throw new Own({ a() { return ')' }, b: >c })", "Own");
        check("throw new Outer(<new Inner(>a), b)", "Inner");
        check("a = b / c; <throw new Error(d / >e)", "Error");
    }

    #[test]
    fn what_is_none_of_its_making_stays() {
        check("throw new Error(input.>a.b)", "TypeError");
        check("throw new Error('x'); >input.a", "Error");
        check("new Error(>input", "Error");
        check(")( new Error(>a)", "Error");
        check("'new Error(' + >a + ')'", "Error");
    }

    proptest::proptest! {
        #[test]
        fn no_code_makes_it_panic(
            code in r#"[a `'"/\\(){}\[\]$\n*é]{0,40}"#,
            line in 0..4u32,
            column in 0..20u32,
        ) {
            begin(&code, Position { line, column }, "a");
        }
    }
}
