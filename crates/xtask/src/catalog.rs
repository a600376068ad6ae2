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
    let files = files.iter().map(std::path::absolute);
    let files = files.collect::<Result<Vec<_>, _>>()?;
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        bail!("there is no file {}", missing.display());
    }
    let mut check = cargo([
        "test",
        "--quiet",
        "--package",
        "kanat-catalog",
        "--lib",
        "--",
        "--nocapture",
        "files_of_an_author_are_entries",
    ]);
    check.env("CATALOG_FILES", std::env::join_paths(files)?);
    command::run(check)
}
