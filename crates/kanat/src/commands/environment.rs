//! `kanat environment`: places that flows, tables and connectors live in, apart from each other.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::hint::quoted;
use super::{Page, Session};
use crate::client::name::segment;
use crate::exit::usage;
use crate::output::table::Column;

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

const COLUMNS: [Column; 4] = [
    ("NAME", "name"),
    ("DEFAULT", "isDefault"),
    ("BASE URL", "baseUrl"),
    ("ID", "id"),
];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::List { page } => session.list(&client.get(PATH, &page.query()).await?, &COLUMNS),
            Self::Create { name, base_url } => {
                let answer = client.post(PATH, &body(Some(name), base_url)).await?;
                let name = answer.text("name");
                session.print(&answer, |answer| {
                    format!("environment {name} is created ({})", answer.text("id"))
                })?;
                session.hint(&format!("work in it with --env {}", quoted(&name)));
                Ok(())
            }
            Self::Update {
                environment,
                name,
                base_url,
            } => {
                let body = body(name, base_url);
                if body == json!({}) {
                    return Err(usage("nothing is to be changed: give --name or --base-url"));
                }
                let answer = client
                    .patch(&format!("{PATH}/{}", segment(&environment)), &body)
                    .await?;
                session.print(&answer, |answer| {
                    format!("environment {} is changed", answer.text("name"))
                })
            }
        }
    }
}

fn body(name: Option<String>, base_url: Option<String>) -> Value {
    let mut body = json!({});
    for (field, value) in [("name", name), ("baseUrl", base_url)] {
        if let Some(value) = value {
            body[field] = value.into();
        }
    }
    body
}
