//! `kanat login`: tries an address and a key, and remembers both.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, Result};
use kanat_model::Secret;

use crate::cli::Connection;
use crate::client::Client;
use crate::client::credentials::{self, Credentials};
use crate::exit::usage;
use crate::output;

/// Arguments of `kanat login`: `--url` and `--api-key` are those of every command. Without a key it is read from
/// standard input.
#[derive(clap::Args)]
pub struct Login {}

impl Login {
    pub async fn run(self, connection: Connection) -> Result<()> {
        let key = match connection.api_key {
            Some(key) => key,
            None => ask()?,
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

fn ask() -> Result<Secret<String>> {
    let input = std::io::stdin();
    if input.is_terminal() {
        eprint!("API key: ");
    }
    let mut line = String::new();
    input.lock().read_line(&mut line).context("cannot read the API key from standard input")?;
    let key = Secret::new(line.trim().to_owned());
    if key.expose().is_empty() {
        return Err(usage("no API key was given"));
    }
    Ok(key)
}
