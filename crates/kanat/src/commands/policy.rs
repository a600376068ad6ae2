//! `kanat policy`: governance policies, the rules for flows. They are kept; nothing evaluates them.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::confirm::Consent;
use super::{Page, Session, input};
use crate::client::name::POLICY;
use crate::output::{Json, table};

/// Commands for policies. A policy is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// List the policies of the account.
    List {
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one policy.
    Show { policy: String },
    /// Create the policy in a JSON file with `name`, `expression` and further fields.
    Create {
        /// `-` is standard input.
        file: String,
    },
    /// Change the fields of a policy that a JSON file has.
    Update {
        policy: String,
        /// `-` is standard input.
        file: String,
    },
    /// Mark a policy as enabled.
    Enable { policy: String },
    /// Mark a policy as disabled.
    Disable { policy: String },
    /// Delete a policy.
    Delete {
        policy: String,
        #[command(flatten)]
        consent: Consent,
    },
}

const COLUMNS: &str = "NAME:name,SEVERITY:severity,ENABLED:enabled,ID:id";
const FIELDS: &str = "Name:name,Severity:severity,Enabled:enabled,About:description,\
                      Message:message,Id:id,Created:createdAt,Updated:updatedAt";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::List { search, page } => {
                let query = page.with([("search", search)]);
                session.list(POLICY.path, query, COLUMNS).await
            }
            Self::Show { policy } => {
                let path = session.client.path(&POLICY, &policy).await?;
                session.show(&path, whole).await
            }
            Self::Create { file } => {
                let policy = input::json(&file)?;
                let created = |policy: &Json| format!("policy {} is created", policy.text("name"));
                session.post(POLICY.path, &policy, created).await.map(drop)
            }
            Self::Update { policy, file } => change(session, &policy, input::json(&file)?).await,
            Self::Enable { policy } => {
                change(session, &policy, json!({ "enabled": true }).into()).await
            }
            Self::Disable { policy } => {
                change(session, &policy, json!({ "enabled": false }).into()).await
            }
            Self::Delete { policy, consent } => {
                session
                    .delete(&POLICY, &policy, "for all environments", consent)
                    .await
            }
        }
    }
}

async fn change(session: &Session, policy: &str, changes: Json) -> Result<()> {
    let path = session.client.path(&POLICY, policy).await?;
    session.print(&session.client.patch(&path, &changes).await?, whole)
}

fn whole(policy: &Json) -> String {
    table::fields(policy, FIELDS) + &table::section("Expression", &policy.text("expression"))
}
