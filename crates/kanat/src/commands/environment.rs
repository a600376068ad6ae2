//! `kanat environment`: places that flows, tables and connectors live in, apart from each other.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session};
use crate::client::name::segment;
use crate::output::{Json, table};

const PATH: &str = "/environments";

/// Commands for environments. An environment is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// List the environments of the account.
    List {
        #[command(flatten)]
        page: Page,
    },
    /// Show one environment.
    Show { environment: String },
    /// Make an environment.
    Create {
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change the name of an environment, or its settings.
    Update {
        environment: String,
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete an environment that is empty, and not the default one.
    Delete {
        environment: String,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Settings of an environment; those that are left out stay as they are.
#[derive(Args)]
pub struct Settings {
    /// Address of its published APIs, such as `https://api.example.com`; an empty text takes it
    /// away.
    #[arg(long)]
    base_url: Option<String>,
    /// Editors run what is in it, and change nothing; `--protected=false` ends that.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    protected: Option<bool>,
    /// Lowest role that may promote flows into it: `editor` or `admin`.
    #[arg(long, value_name = "ROLE")]
    promoters: Option<String>,
}

const COLUMNS: &str = "NAME:name,DEFAULT:isDefault,PROTECTED:protected,BASE URL:baseUrl,ID:id";
const FIELDS: &str = "Name:name,Default:isDefault,Protected:protected,Promoters:promoters,\
                      Base URL:baseUrl,Id:id,Created:createdAt,Updated:updatedAt";

impl Settings {
    /// Returns the body of a request with these settings and a name.
    fn with_name(self, name: Option<String>) -> Json {
        Json::given(json!({
            "name": name, "baseUrl": self.base_url, "protected": self.protected,
            "promoters": self.promoters,
        }))
    }
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let path = |environment: &str| format!("{PATH}/{}", segment(environment));
        match self {
            Self::List { page } => session.list(PATH, page.with([]), COLUMNS).await,
            Self::Show { environment } => {
                let whole = |environment: &Json| table::fields(environment, FIELDS);
                session.show(&path(&environment), whole).await
            }
            Self::Create { name, settings } => {
                let body = settings.with_name(Some(name));
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
                settings,
            } => {
                let changes = settings.with_name(name);
                let changed =
                    |answer: &Json| format!("environment {} is changed", answer.text("name"));
                session
                    .change(&path(&environment), &changes, "give a flag", changed)
                    .await
            }
            Self::Delete {
                environment,
                consent,
            } => {
                consent.ask(&format!("environment {environment} will be deleted"))?;
                session.client.delete(&path(&environment)).await?;
                session.done(&format!("environment {environment} is deleted"))
            }
        }
    }
}
