//! `cargo xtask bench`: builds the release binary and the load generator, and lets the latter measure the former.

use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::workspace;

/// Builds in release and runs `kanat-bench` on the `kanat` beside it; `options` are its own.
pub fn run(options: &[String]) -> Result<()> {
    command::run(cargo(["build", "--release", "--locked", "--package", "kanat", "--package", "kanat-bench"]))?;
    let binaries = workspace::target_folder().join("release");
    let mut bench = Command::new(binaries.join("kanat-bench"));
    bench.arg("--kanat").arg(binaries.join("kanat")).args(options);
    command::run(bench)
}
