//! `cargo xtask bench`: builds the service and the program that measures it, and runs the latter,
//! which writes `docs/benchmarks.md`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::{test, workspace};

/// Page of the results of a whole run.
const PAGE: &str = "docs/benchmarks.md";

/// Mappings by other crates: a workspace of its own, because these crates are many and large.
const PEERS: &str = "benches/peers/Cargo.toml";

/// The bare server of published APIs checks whole documents with this crate; Kanat checks only
/// formats and builds it small.
const BARE_JSONSCHEMA: &str = "profile.dist.package.jsonschema.opt-level=3";

/// Committed counts of instructions.
const INSTRUCTIONS: &str = "crates/bench/instructions.json";

/// Binaries of earlier commits, for `bench pair`.
const KEPT_FOLDER: &str = "bench-former";

/// Runs `kanat-bench` with its own options. Times are measured with the `dist` profile, and a whole
/// run writes the page. `--quick` and the counting of instructions use the build of the tests,
/// unless `--dist` asks for the optimised one. `--kanat` names another service to measure; the
/// program that measures is built in any case.
pub fn run(options: &[String]) -> Result<()> {
    let has = |name: &str| options.iter().any(|option| option == name);
    let counts = has("instructions");
    let is_dist = has("--dist") || !(counts || has("--quick"));
    if counts {
        command::installed("valgrind", || command::works("valgrind", &["--version"]))?;
    }
    if is_dist {
        if !has("--kanat") {
            build_dist()?;
        }
        let mut build = cargo([
            "build",
            "--profile",
            "dist",
            "--locked",
            "--package",
            "kanat-bench",
        ]);
        build.args(["--config", BARE_JSONSCHEMA]);
        command::run(build)?;
    } else {
        test::build()?;
    }
    let binaries = workspace::target_folder().join(if is_dist { "dist" } else { "debug" });
    let mut bench = Command::new(binaries.join("kanat-bench"));
    if !has("--kanat") {
        bench.arg("--kanat").arg(binaries.join("kanat"));
    }
    if is_dist && measures_mappings(options) {
        bench.arg("--peers").arg(build_peers()?);
    }
    if is_dist && is_whole(options) {
        bench.arg("--write").arg(workspace::root().join(PAGE));
    }
    bench.args(
        options
            .iter()
            .filter(|option| !["--dist", "--keep"].contains(&option.as_str()))
            .map(former),
    );
    if counts {
        bench
            .arg("--figures")
            .arg(workspace::root().join(INSTRUCTIONS));
    }
    command::run(bench)?;
    if has("--keep") {
        keep(&binaries.join("kanat"))
    } else {
        Ok(())
    }
}

/// Builds the binary of the packages.
pub fn build_dist() -> Result<()> {
    command::run(cargo([
        "build",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "kanat",
    ]))
}

/// Keeps the binary by the commit that it was built from, so that later commits can be measured
/// beside it.
fn keep(binary: &Path) -> Result<()> {
    let mut commit = Command::new("git");
    commit
        .args(["rev-parse", "--short", "HEAD"])
        .current_dir(workspace::root());
    let place = kept(command::output(commit)?.trim());
    std::fs::create_dir_all(place.parent().unwrap_or(Path::new(".")))?;
    std::fs::copy(binary, &place).with_context(|| format!("cannot keep {}", place.display()))?;
    println!("kept as {}", place.display());
    Ok(())
}

fn kept(commit: &str) -> PathBuf {
    workspace::target_folder().join(KEPT_FOLDER).join(commit)
}

/// Replaces the commit of a kept binary by its path.
fn former(option: &String) -> OsString {
    let path = kept(option);
    if path.is_file() {
        path.into()
    } else {
        option.into()
    }
}

/// Builds the program with the mappings of other crates, without `--locked`: its lock file contains
/// our own crates, whose dependencies change.
fn build_peers() -> Result<PathBuf> {
    let folder = workspace::target_folder().join("peers");
    let mut build = cargo([
        "build",
        "--release",
        "--manifest-path",
        PEERS,
        "--target-dir",
    ]);
    build.arg(&folder);
    command::run(build)?;
    Ok(folder.join("release/kanat-bench-peers"))
}

/// Returns whether everything is measured: without `--quick`, and no part is named.
fn is_whole(options: &[String]) -> bool {
    let parts = [
        "--only",
        "--quick",
        "--write",
        "--help",
        "-h",
        "api",
        "adapter",
        "pair",
        "instructions",
    ];
    !options.iter().any(|option| {
        parts
            .iter()
            .any(|part| option.split('=').next() == Some(*part))
    })
}

fn measures_mappings(options: &[String]) -> bool {
    let named = options.iter().any(|option| {
        option
            .to_lowercase()
            .split([',', '='])
            .any(|name| name == "p9")
    });
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
        for part in [
            "--only p1",
            "--only=p1",
            "--quick",
            "api --rounds 3",
            "adapter",
            "pair abc",
            "--help",
        ] {
            assert!(!is_whole(&options(part)), "{part}");
        }
    }

    #[test]
    fn other_crates_are_built_when_they_are_measured() {
        assert!(measures_mappings(&options("")) && measures_mappings(&options("--only P1,P9")));
        assert!(
            !measures_mappings(&options("--only p1,p10")) && !measures_mappings(&options("api"))
        );
    }
}
