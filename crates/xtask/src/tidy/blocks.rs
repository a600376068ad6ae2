//! Fenced blocks of the pages: each is marked, and what a shell takes is marked `sh`, so that the
//! tests run it.

use super::Findings;
use crate::workspace::SourceFile;

/// Names that readers of Markdown know for what a shell takes, beside `sh`.
const OTHER_SHELLS: [&str; 4] = ["bash", "shell", "zsh", "shellsession"];

/// Pages whose blocks marked `sh` run in the tests (`tests/it/docs.rs`).
const RUN: [&str; 7] = [
    "README.md",
    "docs/FLOWS.md",
    "docs/GRPC.md",
    "docs/HTTP_API.md",
    "docs/PUBLISHED_APIS.md",
    "docs/first-day.md",
    "examples/README.md",
];

/// Number of blocks that the tests run, and of those that they do not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub run: usize,
    pub not_run: usize,
}

pub fn check(pages: &[SourceFile], findings: &mut Findings) -> Counts {
    let mut counts = Counts::default();
    for page in pages {
        for (line, mark) in marks(&page.text) {
            let place = format!("{}:{line}", page.path);
            let language = mark.split_whitespace().next().unwrap_or_default();
            match language {
                "" => findings.error(
                    &place,
                    "a block without a mark: sh where the tests run it, else text, console, ...",
                ),
                "sh" if RUN.contains(&page.path.as_str()) => counts.run += 1,
                "sh" => findings.error(
                    &place,
                    "a block marked sh on a page that no test follows: mark it console",
                ),
                other if OTHER_SHELLS.contains(&other) => {
                    findings.error(
                        &place,
                        format!(
                            "a block marked {other}: mark it sh where the tests run it, else \
                                 console"
                        ),
                    );
                }
                _ => {}
            }
            counts.not_run += usize::from(language != "sh");
        }
    }
    counts
}

/// The line and the mark of every block's first fence.
fn marks(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let fences = page.lines().enumerate().filter_map(|(index, line)| {
        let mark = line.trim_start().strip_prefix("```")?;
        Some((index + 1, mark.trim()))
    });
    fences.step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(path: &str, text: &str) -> (Counts, Vec<String>) {
        let mut findings = Findings::default();
        let page = SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let counts = check(&[page], &mut findings);
        (counts, findings.errors)
    }

    #[test]
    fn counts_blocks_by_their_marks() {
        let page =
            "```sh terminal=2\na\n```\n\n- x\n\n  ```yaml\n  b\n  ```\n\n```console\n$ c\n```\n";
        assert_eq!(
            checked("README.md", page),
            (Counts { run: 1, not_run: 2 }, Vec::new())
        );
    }

    #[test]
    fn refuses_blocks_that_no_test_can_judge() {
        for (path, page) in [
            ("README.md", "```\na\n```\n"),
            ("README.md", "```bash\na\n```\n"),
            ("docs/OPERATIONS.md", "```sh\na\n```\n"),
        ] {
            let (counts, errors) = checked(path, page);
            assert_eq!(errors.len(), 1, "{page}");
            assert_eq!(counts.run, 0, "{page}");
            assert!(
                errors[0].starts_with(&format!("{path}:1: a block")),
                "{errors:?}"
            );
        }
    }
}
