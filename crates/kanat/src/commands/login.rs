//! `kanat login`: tries an address and a credential, and remembers both.

mod callback;
mod code;
mod device;
mod input;
mod offer;
mod person;
mod save;
mod service;

use anyhow::{Context, Result};
use kanat_model::Secret;

use crate::cli::{Connection, secret};
use crate::client::credentials::{self, Credentials};
use crate::client::oidc::Provider;
use crate::client::oidc::claims::Claims;
use crate::client::{Client, DEFAULT_URL};
use crate::exit::{failure, usage};
use crate::output;
use offer::Offer;
use person::{Candidates, UNSAVED};

/// Arguments of `kanat login`: `--url`, `--api-key` and `--env` are those of every command. Without
/// a flag of its own it takes an API key, from standard input where none is given.
#[derive(clap::Args)]
pub struct Login {
    /// Log in as a person: at the identity provider, in a browser.
    #[arg(long)]
    oidc: bool,
    /// Log in as a person where there is no browser: by a code that is entered elsewhere.
    #[arg(long)]
    device: bool,
    /// Log in as a person by a token of the identity provider, a JWT; `-` is standard input.
    #[arg(long, value_parser = secret, conflicts_with_all = ["oidc", "device", "issuer"])]
    token: Option<Secret<String>>,
    /// The identity provider, where the service has several.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
}

impl Login {
    pub async fn run(self, connection: Connection) -> Result<()> {
        let is_of_person = self.oidc || self.device || self.issuer.is_some();
        if !is_of_person && self.token.is_none() {
            return with_key(connection).await;
        }
        let saved = credentials::load().unwrap_or_default();
        let url = connection.url.or(saved.url);
        let url = url.as_deref().unwrap_or(DEFAULT_URL);
        let client = Client::to(url, None, connection.env.clone())?;
        let candidates = match self.token {
            Some(token) => given(token).await?,
            None => {
                let issuer = self.issuer.as_deref();
                tokio::select! {
                    // Interrupts are caught before the person sees anything.
                    biased;
                    _ = tokio::signal::ctrl_c() => return Err(failure(UNSAVED)),
                    found = at_provider(&client, issuer, self.device) => found.context(UNSAVED)?,
                }
            }
        };
        person::log_in(&client, candidates, connection.env).await?;
        if connection.api_key.is_some() {
            output::hint(
                "an API key is given by KANAT_API_KEY or --api-key: commands that have one take \
                 it, and not this login",
            );
        }
        Ok(())
    }
}

/// Logs a person in at the provider.
async fn at_provider(client: &Client, issuer: Option<&str>, device: bool) -> Result<Candidates> {
    let offer = Offer::of(client, issuer).await?;
    let provider = Provider::discover(&offer.issuer).await?;
    let tokens = match device {
        true => device::log_in(&provider, &offer).await?,
        false => code::log_in(&provider, &offer).await?,
    };
    Ok(Candidates::of(offer, tokens))
}

/// Takes a token that is given.
async fn given(token: Secret<String>) -> Result<Candidates> {
    let token = match token.expose().as_str() {
        "-" => input::ask("Token")
            .await?
            .ok_or_else(|| usage("no token was given on standard input"))?,
        _ => token,
    };
    let claims = Claims::read(token.expose());
    let issuer = claims
        .as_ref()
        .and_then(|claims| claims.text("iss"))
        .ok_or_else(|| usage("the token is no JWT that names its issuer"))?;
    Ok(Candidates::given(issuer, token.expose()))
}

/// Saves an API key.
async fn with_key(connection: Connection) -> Result<()> {
    let key = match connection.api_key {
        Some(key) => key,
        None => input::ask("API key").await?.ok_or_else(|| {
            usage(
                "no API key was given: give it with --api-key, KANAT_API_KEY or on standard input",
            )
        })?,
    };
    let saved = credentials::load().unwrap_or_default();
    let asked = Connection {
        url: connection.url.or(saved.url),
        api_key: Some(key.clone()),
        env: connection.env.clone(),
        is_dry_run: false,
    };
    let client = Client::new(asked)?;
    let environments = service::environments(&client).await;
    let environments = environments.context("the key was not saved")?;
    let credentials = Credentials {
        url: Some(client.url().to_owned()),
        api_key: Some(key.expose().clone()),
        environment: connection.env,
        login: None,
    };
    let url = client.url();
    let summary = format!("logged in to {url} (environments: {environments})");
    save::save(&credentials, &summary).await
}
