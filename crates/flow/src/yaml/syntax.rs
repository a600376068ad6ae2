//! Messages about texts that are not YAML, in the words of someone who writes flows.

use granit_parser::ScanError;

use crate::diagnostic::{Diagnostic, Position};

/// Message about a template without quotes.
pub(super) const QUOTE_THE_TEMPLATE: &str = "found {{ without quotes, which YAML takes for a map; \
                                             put the whole value in quotes, as in \"{{ source.id \
                                             }}\"";

/// The diagnostic of a syntax error, with advice for what flows trip over. `path` is the value at
/// which the parser stopped.
pub(super) fn diagnostic(yaml: &str, error: &ScanError, path: &str) -> Diagnostic {
    let at = position(error.marker());
    let line = usize::try_from(at.line).unwrap_or(1);
    // The parser often stops on the line after the one at fault.
    for number in [line, line.saturating_sub(1)] {
        let Some(text) = number
            .checked_sub(1)
            .and_then(|index| yaml.lines().nth(index))
        else {
            continue;
        };
        if let Some((column, advice)) = advice(text) {
            let at = Position {
                line: u32::try_from(number).unwrap_or(u32::MAX),
                column,
            };
            return Diagnostic::error(at, path, advice);
        }
    }
    if error.info().contains("tab")
        && let Some(at) = indenting_tab(yaml, line)
    {
        // The value before the tab is not at fault.
        let message = "found a tab before the first character of the line; YAML is indented with \
                       blanks";
        return Diagnostic::error(at, "", message);
    }
    let hint = match error.info().contains("mapping values are not allowed") {
        true => {
            "; keys of one map begin in the same column, and a value with a colon and a blank in \
             it stands in quotes as a whole"
        }
        false => "",
    };
    Diagnostic::error(at, path, format!("not YAML: {}{hint}", error.info()))
}

/// Returns the place of the first tab that indents a line, from this line on. The parser stops
/// where the text began that the tab broke off.
fn indenting_tab(yaml: &str, line: usize) -> Option<Position> {
    let lines = yaml.lines().enumerate().skip(line.saturating_sub(1));
    let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    lines.into_iter().find_map(|(index, text)| {
        let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
        let column = text[..indent].find('\t')?;
        Some(Position {
            line: small(index + 1),
            column: small(column + 1),
        })
    })
}

/// The place of a parser's marker.
pub(super) fn position(marker: &granit_parser::Marker) -> Position {
    let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Position {
        line: small(marker.line().max(1)),
        column: small(marker.col().saturating_add(1)),
    }
}

/// The column of a value on this line that wants quotes, and what to say of it.
fn advice(line: &str) -> Option<(u32, String)> {
    let value = value_of(line);
    let column =
        u32::try_from(line[..line.len() - value.len()].chars().count() + 1).unwrap_or(u32::MAX);
    if value.starts_with("{{") {
        return Some((column, QUOTE_THE_TEMPLATE.to_owned()));
    }
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (_, rest) = value[1..].split_once(quote)?;
    let rest = rest.trim_start();
    let more = !rest.is_empty() && !rest.starts_with(['#', ',', ']', '}', ':', quote]);
    more.then(|| {
        let advice =
            "found text after the closing quote; put the whole value in quotes, as in \"'' | now\"";
        (column, advice.to_owned())
    })
}

/// Returns the rest of a line after `- ` and `key: `.
fn value_of(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    let key = rest
        .find(": ")
        .filter(|end| !rest[..*end].contains(['\'', '"', '{', '[', '#']));
    key.map_or(rest, |end| rest[end + 2..].trim_start())
}
