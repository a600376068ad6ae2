//! Each Rust file by itself: its name, its first line, its length and width, and no notes to come
//! back to.

use super::Findings;
use crate::words::MAX_COLUMNS;
use crate::workspace::SourceFile;

/// Names that say nothing about what is in the file.
const VAGUE_NAMES: [&str; 7] = [
    "utils", "util", "helpers", "helper", "common", "misc", "types",
];
const WARN_LINES: usize = 400;
const MAX_LINES: usize = 600;

pub fn check(files: &[SourceFile], findings: &mut Findings) {
    for file in files {
        name(file, findings);
        first_line(file, findings);
        length(file, findings);
        width(file, findings);
        notes(file, findings);
    }
}

fn name(file: &SourceFile, findings: &mut Findings) {
    let stem = file.name().trim_end_matches(".rs");
    if stem == "mod" {
        findings.error(
            &file.path,
            "`name.rs` stands beside `name/`; there is no mod.rs",
        );
    }
    if VAGUE_NAMES.contains(&stem) {
        findings.error(&file.path, "name the file by the concept in it");
    }
}

fn first_line(file: &SourceFile, findings: &mut Findings) {
    let first = file.text.lines().next().unwrap_or_default();
    if first
        .strip_prefix("//! ")
        .is_none_or(|said| said.trim().len() < 10)
    {
        findings.error(
            &file.path,
            "the first line is `//!` and says what the file is for",
        );
    }
}

fn length(file: &SourceFile, findings: &mut Findings) {
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        findings.error(
            &file.path,
            format!("{lines} lines, at most {MAX_LINES}: look for the second concept"),
        );
    } else if lines > WARN_LINES {
        findings.warning(
            &file.path,
            format!("{lines} lines, more than {WARN_LINES}: look for the second concept"),
        );
    }
}

/// Finds lines that are too long: rustfmt does not break texts, nor what stands in macros.
fn width(file: &SourceFile, findings: &mut Findings) {
    for (index, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > MAX_COLUMNS {
            findings.error(
                format!("{}:{}", file.path, index + 1),
                format!("{columns} columns, at most {MAX_COLUMNS}"),
            );
        }
    }
}

fn notes(file: &SourceFile, findings: &mut Findings) {
    // Put together here, so that this file does not find itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    for (index, line) in file.text.lines().enumerate() {
        if let Some(word) = words.iter().find(|word| line.contains(**word)) {
            findings.error(
                format!("{}:{}", file.path, index + 1),
                format!("{word}: do it, or open an issue"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(
            &[SourceFile {
                path: path.to_owned(),
                text: text.to_owned(),
            }],
            &mut findings,
        );
        findings.errors
    }

    #[test]
    fn accepts_a_file_that_says_what_it_is_for() {
        assert!(errors("a/retry.rs", "//! When a delivery is tried again.\n").is_empty());
    }

    #[test]
    fn refuses_vague_names_missing_docs_and_notes() {
        assert_eq!(errors("a/utils.rs", "//! Things of every kind.\n").len(), 1);
        assert_eq!(
            errors("a/retry/mod.rs", "//! When a delivery is tried again.\n").len(),
            1
        );
        assert_eq!(errors("a/retry.rs", "use std::fmt;\n").len(), 1);
        let note = concat!("//! When a delivery is tried again.\n// TO", "DO later\n");
        assert_eq!(errors("a/retry.rs", note).len(), 1);
    }

    #[test]
    fn refuses_a_file_of_more_than_six_hundred_lines() {
        let text = format!("//! When a delivery is tried again.\n{}", "\n".repeat(600));
        assert_eq!(errors("a/retry.rs", &text).len(), 1);
    }

    #[test]
    fn refuses_a_line_of_more_than_a_hundred_columns() {
        let text = |columns| {
            let line = "ü".repeat(columns);
            format!("//! When a delivery is tried again.\n{line}\n")
        };
        assert!(errors("a/retry.rs", &text(100)).is_empty());
        assert_eq!(
            errors("a/retry.rs", &text(101)),
            ["a/retry.rs:2: 101 columns, at most 100"]
        );
    }
}
