//! `cargo xtask bench`: builds the service and the program that measures it, and runs the latter.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::{test, workspace};

/// The bare server of published APIs checks whole documents with this crate; Kanat checks only
/// formats and builds it small.
const BARE_JSONSCHEMA: &str = "profile.dist.package.jsonschema.opt-level=3";

/// Committed counts of instructions.
const INSTRUCTIONS: &str = "crates/bench/instructions.json";

/// Binaries of earlier commits, for `bench pair`.
const KEPT_FOLDER: &str = "bench-former";

/// Runs `kanat-bench` with its own options. Times are measured with the `dist` profile. `--quick`
/// and the counting of instructions use the build of the tests, unless `--dist` asks for the
/// optimised one. `--kanat` names another service to measure; the program that measures is built in
/// any case.
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
    bench.args(
        options
            .iter()
            .filter(|option| !["--dist", "--keep"].contains(&option.as_str()))
            .map(former),
    );
    if counts && !has("--figures") {
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
