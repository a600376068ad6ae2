//! Consent to what cannot be undone or goes to many: a command announces it first, then asks on a
//! terminal.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, Result};

use crate::exit::{DryRun, failure};
use crate::output;

/// Flags of commands that ask before they act.
#[derive(clap::Args, Clone, Copy)]
pub struct Consent {
    /// Act without asking; needed where no terminal can be asked.
    #[arg(short, long)]
    yes: bool,
    /// Tell what would be done, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl Consent {
    /// Prints `what` is about to be done, and asks for consent unless `--yes` gives it.
    ///
    /// # Errors
    ///
    /// When the answer is no, when there is neither `--yes` nor a terminal, and in a dry run, which
    /// [`DryRun`] ends.
    pub fn ask(self, what: &str) -> Result<()> {
        if self.dry_run {
            output::line(what)?;
            return Err(DryRun.into());
        }
        if self.yes {
            return Ok(());
        }
        output::hint(what);
        let input = std::io::stdin();
        let errors = std::io::stderr();
        if !input.is_terminal() || !errors.is_terminal() {
            return Err(failure(
                "nothing was done: there is no terminal to ask at; give --yes to go on",
            ));
        }
        write!(errors.lock(), "go on? [y/N] ")?;
        let mut answer = String::new();
        input
            .lock()
            .read_line(&mut answer)
            .context("cannot read the answer")?;
        if means_yes(&answer) {
            Ok(())
        } else {
            Err(failure("nothing was done"))
        }
    }

    /// Prints `what` would be done when this is a dry run, and goes on without a question
    /// otherwise.
    ///
    /// # Errors
    ///
    /// In a dry run, which [`DryRun`] ends.
    pub fn announce(self, what: &str) -> Result<()> {
        Self {
            yes: !self.dry_run,
            ..self
        }
        .ask(what)
    }

    /// Returns the verb of the announcement: a dry run does not act.
    pub fn will(self) -> &'static str {
        if self.dry_run { "would" } else { "will" }
    }

    /// Returns whether the command is only to say what it would do.
    pub fn is_dry_run(self) -> bool {
        self.dry_run
    }

    /// Returns whether the answer is given on the command line, so that nothing has to be looked up
    /// for a question. The service itself then says what it refuses.
    pub fn is_given(self) -> bool {
        self.yes
    }
}

fn means_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in [
            ("y\n", true),
            ("Yes\r\n", true),
            ("\n", false),
            ("", false),
            ("yep", false),
        ] {
            assert_eq!(means_yes(answer), expected, "{answer:?}");
        }
    }
}
