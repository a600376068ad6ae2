//! Checks data files of the connector catalog with the code that reads them.

use anyhow::{Result, bail};

use crate::command::{self, cargo};

const USAGE: &str = "usage: cargo xtask catalog check FILE...";

/// `check FILE...`; paths are taken from where the command was given.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((task, files)) if task == "check" && !files.is_empty() => check(files),
        Some(_) | None => bail!("{USAGE}"),
    }
}

fn check(files: &[String]) -> Result<()> {
    let mut check = cargo([
        "run",
        "--quiet",
        "--package",
        "kanat-catalog",
        "--example",
        "check_entry",
        "--",
    ]);
    for file in files {
        check.arg(std::path::absolute(file)?);
    }
    command::run(check)
}
