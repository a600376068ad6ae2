//! References of the documents exist: targets of links, and paths into the tree in backticks.

use super::Findings;
use crate::workspace::{self, SourceFile};

/// A path in backticks is checked when it begins with one of these.
const FOLDERS: [&str; 8] = [
    "crates/",
    "control-plane/",
    "data-plane/",
    "proto/",
    "docs/",
    "examples/",
    "tests/",
    "deploy/",
];

pub fn check(files: &[SourceFile], findings: &mut Findings) {
    for file in files {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            for target in links(line) {
                let target = if folder.is_empty() {
                    target.to_owned()
                } else {
                    format!("{folder}/{target}")
                };
                missing(&target, &place, findings);
            }
            for path in paths(line).filter(|_| !is_superseded(file)) {
                missing(path, &place, findings);
            }
        }
    }
}

/// Returns whether a file is a decision that a later one replaced: it describes code of its time.
fn is_superseded(file: &SourceFile) -> bool {
    file.path.starts_with("docs/decisions/") && file.text.contains("**Superseded by**")
}

fn missing(path: &str, place: &str, findings: &mut Findings) {
    if !workspace::root().join(path).exists() {
        findings.error(place, format!("{path} does not exist"));
    }
}

/// Targets of `[text](target)` within the tree, without their `#fragment`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .filter_map(|(target, _)| {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
            (!elsewhere).then_some(path)
        })
}

/// Paths in backticks; those with a `<name>`, `{a,b}` or `*` in them stand for many and are passed
/// over.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|text| {
        let pattern = text.contains(['<', '{', '*', ' ', '$']) || text.contains("NNNN");
        !pattern && FOLDERS.iter().any(|folder| text.starts_with(folder))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_and_paths_into_the_tree() {
        let line = "See [adding](ADDING.md#a-resource), [the site](https://example.com) and \
                    `crates/flow/src/lib.rs`.";
        assert_eq!(links(line).collect::<Vec<_>>(), ["ADDING.md"]);
        assert_eq!(paths(line).collect::<Vec<_>>(), ["crates/flow/src/lib.rs"]);
    }

    #[test]
    fn passes_over_patterns() {
        assert_eq!(
            paths("`proto/kanat/v1/<resource>.proto` and `crates/*`").count(),
            0
        );
    }
}
