//! Which crate may depend on which: a ladder whose top alone knows processes, and two planes that
//! do not know each other.

use std::collections::BTreeMap;

use super::Findings;
use crate::workspace::Member;

/// The rungs from the bottom. A crate depends on its own rung and on those below it.
const LADDER: [&[&str]; 5] = [
    &[
        "kanat-model",
        "kanat-proto",
        "kanat-json",
        "kanat-telemetry",
        "kanat-testing-postgres",
        "kanat-testing-mail",
        "kanat-failpoint",
    ],
    &[
        "kanat-mapping",
        "kanat-script",
        "kanat-catalog",
        "kanat-schema",
        "kanat-auth",
        "kanat-net",
        "kanat-mail",
        "kanat-plan-stream",
        "kanat-database",
        "kanat-rate-limit",
    ],
    &[
        "kanat-flow",
        "kanat-engine",
        "kanat-store",
        "kanat-message-log",
        "kanat-gateway",
    ],
    &["kanat-control-plane", "kanat-data-plane"],
    &["kanat", "kanat-tests", "kanat-bench", "kanat-fuzz", "xtask"],
];
const PLANES: [&str; 2] = ["kanat-control-plane", "kanat-data-plane"];
/// The data plane runs compiled plans: it knows neither definitions nor the configuration's tables.
const NOT_IN_THE_DATA_PLANE: [&str; 2] = ["kanat-store", "kanat-gateway"];
const DEEPEST: usize = 6;

pub fn check(members: &[Member], findings: &mut Findings) {
    for member in members {
        let place = format!("{}/Cargo.toml", member.folder);
        let Some(rung) = rung(&member.name) else {
            findings.error(
                place,
                format!(
                    "{} has no rung on the ladder in xtask's tidy/crates.rs",
                    member.name
                ),
            );
            continue;
        };
        for dependency in &member.dependencies {
            let name = dependency.name.as_str();
            if PLANES.contains(&member.name.as_str()) && PLANES.contains(&name) {
                findings.error(
                    &place,
                    format!(
                        "the planes do not depend on each other, and {} does",
                        member.name
                    ),
                );
            }
            if !dependency.dev && self::rung(name).is_some_and(|below| below > rung) {
                findings.error(
                    &place,
                    format!("{name} stands above {} on the ladder", member.name),
                );
            }
            if member.name == "kanat-data-plane"
                && !dependency.dev
                && NOT_IN_THE_DATA_PLANE.contains(&name)
            {
                findings.error(&place, format!("the data plane does without {name}"));
            }
        }
    }
    let graph: BTreeMap<&str, Vec<&str>> = members
        .iter()
        .map(|member| (member.name.as_str(), ours(member)))
        .collect();
    for member in members {
        let depth = depth(&member.name, &graph);
        if depth > DEEPEST {
            findings.error(
                &member.folder,
                format!("the crate graph is {depth} deep here, at most {DEEPEST}"),
            );
        }
    }
}

fn rung(name: &str) -> Option<usize> {
    LADDER.iter().position(|rung| rung.contains(&name))
}

fn ours(member: &Member) -> Vec<&str> {
    let dependencies = member
        .dependencies
        .iter()
        .filter(|dependency| !dependency.dev);
    dependencies
        .map(|dependency| dependency.name.as_str())
        .filter(|name| rung(name).is_some())
        .collect()
}

/// The crates on the longest way down from `name`, itself included. Cargo has seen to it that there
/// is no circle.
fn depth(name: &str, graph: &BTreeMap<&str, Vec<&str>>) -> usize {
    let below = graph.get(name).into_iter().flatten();
    1 + below
        .map(|dependency| depth(dependency, graph))
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn errors(name: &str, dependency: &str) -> Vec<String> {
        let dependencies = vec![Dependency {
            name: dependency.to_owned(),
            dev: false,
        }];
        let mut findings = Findings::default();
        check(
            &[Member {
                name: name.to_owned(),
                folder: name.to_owned(),
                dependencies,
            }],
            &mut findings,
        );
        findings.errors
    }

    #[test]
    fn lets_a_crate_stand_on_what_is_below() {
        assert!(errors("kanat-engine", "kanat-mapping").is_empty());
        assert!(errors("kanat", "kanat-control-plane").is_empty());
    }

    #[test]
    fn refuses_a_step_up_and_a_plane_that_knows_the_other() {
        assert_eq!(errors("kanat-mapping", "kanat-flow").len(), 1);
        assert_eq!(errors("kanat-data-plane", "kanat-control-plane").len(), 1);
        assert_eq!(errors("kanat-data-plane", "kanat-store").len(), 1);
    }
}
