//! `cargo xtask lint`: everything that can be said about the code without running it. A warning is
//! an error.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::{deny, tidy};

/// Runs each check in turn, the quick ones first; stops at the first that fails.
pub fn run() -> Result<()> {
    command::run(cargo(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    deny::run()?;
    let mut lints = cargo(["check", "--workspace", "--all-targets", "--locked"]);
    with_clippy(&mut lints)?;
    command::run(lints)?;
    // There are no examples: they give dependencies the features that tests need, with which they
    // have just been compiled.
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    doc.args(["--lib", "--bins", "--examples"]);
    with_clippy(&mut doc)?;
    doc.env("RUSTDOCFLAGS", "-D warnings");
    command::run(doc)
}

/// Lets clippy compile the crates of the workspace, as `cargo clippy` does. What it has checked for
/// one command is there for the next one, which rustdoc would have checked once more.
fn with_clippy(command: &mut Command) -> Result<()> {
    let mut sysroot = Command::new("rustc");
    sysroot
        .args(["--print", "sysroot"])
        .current_dir(crate::workspace::root());
    let sysroot = command::output(sysroot)?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    command
        .env("RUSTC_WORKSPACE_WRAPPER", driver)
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings");
    Ok(())
}
