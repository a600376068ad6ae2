//! `kanat policy`: governance policies, the rules for flows. They are kept; nothing evaluates them.

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use super::confirm::Consent;
use super::{Page, Session, given, input};
use crate::client::name::POLICY;
use crate::output::Json;
use crate::output::table::{self, Column};

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

const COLUMNS: [Column; 4] = [
    ("NAME", "name"),
    ("SEVERITY", "severity"),
    ("ENABLED", "enabled"),
    ("ID", "id"),
];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::List { search, page } => {
                let query = [page.query(), given([("search", &search)])].concat();
                session.list(&client.get(POLICY.path, &query).await?, &COLUMNS)
            }
            Self::Show { policy } => {
                let path = client.path(&POLICY, &policy).await?;
                session.print(&client.get(&path, &[]).await?, whole)
            }
            Self::Create { file } => {
                let answer = client.post(POLICY.path, &input::json(&file)?).await?;
                session.print(&answer, |answer| {
                    format!("policy {} is created", answer.text("name"))
                })
            }
            Self::Update { policy, file } => change(session, &policy, &input::json(&file)?).await,
            Self::Enable { policy } => change(session, &policy, &json!({"enabled": true})).await,
            Self::Disable { policy } => change(session, &policy, &json!({"enabled": false})).await,
            Self::Delete { policy, consent } => {
                session
                    .delete(&POLICY, &policy, "for all environments", consent)
                    .await
            }
        }
    }
}

async fn change(session: &Session, policy: &str, body: &impl Serialize) -> Result<()> {
    let path = session.client.path(&POLICY, policy).await?;
    session.print(&session.client.patch(&path, body).await?, whole)
}

fn whole(policy: &Json) -> String {
    let fields = [
        ("Name", "name"),
        ("Severity", "severity"),
        ("Enabled", "enabled"),
        ("About", "description"),
        ("Message", "message"),
        ("Id", "id"),
        ("Created", "createdAt"),
        ("Updated", "updatedAt"),
    ];
    table::fields(policy, &fields) + &table::section("Expression", &policy.text("expression"))
}
