//! `kanat login`: tries an address and a key, and remembers both.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, Result};
use kanat_model::Secret;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use crate::cli::Connection;
use crate::client::credentials::{self, Credentials};
use crate::client::name::ENVIRONMENT;
use crate::client::{Client, Refusal};
use crate::exit::{failure, usage};
use crate::output::{self, Json};

/// Arguments of `kanat login`: `--url` and `--api-key` are those of every command. Without a key it
/// is read from standard input.
#[derive(clap::Args)]
pub struct Login {}

impl Login {
    pub async fn run(self, connection: Connection) -> Result<()> {
        let key = match connection.api_key {
            Some(key) => key,
            None => ask().await?,
        };
        let saved = credentials::load().unwrap_or_default();
        let asked = Connection {
            url: connection.url.or(saved.url),
            api_key: Some(key.clone()),
            env: connection.env.clone(),
        };
        let client = Client::new(asked)?;
        let answer =
            client.get("/environments", &[]).await.map_err(|error| {
                match is_of_another(&error) {
                    true => no_service(&client),
                    false => error.context("the key was not saved"),
                }
            })?;
        let environments = environments(&answer).ok_or_else(|| no_service(&client))?;
        let credentials = Credentials {
            url: Some(client.url().to_owned()),
            api_key: Some(key.expose().clone()),
            environment: connection.env.clone(),
        };
        let path = credentials::save(&credentials)?;
        let names: Vec<String> = environments.iter().map(|item| item.text("name")).collect();
        output::line(&format!(
            "logged in to {} (environments: {})",
            client.url(),
            names.join(", ")
        ))?;
        if let Some(environment) = &connection.env {
            output::hint(&format!(
                "commands go to environment {environment} unless --env names another one"
            ));
        }
        output::hint(&format!("saved in {}", path.display()));
        Ok(())
    }
}

/// The environments in an answer of a service, which has one at least; none when it is no such
/// answer.
fn environments(answer: &Json) -> Option<&[Json]> {
    let is_environment =
        |item: &Json| item.text("id").starts_with(ENVIRONMENT.prefix) && item.has("name");
    let found = answer.list("data");
    (!found.is_empty() && found.iter().all(is_environment)).then_some(found)
}

/// Returns whether an error comes of an answer that no service gives: one that is no JSON, or a
/// refusal without a code. A proxy in front of a service answers 5xx in its own words.
fn is_of_another(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Refusal>() {
        Some(refusal) => refusal.status < 500 && refusal.code.is_empty(),
        None => error.root_cause().is::<serde_json::Error>(),
    }
}

fn no_service(client: &Client) -> anyhow::Error {
    failure(format!(
        "{} is no Kanat service: nothing was saved",
        client.url()
    ))
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
        return Err(usage(
            "no API key was given: give it with --api-key, KANAT_API_KEY or on standard input",
        ));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_environments_are_an_answer_of_a_service() {
        let is_answer = |text: &str| environments(&Json::parse(text).unwrap()).is_some();
        assert!(is_answer(r#"{"data":[{"id":"env_1","name":"dev"}]}"#));
        for other in [
            "null",
            "{}",
            "[]",
            r#"{"data":[]}"#,
            r#"{"data":[{"id":1}]}"#,
            r#"{"data":{"id":"env_1"}}"#,
        ] {
            assert!(!is_answer(other), "{other}");
        }
    }
}
