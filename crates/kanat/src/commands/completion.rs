//! `kanat completion SHELL`.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// Arguments of `kanat completion`.
#[derive(clap::Args)]
pub struct Completion {
    shell: Shell,
}

impl Completion {
    pub fn run(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::cli::Cli::command(), "kanat", &mut script);
        crate::output::line(&String::from_utf8_lossy(&script))
    }
}
