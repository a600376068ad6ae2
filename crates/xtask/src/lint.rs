//! `cargo xtask lint`: everything that can be said about the code without running it. A warning is
//! an error.

use anyhow::Result;

use crate::command::{self, cargo};
use crate::{deny, tidy};

/// Runs each check in turn, the quick ones first; stops at the first that fails.
pub fn run() -> Result<()> {
    command::run(cargo(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    deny::run()?;
    command::run(cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    command::run(doc)
}
