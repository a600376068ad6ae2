//! A secret that a person types or another program writes.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, Result};
use kanat_model::Secret;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use crate::exit::failure;

/// Reads the secret called `name` from standard input; a terminal does not show it. None when there
/// is no text.
///
/// # Errors
/// Standard input cannot be read, or the person interrupts.
pub async fn ask(name: &str) -> Result<Option<Secret<String>>> {
    let hidden = if std::io::stdin().is_terminal() {
        let hidden = HiddenInput::begin()?;
        eprint!("{name} (it does not show): ");
        Some(hidden)
    } else {
        None
    };
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = tokio::select! {
        line = read => line?.with_context(|| format!("cannot read the {name} from standard input")),
        _ = tokio::signal::ctrl_c() => Err(failure("nothing was saved")),
    };
    if hidden.is_some() {
        eprintln!();
    }
    drop(hidden);
    let secret = line?.trim().to_owned();
    Ok((!secret.is_empty()).then(|| Secret::new(secret)))
}

/// A terminal that does not show what is typed, until this is dropped.
struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    fn begin() -> Result<Self> {
        let input = std::io::stdin();
        let before = termios::tcgetattr(&input).context("cannot ask the terminal how it is set")?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        termios::tcsetattr(&input, OptionalActions::Now, &silent)
            .context("cannot hide what is typed")?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}
