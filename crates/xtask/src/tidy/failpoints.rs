//! No build that is not made for the fault tests has points at which it dies: only
//! `cargo xtask test` and `soak` ask for the feature. What `--release` is asked to make of it, the
//! compiler refuses: `crates/failpoint/src/lib.rs`.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Findings;
use crate::command::{self, cargo};
use crate::workspace::{list, text};

const CRATE: &str = "kanat-failpoint";

/// Resolves the whole workspace with cargo, without features.
pub fn resolved() -> Result<Value> {
    let metadata = command::output(cargo(["metadata", "--locked", "--format-version", "1"]))?;
    serde_json::from_str(&metadata).context("cannot read what `cargo metadata` printed")
}

pub fn check(resolved: &Value, findings: &mut Findings) {
    let packages = list(resolved, "packages")
        .iter()
        .filter(|package| text(package, "name") == CRATE);
    let ids: Vec<_> = packages.map(|package| text(package, "id")).collect();
    let nodes = resolved
        .get("resolve")
        .map_or(&[][..], |resolve| list(resolve, "nodes"));
    let found: Vec<_> = nodes
        .iter()
        .filter(|node| ids.contains(&text(node, "id")))
        .collect();
    if found.is_empty() {
        findings.error(
            CRATE,
            "it is not among the crates: this rule looks at nothing",
        );
    }
    for feature in found
        .iter()
        .flat_map(|node| list(node, "features"))
        .filter_map(Value::as_str)
    {
        findings.error(
            CRATE,
            format!(
                "a build that asks for no features has its {feature:?}: no default may name it"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(name: &str, features: &[&str]) -> usize {
        let mut findings = Findings::default();
        let resolved = json!({
            "packages": [{ "name": name, "id": "one" }, { "name": "kanat", "id": "two" }],
            "resolve": {
                "nodes": [
                    { "id": "one", "features": features },
                    { "id": "two", "features": ["default"] },
                ],
            },
        });
        check(&resolved, &mut findings);
        findings.errors.len()
    }

    #[test]
    fn refuses_points_that_nobody_asked_for() {
        assert_eq!(errors(CRATE, &[]), 0);
        assert_eq!(errors(CRATE, &["enabled"]), 1);
        assert_eq!(errors("renamed", &[]), 1);
    }
}
