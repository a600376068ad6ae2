//! Spans of faults in the text that they are of, and the replacements that mend them. A fault is
//! known by its place and its message: the part of the text that it is about begins there, and the
//! message quotes it and the nearest known name.

use kanat_mapping::EvaluationError;

use crate::diagnostic::Diagnostic;

/// Part of one line of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From 1.
    pub line: u32,
    /// Column of the first character, from 1, in characters.
    pub column: u32,
    /// Column behind the last character.
    pub end_column: u32,
}

/// Text that mends a fault in the place of its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The nearest known name.
    pub text: String,
    /// The part of the text that it replaces.
    pub span: Span,
}

/// Returns the span of a diagnostic in the text of its definition, and its fix where the nearest
/// name is known.
pub fn of_diagnostic(yaml: &str, diagnostic: &Diagnostic) -> (Span, Option<Fix>) {
    let rest = rest_of_line(yaml, diagnostic.line, diagnostic.column);
    of_fault(
        rest,
        diagnostic.line,
        diagnostic.column,
        &diagnostic.message,
    )
}

/// Returns the span of an error of parsing at byte `offset` of a text.
pub fn of_parse_error(text: &str, offset: usize, message: &str) -> Span {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count();
    let begun = before.rfind('\n').map_or(0, |at| at + 1);
    let line = number(line + 1);
    let column = number(before[begun..].chars().count() + 1);
    of_fault(rest_of_line(text, line, column), line, column, message).0
}

