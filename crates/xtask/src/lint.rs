//! `cargo xtask lint`: everything that can be said about the code without running it. A warning is an error.

use anyhow::Result;

use crate::command::{self, cargo};
use crate::{deny, tidy};

/// Runs each check in turn, the quick ones first; stops at the first that fails.
pub fn run() -> Result<()> {
    command::run(cargo(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    deny::run()?;
    command::run(cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    // The binary as it is shipped, without what tests make of its dependencies.
    command::run(cargo(["check", "--package", "kanat", "--locked"]))?;
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    command::run(doc)
}
