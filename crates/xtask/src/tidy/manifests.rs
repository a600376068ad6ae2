//! Versions and features stand once, in the workspace: a member only names what it uses.

use super::Findings;
use crate::workspace::SourceFile;

/// Its code is generated, by a generator that does not know our lints.
const GENERATED: &str = "crates/proto/Cargo.toml";
/// A workspace of its own, of what is only compared with.
const ELSEWHERE: &str = "benches/";

pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let ours = |file: &&SourceFile| file.path != "Cargo.toml" && !file.path.starts_with(ELSEWHERE);
    for file in files
        .iter()
        .filter(|file| file.name() == "Cargo.toml")
        .filter(ours)
    {
        let Ok(manifest) = file.text.parse::<toml::Table>() else {
            findings.error(&file.path, "not TOML");
            continue;
        };
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            for (name, dependency) in dependencies {
                if !from_the_workspace(section, dependency) {
                    let message = format!(
                        "write `{name}.workspace = true`, the version goes into the root Cargo.toml"
                    );
                    findings.error(&file.path, message);
                }
            }
        }
        let lints = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        if lints != Some(true) && file.path != GENERATED {
            findings.error(
                &file.path,
                "the workspace's lints hold here too: `[lints]` with `workspace = true`",
            );
        }
    }
}

/// `{ workspace = true }` and nothing beside it: a feature added by one member rebuilds the crate
/// for all. What is for tests alone must not be in what users run, and is worth that. What a
/// feature of the member brings in may be optional.
fn from_the_workspace(section: &str, dependency: &toml::Value) -> bool {
    let Some(table) = dependency.as_table() else {
        return false;
    };
    let for_tests = |features: &toml::Value| {
        features
            .as_array()
            .is_some_and(|all| all == &["test-util".into()])
    };
    table.iter().all(|(key, value)| match key.as_str() {
        "workspace" => value.as_bool() == Some(true),
        "optional" => section == "dependencies" && value.as_bool() == Some(true),
        "features" => section == "dev-dependencies" && for_tests(value),
        _ => false,
    }) && table.contains_key("workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(dependency: &str) -> usize {
        errors_in("dependencies", dependency)
    }

    fn errors_in(section: &str, dependency: &str) -> usize {
        let text = format!("[lints]\nworkspace = true\n[{section}]\n{dependency}\n");
        let mut findings = Findings::default();
        check(
            &[SourceFile {
                path: "crates/a/Cargo.toml".to_owned(),
                text,
            }],
            &mut findings,
        );
        findings.errors.len()
    }

    #[test]
    fn refuses_a_version_or_a_feature_of_a_member_s_own() {
        assert_eq!(errors("bytes.workspace = true"), 0);
        assert_eq!(errors("bytes = \"1\""), 1);
        assert_eq!(
            errors("bytes = { workspace = true, features = [\"serde\"] }"),
            1
        );
    }

    #[test]
    fn lets_tests_have_what_is_for_tests_alone() {
        let tests = "{ workspace = true, features = [\"test-util\"] }";
        let more = "{ workspace = true, features = [\"fs\"] }";
        assert_eq!(
            errors_in("dev-dependencies", &format!("tokio = {tests}")),
            0
        );
        assert_eq!(errors(&format!("tokio = {tests}")), 1);
        assert_eq!(errors_in("dev-dependencies", &format!("tokio = {more}")), 1);
    }
}
