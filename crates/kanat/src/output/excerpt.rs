//! Diagnostics of a definition with the line that they are about and a caret below the place.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use kanat_flow::{Diagnostic, Severity};

use super::Json;

/// Reads a diagnostic of the API.
pub fn of_answer(item: &Json) -> Diagnostic {
    let number = |path| item.text(path).parse().unwrap_or(1);
    Diagnostic {
        severity: match item.text("severity").as_str() {
            "warning" => Severity::Warning,
            _ => Severity::Error,
        },
        message: item.text("message"),
        path: item.text("path"),
        line: number("line"),
        column: number("column"),
    }
}

/// Reads the detail of a refusal, whose message begins with `line 3, column 5: `. Other details
/// have no place in a definition.
pub fn of_detail(field: &str, message: &str) -> Option<Diagnostic> {
    let (line, rest) = message.strip_prefix("line ")?.split_once(", column ")?;
    let (column, message) = rest.split_once(": ")?;
    let path = if field == "yamlConfig" { "" } else { field };
    Some(Diagnostic {
        severity: Severity::Error,
        message: message.to_owned(),
        path: path.to_owned(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

/// The faults of the definition `source`, each with its line. `file` is what the definition is
/// called.
pub fn render(file: &str, source: &str, faults: &[Diagnostic], renderer: &Renderer) -> String {
    let rendered = faults.iter().map(|fault| {
        let level = match fault.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let annotation = AnnotationKind::Primary.span(span(source, fault.line, fault.column));
        let annotation = if fault.path.is_empty() {
            annotation
        } else {
            annotation.label(fault.path.as_str())
        };
        let snippet = Snippet::source(source).path(file).annotation(annotation);
        renderer.render(&[level.primary_title(fault.message.as_str()).element(snippet)]) + "\n"
    });
    rendered.collect()
}

/// The bytes of the word at a place; the end of the line or of the text when there is none.
fn span(source: &str, line: u32, column: u32) -> std::ops::Range<usize> {
    let before = |number: u32| number.saturating_sub(1) as usize;
    let lines = source.split_inclusive('\n').take(before(line));
    let begin: usize = lines.map(str::len).sum();
    let text = source[begin..].split('\n').next().unwrap_or_default();
    let skipped = text.chars().take(before(column));
    let begin = begin + skipped.map(char::len_utf8).sum::<usize>();
    let rest = || source[begin..].chars();
    let in_word = |c: &char| c.is_alphanumeric() || "_-.".contains(*c);
    let word: usize = rest().take_while(in_word).map(char::len_utf8).sum();
    let one = rest().next().filter(|c| *c != '\n');
    begin..begin + word.max(one.map_or(0, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_shown_in_its_line() {
        let fault = of_detail(
            "mapping.name",
            "line 3, column 18: there is no transform 'upercase'",
        )
        .unwrap();
        let text = render(
            "a.yaml",
            "flow: ü\nmapping:\n  name: source | upercase\n",
            &[fault],
            &Renderer::plain(),
        );
        assert!(
            text.starts_with("error: there is no transform 'upercase'\n --> a.yaml:3:18\n"),
            "{text}"
        );
        assert!(text.contains("\n3 |   name: source | upercase\n"), "{text}");
        assert!(
            text.contains("\n  |                  ^^^^^^^^ mapping.name\n"),
            "{text}"
        );
    }

    #[test]
    fn a_place_beyond_the_text_is_its_end() {
        assert_eq!(span("a: b\n", 1, 4), 3..4);
        assert_eq!(span("a: b\n", 9, 9), 5..5);
        assert_eq!(span("", 1, 1), 0..0);
        assert_eq!(of_detail("name", "is missing"), None);
    }
}