/// Returns the span of the part of an expression or template that could not be evaluated: its
/// transform where the text has it once, else the whole text on its first line.
pub fn of_failure(text: &str, error: &EvaluationError) -> Span {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let places = |name: &'static str| {
        text.match_indices(name).filter(move |(at, _)| {
            let is_name = name.starts_with(is_word);
            let before = text[..*at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !is_name || !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    };
    let found = error.transform.map(|name| places(name).collect::<Vec<_>>());
    if let Some([(offset, name)]) = found.as_deref() {
        let start = of_parse_error(text, *offset, "");
        return Span {
            end_column: start.column + number(name.chars().count()),
            ..start
        };
    }
    let offset = text.len() - text.trim_start().len();
    let start = of_parse_error(text, offset, "");
    let rest = rest_of_line(text, start.line, start.column).trim_end();
    Span {
        end_column: start.column + number(rest.chars().count()),
        ..start
    }
}

fn of_fault(rest: &str, line: u32, column: u32, message: &str) -> (Span, Option<Fix>) {
    let span = |from: usize, length: usize| {
        let characters = |bytes: usize| number(rest[..bytes].chars().count());
        Span {
            line,
            column: column + characters(from),
            end_column: column + characters(from + length),
        }
    };
    let quoted = quoted_first(message).filter(|quoted| !quoted.is_empty());
    let quote = rest.len() - rest.trim_start_matches(['"', '\'']).len();
    let found = quoted.and_then(|quoted| {
        let from = [0, quote.min(1)]
            .into_iter()
            .find(|from| rest[*from..].starts_with(quoted))?;
        Some((from, quoted.len()))
    });
    let whole = match found {
        Some((0, length)) => length,
        Some(_) | None => length_of_token(rest),
    };
    let fix = found
        .zip(suggested(message))
        .map(|((from, length), text)| Fix {
            text: text.to_owned(),
            span: span(from, length),
        });
    (span(0, whole), fix)
}

/// Returns the first text in backquotes or double quotes of a message.
fn quoted_first(message: &str) -> Option<&str> {
    let start = message.find(['`', '"'])?;
    let quote = &message[start..=start];
    let inner = &message[start + 1..];
    inner.find(quote).map(|end| &inner[..end])
}

/// Returns the name that the end of a message suggests, as `nearest::suggestion` writes it.
fn suggested(message: &str) -> Option<&str> {
    let (_, name) = message.rsplit_once("; did you mean ")?;
    let name = name.strip_suffix('?').unwrap_or(name);
    let inner = |quote: char| name.strip_prefix(quote)?.strip_suffix(quote);
    inner('`').or_else(|| inner('"'))
}

/// Returns the bytes of the token that a line begins with: a text in quotes, a word, or one
/// character.
fn length_of_token(rest: &str) -> usize {
    let Some(first) = rest.chars().next() else {
        return 0;
    };
    if matches!(first, '"' | '\'') {
        let mut is_escaped = false;
        let end = rest[1..].find(|c: char| {
            let ends = c == first && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        return end.map_or(rest.len(), |end| end + 2);
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    match rest.find(|c: char| !is_word(c)) {
        Some(0) => first.len_utf8(),
        Some(end) => end,
        None => rest.len(),
    }
}

fn rest_of_line(text: &str, line: u32, column: u32) -> &str {
    let index = |number: u32| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index(line)).unwrap_or_default();
    let start = line.char_indices().nth(index(column));
    start.map_or("", |(start, _)| &line[start..])
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use kanat_mapping::{Effort, Expression, Scope};
    use kanat_model::Timestamp;

    use super::*;

    /// The spans of the errors of a definition, and the definition with its fixes.
    fn spans(yaml: &str) -> (Vec<(u32, String)>, String) {
        let mut fixed: Vec<String> = yaml.lines().map(str::to_owned).collect();
        let errors = crate::parse(yaml).unwrap_err();
        let spans = errors.iter().map(|error| {
            let (span, fix) = of_diagnostic(yaml, error);
            let cut = |line: &str, from: u32, to: u32| -> String {
                let from = from as usize - 1;
                let to = to as usize - 1;
                line.chars().skip(from).take(to - from).collect()
            };
            let line = yaml.lines().nth(span.line as usize - 1).unwrap();
            if let Some(Fix { text, span }) = fix {
                let line = &mut fixed[span.line as usize - 1];
                let end = u32::MAX - 1;
                *line = format!(
                    "{}{text}{}",
                    cut(line, 1, span.column),
                    cut(line, span.end_column, end)
                );
            }
            (span.line, cut(line, span.column, span.end_column))
        });
        let spans = spans.collect();
        (spans, fixed.join("\n") + "\n")
    }

    #[test]
    fn a_span_is_the_part_that_is_wrong_and_a_fix_corrects_it() {
        let yaml = "\
flow: größe
sorce:
  trigger: webhook
target:
  connector: erp
  endpoint: /x
  method: \"PSOT\"
mapping:
  größe: source.größe | upercase
  weight: sorce.größe
  total: source.total | decimal(99)
";
        let (found, fixed) = spans(yaml);
        let lines: Vec<_> = found
            .iter()
            .map(|(line, text)| format!("{line}: {text}"))
            .collect();
        assert!(lines.contains(&"2: sorce".to_owned()), "{lines:?}");
        assert!(lines.contains(&"7: \"PSOT\"".to_owned()), "{lines:?}");
        assert!(lines.contains(&"10: sorce".to_owned()), "{lines:?}");
        assert!(lines.contains(&"9: upercase".to_owned()), "{lines:?}");
        assert!(lines.contains(&"11: 99".to_owned()), "{lines:?}");
        for part in [
            "\nsource:\n",
            "method: \"POST\"",
            "größe: source.größe | uppercase",
            "weight: source.größe",
        ] {
            assert!(fixed.contains(part), "{part} in {fixed}");
        }
        assert!(fixed.contains("decimal(99)"), "no name is near: {fixed}");
    }

    #[test]
    fn a_failure_is_at_its_transform_where_that_is_there_once() {
        let failure = |text: &str| {
            let effort = Effort::default();
            let scope = Scope::new(b"{\"a\":\"x\"}", Timestamp::from_millis(0), &effort);
            let expression = Expression::parse(text).unwrap();
            let span = of_failure(text, &expression.evaluate(&scope).unwrap_err());
            (span.line, span.column, span.end_column)
        };
        assert_eq!(failure("source.a | decimal(2)"), (1, 12, 19));
        assert_eq!(failure(" source.a | number | number"), (1, 2, 28));
    }

    #[test]
    fn an_error_of_parsing_has_line_and_column() {
        let span = of_parse_error(
            "source.größe\n | upercase",
            18,
            "there is no transform `upercase`",
        );
        assert_eq!(
            span,
            Span {
                line: 2,
                column: 4,
                end_column: 12
            }
        );
        let end = of_parse_error("source.a |", 10, "found the end, expected a transform");
        assert_eq!(end.column, 11);
        assert_eq!(end.end_column, 11);
    }
}
