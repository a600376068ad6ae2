//! `cargo xtask bench`: builds what is measured and what measures, and lets the latter write `docs/benchmarks.md`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::{test, workspace};

/// Crates that do what the mapping does: a workspace of its own, for they are many and large.
const PEERS: &str = "benches/peers/Cargo.toml";

/// The bare server of published APIs checks all with it, Kanat formats alone, and has it small.
const BARE_JSONSCHEMA: &str = "profile.release.package.jsonschema.opt-level=3";

/// What the counts of instructions are held against.
const INSTRUCTIONS: &str = "crates/bench/instructions.json";

/// Runs `kanat-bench` with these options of its own. What is judged by time is a release build, and a whole run of it writes
/// its page; a quick look, and the counting of instructions, take the build that the tests take. `--kanat` names another
/// service to measure; what measures it is built all the same.
pub fn run(options: &[String]) -> Result<()> {
    let has = |name: &str| options.iter().any(|option| option == name);
    let counts = has("instructions");
    let build = if !has("--release") && (counts || has("--quick")) { "debug" } else { "release" };
    if counts {
        command::installed("valgrind", || command::works("valgrind", &["--version"]))?;
    }
    if build == "release" {
        if !has("--kanat") {
            command::run(cargo(["build", "--release", "--locked", "--package", "kanat"]))?;
        }
        let mut build = cargo(["build", "--release", "--locked", "--package", "kanat-bench"]);
        build.args(["--config", BARE_JSONSCHEMA]);
        command::run(build)?;
    } else {
        test::build()?;
    }
    let binaries = workspace::target_folder().join(build);
    let mut bench = Command::new(binaries.join("kanat-bench"));
    if !has("--kanat") {
        bench.arg("--kanat").arg(binaries.join("kanat"));
    }
    if build == "release" && measures_mappings(options) {
        bench.arg("--peers").arg(build_peers()?);
    }
    if build == "release" && is_whole(options) {
        bench.arg("--write").arg(workspace::root().join("docs"));
    }
    bench.args(options.iter().filter(|option| *option != "--release"));
    if counts {
        bench.arg("--figures").arg(workspace::root().join(INSTRUCTIONS));
    }
    command::run(bench)
}

/// Their lock file follows what our own crates depend on, which changes without a look at it: so it is not held to.
fn build_peers() -> Result<PathBuf> {
    let folder = workspace::target_folder().join("peers");
    let mut build = cargo(["build", "--release", "--manifest-path", PEERS, "--target-dir"]);
    build.arg(&folder);
    command::run(build)?;
    Ok(folder.join("release/kanat-bench-peers"))
}

/// Whether all is measured: no part is named, and it is not a quick look.
fn is_whole(options: &[String]) -> bool {
    let parts = ["--only", "--quick", "--write", "--help", "-h", "api", "adapter", "instructions"];
    !options.iter().any(|option| parts.iter().any(|part| option.split('=').next() == Some(*part)))
}

fn measures_mappings(options: &[String]) -> bool {
    let named = options.iter().any(|option| option.to_lowercase().split([',', '=']).any(|name| name == "p9"));
    is_whole(options) || named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn only_a_whole_run_writes_the_page() {
        assert!(is_whole(&options("")) && is_whole(&options("--rounds 3 --seconds 2")));
        for part in ["--only p1", "--only=p1", "--quick", "api --rounds 3", "adapter", "--help"] {
            assert!(!is_whole(&options(part)), "{part}");
        }
    }

    #[test]
    fn other_crates_are_built_when_they_are_measured() {
        assert!(measures_mappings(&options("")) && measures_mappings(&options("--only P1,P9")));
        assert!(!measures_mappings(&options("--only p1,p10")) && !measures_mappings(&options("api")));
    }
}
