//! `cargo xtask tidy`: the rules of the tree that neither rustfmt nor clippy knows. One file for
//! each kind of rule.

mod blocks;
mod crates;
mod docs;
mod failpoints;
mod files;
mod guarantees;
mod knowledge;
mod manifests;
mod modules;
mod proto;
mod vocabulary;

use anyhow::{Result, bail};

use crate::workspace;

/// Broken rules.
#[derive(Default)]
pub struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Findings {
    fn error(&mut self, place: impl std::fmt::Display, message: impl std::fmt::Display) {
        self.errors.push(format!("{place}: {message}"));
    }

    fn warning(&mut self, place: impl std::fmt::Display, message: impl std::fmt::Display) {
        self.warnings.push(format!("{place}: {message}"));
    }
}

/// Checks every rule and reports all that break one.
pub fn run() -> Result<()> {
    eprintln!("\n$ tidy");
    let mut findings = Findings::default();
    let sources = workspace::files(&["rs"])?;
    let members = workspace::members()?;
    files::check(&sources, &mut findings);
    modules::check(&sources, &mut findings)?;
    knowledge::check(&sources, &members, &mut findings);
    crates::check(&members, &mut findings);
    manifests::check(&workspace::files(&["toml"])?, &mut findings);
    failpoints::check(&failpoints::resolved()?, &mut findings);
    let protos = workspace::files(&["proto"])?;
    let pages = workspace::files(&["md"])?;
    vocabulary::check(&sources, &pages, &mut findings)?;
    proto::check(&protos, &pages, &mut findings);
    docs::check(&pages, &mut findings);
    let shown = blocks::check(&pages, &mut findings);
    eprintln!(
        "  {} blocks of the pages run in the tests, {} are only shown",
        shown.run, shown.not_run
    );
    guarantees::check(&pages, &sources, &mut findings);
    for warning in &findings.warnings {
        eprintln!("  warning: {warning}");
    }
    for error in &findings.errors {
        eprintln!("  error: {error}");
    }
    if findings.errors.is_empty() {
        Ok(())
    } else {
        bail!("{} broken rules of the tree", findings.errors.len())
    }
}
