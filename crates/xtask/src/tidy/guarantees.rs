//! The tests that the pages of guarantees and of threats name exist: a name in backticks after a
//! path is a function of that file.

use super::Findings;
use crate::workspace::SourceFile;

const PAGES: [&str; 2] = ["docs/guarantees.md", "docs/security.md"];

pub fn check(pages: &[SourceFile], sources: &[SourceFile], findings: &mut Findings) {
    for page in pages
        .iter()
        .filter(|page| PAGES.contains(&page.path.as_str()))
    {
        for (index, line) in page.text.lines().enumerate() {
            for (path, test) in tests(line) {
                let source = sources.iter().find(|source| source.path == path);
                // A path that does not exist is found with those of the other pages.
                if source.is_some_and(|source| !source.text.contains(&format!("fn {test}("))) {
                    findings.error(
                        format!("{}:{}", page.path, index + 1),
                        format!("{path} has no test {test}"),
                    );
                }
            }
        }
    }
}

/// Each test of a line, with the path that stands before it.
fn tests(line: &str) -> Vec<(&str, &str)> {
    let mut path = None;
    let mut tests = Vec::new();
    for text in line.split('`').skip(1).step_by(2) {
        let name = text.contains('_')
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if text.ends_with(".rs") {
            path = Some(text);
        } else if let Some(path) = path.filter(|_| name) {
            tests.push((path, text));
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn refuses_a_test_that_is_not_in_its_file() {
        let line = "| a `Retry-After` | `tests/it/a.rs` `is_there` `is_not_there` |";
        for page in PAGES {
            let mut findings = Findings::default();
            check(
                &[file(page, line)],
                &[file("tests/it/a.rs", "async fn is_there() {}")],
                &mut findings,
            );
            assert_eq!(
                findings.errors,
                [format!("{page}:1: tests/it/a.rs has no test is_not_there")]
            );
        }
    }
}
