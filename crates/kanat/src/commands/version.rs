//! `kanat version`: versions of published APIs.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Subcommand;
use kanat_model::Timestamp;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::api::{Content, VERSIONS};
use super::confirm::{Consent, Decision};
use super::hint::quoted;
use super::{Page, Session};
use crate::client::Client;
use crate::client::name::{API, segment};
use crate::output::Json;

/// Commands for versions. An API is named by its id or its name, a version by its label, as in
/// `v2`.
#[derive(Subcommand)]
pub enum Command {
    /// Add an active version; what is left out is as in the current one.
    Create {
        api: String,
        /// `v` and a number.
        version: String,
        /// Another flow than that of the current version.
        #[arg(long)]
        flow: Option<String>,
        #[command(flatten)]
        content: Content,
    },
    /// List the versions of a published API.
    List {
        api: String,
        #[command(flatten)]
        page: Page,
    },
    /// Set the date on which a version may end; until then it serves, and its answers name the
    /// date.
    Deprecate {
        api: String,
        version: String,
        /// YYYY-MM-DD.
        #[arg(long)]
        sunset: String,
    },
    /// End a deprecated version.
    Retire {
        api: String,
        version: String,
        /// Also before its sunset date.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create {
                api,
                version,
                flow,
                content,
            } => {
                let mut body: BTreeMap<&str, Box<RawValue>> =
                    content.members("schema")?.into_iter().collect();
                body.insert("version", to_raw_value(&version)?);
                if let Some(flow) = flow {
                    body.insert("flowName", to_raw_value(&flow)?);
                }
                let answer = client.post(&versions(client, &api).await?, &body).await?;
                session.print(&answer, |answer| {
                    format!("version {version} of {api} is at {}", answer.text("url"))
                })
            }
            Self::List { api, page } => {
                let answer = client
                    .get(&versions(client, &api).await?, &page.query())
                    .await?;
                session.list(&answer, &VERSIONS)
            }
            Self::Deprecate {
                api,
                version,
                sunset,
            } => {
                let path = format!(
                    "{}/{}/deprecate",
                    versions(client, &api).await?,
                    segment(&version)
                );
                let answer = client.post(&path, &json!({ "sunsetDate": sunset })).await?;
                session.print(&answer, |answer| {
                    format!(
                        "version {version} of {api} is deprecated, and may end on {}",
                        answer.text("sunsetDate")
                    )
                })?;
                let today = Timestamp::now().to_string();
                if answer.text("sunsetDate").as_str() < today.get(..10).unwrap_or_default() {
                    session.hint(&format!(
                        "that day is past: `kanat version retire {} {version}` may end it now",
                        quoted(&api)
                    ));
                }
                Ok(())
            }
            Self::Retire {
                api,
                version,
                force,
                consent,
            } => {
                let all = versions(client, &api).await?;
                let listed = client.get(&all, &[("limit", "500".to_owned())]).await?;
                let serves = |other: &&Json| {
                    other.text("status") != "retired" && other.text("version") != version
                };
                let is_last = !listed.list("data").iter().any(|other| serves(&other));
                let what = format!("version {version} of {api} will answer 410 for ever");
                let decision = match is_last {
                    true => consent.ask(&format!("{what}, and no other one serves"))?,
                    false => consent.announce(&what)?,
                };
                if decision == Decision::Stop {
                    return Ok(());
                }
                let path = format!("{all}/{}/retire", segment(&version));
                let answer = client.post(&path, &json!({ "force": force })).await?;
                session.print(&answer, |_| {
                    format!("version {version} of {api} is retired")
                })
            }
        }
    }
}

async fn versions(client: &Client, api: &str) -> Result<String> {
    Ok(format!("{}/versions", client.path(&API, api).await?))
}
