//! The contract explains itself: every service and every method in `proto/kanat` has a comment
//! above it.

use super::Findings;
use crate::permissions;
use crate::workspace::SourceFile;

pub fn check(files: &[SourceFile], pages: &[SourceFile], findings: &mut Findings) {
    for (place, problem) in permissions::missing(files) {
        findings.error(place, problem);
    }
    let page = pages.iter().find(|page| page.path == permissions::PAGE);
    if page.is_none_or(|page| page.text != permissions::page(files)) {
        let problem = "is not what proto/ says: run `cargo xtask permissions`";
        findings.error(permissions::PAGE, problem);
    }
    comments(files, findings);
}

fn comments(files: &[SourceFile], findings: &mut Findings) {
    for file in files
        .iter()
        .filter(|file| file.path.starts_with("proto/kanat/"))
    {
        let mut before = "";
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim();
            let named = line.starts_with("rpc ") || line.starts_with("service ");
            if named && !before.starts_with("//") {
                findings.error(
                    format!("{}:{}", file.path, index + 1),
                    "say above it what it does",
                );
            }
            before = line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_a_comment_above_a_method() {
        let text =
            "// Flows.\nservice FlowService {\n  rpc GetFlow(GetFlowRequest) returns (Flow);\n}\n"
                .to_owned();
        let mut findings = Findings::default();
        comments(
            &[SourceFile {
                path: "proto/kanat/v1/flow.proto".to_owned(),
                text,
            }],
            &mut findings,
        );
        assert_eq!(
            findings.errors,
            ["proto/kanat/v1/flow.proto:3: say above it what it does"]
        );
    }
}
