//! `kanat environment`: places that flows, tables and connectors live in, apart from each other.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::hint::quoted;
use super::{Page, Session};
use crate::client::name::segment;
use crate::output::Json;

const PATH: &str = "/environments";

/// Commands for environments. An environment is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// List the environments of the account.
    List {
        #[command(flatten)]
        page: Page,
    },
    /// Make an environment.
    Create {
        name: String,
        /// Address of its published APIs, such as `https://api.example.com`.
        #[arg(long)]
        base_url: Option<String>,
    },
    /// Change the name of an environment, or where its published APIs are reached.
    Update {
        environment: String,
        #[arg(long)]
        name: Option<String>,
        /// Address of its published APIs; an empty text takes it away.
        #[arg(long)]
        base_url: Option<String>,
    },
}

const COLUMNS: &str = "NAME:name,DEFAULT:isDefault,BASE URL:baseUrl,ID:id";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::List { page } => session.list(PATH, page.with([]), COLUMNS).await,
            Self::Create { name, base_url } => {
                let body = Json::given(json!({ "name": name, "baseUrl": base_url }));
                let answer = session.post(PATH, &body, |environment| {
                    let id = environment.text("id");
                    format!("environment {} is created ({id})", environment.text("name"))
                });
                let name = answer.await?.text("name");
                session.hint(&format!("work in it with --env {}", quoted(&name)));
                Ok(())
            }
            Self::Update {
                environment,
                name,
                base_url,
            } => {
                let changes = Json::given(json!({ "name": name, "baseUrl": base_url }));
                let path = format!("{PATH}/{}", segment(&environment));
                let changed =
                    |answer: &Json| format!("environment {} is changed", answer.text("name"));
                session
                    .change(&path, &changes, "give --name or --base-url", changed)
                    .await
            }
        }
    }
}
