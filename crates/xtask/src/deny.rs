//! Licences, banned crates and sources of others' code: cargo-deny with `deny.toml`, brought into
//! the target folder where the machine has none.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::workspace;

const VERSION: &str = "0.20.2";
/// The advisory database needs a download, so that advisories are a check of their own.
const CHECKS: [&str; 4] = ["check", "bans", "licenses", "sources"];

/// Runs cargo-deny; builds it first when it is missing, which takes a minute or two, once.
pub fn run() -> Result<()> {
    if command::works("cargo-deny", &["--version"]) {
        return check(Command::new("cargo-deny"));
    }
    let ours = workspace::target_folder().join("tools");
    let binary = ours.join("bin/cargo-deny");
    if !binary.exists() {
        install(ours)?;
    }
    check(Command::new(binary))
}

fn install(root: PathBuf) -> Result<()> {
    eprintln!(
        "\ncargo-deny is missing: building {VERSION} into {}",
        root.display()
    );
    let mut install = cargo([
        "install",
        "--locked",
        "--quiet",
        // It runs for seconds: an optimised one takes three times as long to build.
        "--debug",
        "--version",
        VERSION,
        "cargo-deny",
        "--root",
    ]);
    install.arg(root).env("CARGO_PROFILE_DEV_DEBUG", "false");
    command::run(install)
}

fn check(mut deny: Command) -> Result<()> {
    deny.arg("--locked")
        .args(CHECKS)
        .current_dir(workspace::root());
    command::run(deny)
}
