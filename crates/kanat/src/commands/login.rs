//! `kanat login`: tries an address and a key, and remembers both.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, Result};
use kanat_model::Secret;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use crate::cli::Connection;
use crate::client::Client;
use crate::client::credentials::{self, Credentials};
use crate::exit::{failure, usage};
use crate::output;

/// Arguments of `kanat login`: `--url` and `--api-key` are those of every command. Without a key it is read from
/// standard input.
#[derive(clap::Args)]
pub struct Login {}

impl Login {
    pub async fn run(self, connection: Connection) -> Result<()> {
        let key = match connection.api_key {
            Some(key) => key,
            None => ask().await?,
        };
        let saved = credentials::load().unwrap_or_default();
        let asked = Connection { url: connection.url.or(saved.url), api_key: Some(key.clone()), env: connection.env };
        let client = Client::new(asked)?;
        let environments = client.get("/environments", &[]).await.context("the key was not saved")?;
        let credentials = Credentials { url: Some(client.url().to_owned()), api_key: Some(key.expose().clone()) };
        let path = credentials::save(&credentials)?;
        let names: Vec<String> = environments.list("data").iter().map(|item| item.text("name")).collect();
        output::line(&format!("logged in to {} (environments: {})", client.url(), names.join(", ")))?;
        output::hint(&format!("saved in {}", path.display()));
        Ok(())
    }
}

/// Reads the key from standard input; a terminal does not show it.
async fn ask() -> Result<Secret<String>> {
    let hidden = if std::io::stdin().is_terminal() {
        let hidden = HiddenInput::begin()?;
        eprint!("API key (it does not show): ");
        Some(hidden)
    } else {
        None
    };
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = tokio::select! {
        line = read => line?.context("cannot read the API key from standard input"),
        _ = tokio::signal::ctrl_c() => Err(failure("nothing was saved")),
    };
    if hidden.is_some() {
        eprintln!();
    }
    drop(hidden);
    let key = Secret::new(line?.trim().to_owned());
    if key.expose().is_empty() {
        return Err(usage("no API key was given"));
    }
    Ok(key)
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
        termios::tcsetattr(&input, OptionalActions::Now, &silent).context("cannot hide what is typed")?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}
