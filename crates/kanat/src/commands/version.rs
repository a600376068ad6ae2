//! `kanat version`: versions of published APIs.

use anyhow::Result;
use clap::Subcommand;
use kanat_model::Timestamp;
use serde_json::json;

use super::api::{Content, VERSIONS, reach};
use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session};
use crate::client::name::{API, segment};
use crate::client::{Client, MAX_PAGE};
use crate::output::Json;

/// Commands for versions. An API is named by its id or its name, a version by its label, as in
/// `v2`.
#[derive(Subcommand)]
pub enum Command {
    /// Add an active version to a published API; what is left out is as in the current one.
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
    /// Set the date on which a version of a published API may end; until then it serves, and its
    /// answers name the date.
    Deprecate {
        api: String,
        version: String,
        /// YYYY-MM-DD.
        #[arg(long)]
        sunset: String,
    },
    /// End a deprecated version of a published API.
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
                let body = Json::given(json!({ "version": version, "flowName": flow }))
                    .with(content.members("schema")?);
                let path = versions(client, &api).await?;
                let created = |answer: &Json| match answer.has("url") {
                    true => format!("version {version} of {api} is at {}", answer.text("url")),
                    false => format!("version {version} of {api} is created"),
                };
                session.post(&path, &body, created).await?;
                let found = client.get(&client.path(&API, &api).await?, &[]).await?;
                reach::hint(session, &found).await;
                Ok(())
            }
            Self::List { api, page } => {
                let path = versions(client, &api).await?;
                session.list(&path, page.with([]), VERSIONS).await
            }
            Self::Deprecate {
                api,
                version,
                sunset,
            } => {
                let all = versions(client, &api).await?;
                let path = format!("{all}/{}/deprecate", segment(&version));
                let body = json!({ "sunsetDate": sunset });
                let deprecated = session.post(&path, &body, |answer| {
                    let date = answer.text("sunsetDate");
                    format!("version {version} of {api} is deprecated, and may end on {date}")
                });
                let answer = deprecated.await?;
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
                let query = [("limit", MAX_PAGE.to_string())];
                let listed = client.get(&all, &query).await?;
                let serves = |other: &Json| {
                    other.text("status") != "retired" && other.text("version") != version
                };
                let what = format!("version {version} of {api} will answer 410 for ever");
                match listed.list("data").iter().any(serves) {
                    true => consent.announce(&what)?,
                    false => consent.ask(&format!("{what}, and no other one serves"))?,
                }
                let path = format!("{all}/{}/retire", segment(&version));
                let retired = |_: &Json| format!("version {version} of {api} is retired");
                let body = json!({ "force": force });
                session.post(&path, &body, retired).await.map(drop)
            }
        }
    }
}

async fn versions(client: &Client, api: &str) -> Result<String> {
    Ok(format!("{}/versions", client.path(&API, api).await?))
}
