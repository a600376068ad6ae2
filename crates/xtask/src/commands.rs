//! `cargo xtask commands`: writes the list of commands in docs/CLI.md from their definitions. A
//! test of the program holds the definitions, and compares the page with them in every other run.

use anyhow::Result;

use crate::command::{cargo, run as run_command};

/// Test that knows the page as it has to be.
const TEST: &str = "the_page_has_every_command_with_its_flags";

/// Writes the list.
///
/// # Errors
/// A program that cannot be built, and a page that cannot be written.
pub fn run() -> Result<()> {
    let mut test = cargo(["test", "--locked", "--package", "kanat", "--bin", "kanat"]);
    test.arg(TEST).env("UPDATE_PAGES", "1");
    run_command(test)
}
