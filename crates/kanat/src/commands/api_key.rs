//! `kanat api-key`: the keys of one's own account, which open the management API.

mod reset;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use kanat_model::Timestamp;
use serde_json::json;

use super::confirm::Consent;
use super::{Page, Session, since};
use crate::client::name::{ENVIRONMENT, segment};
use crate::client::{Client, Refusal};
use crate::exit::failure;
use crate::output::{Format, Json};

const PATH: &str = "/api-keys";

/// Beginning of the ids of API keys.
const PREFIX: &str = "key_";

/// Commands for API keys. A key is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// Make a key; it shows here and nowhere else.
    Create {
        name: String,
        /// `owner`, `admin`, `editor` or `viewer`.
        #[arg(long, default_value = "editor")]
        role: String,
        /// The only environment that the key opens, by id or name [default: all].
        #[arg(long)]
        environment: Option<String>,
        /// Instant at which the key ends (ISO 8601; a date alone is its midnight in UTC), or a time
        /// from now such as `1h` or `30d` [default: never].
        #[arg(long, value_parser = since::parse_ahead)]
        expires: Option<String>,
    },
    /// List the keys of the account.
    List {
        #[command(flatten)]
        page: Page,
    },
    /// End a key at once and for good.
    Revoke {
        key: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Make a new owner key while the service is stopped, in the place of the first start's, which
    /// is revoked.
    Reset {
        /// Data folder of the service.
        #[arg(long, env = "KANAT_DATA_DIR", default_value = "./kanat-data")]
        data_dir: PathBuf,
    },
}

const COLUMNS: &str = "NAME:name,ROLE:role,KEY:prefix,ENVIRONMENT:environment,\
                       LAST USED:lastUsedAt,EXPIRES:expiresAt,CREATED BY:createdBy.name,ID:id";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create {
                name,
                role,
                environment,
                expires,
            } => {
                let body = json!({
                    "name": name, "role": role, "environmentId": environment, "expiresAt": expires,
                });
                let answer = session.post(PATH, &body, |key| key.text("key")).await?;
                session.hint("this is the only time that the key shows: keep it now");
                let keys = client.all(PATH, &[]).await.unwrap_or_default();
                if keys.iter().filter(|key| key.text("name") == name).count() > 1 {
                    session.hint(&format!(
                        "another key is called {name:?}: commands tell them apart by their ids, \
                         and this one is {}",
                        answer.text("id")
                    ));
                }
                Ok(())
            }
            Self::List { page } => list(session, &page).await,
            Self::Reset { data_dir } => reset::run(&data_dir).await,
            Self::Revoke { key, consent } => {
                let found = one(client, &key).await?;
                let id = found.text("id");
                let used = match found.text("lastUsedAt") {
                    never if never.is_empty() => "never".to_owned(),
                    used => used,
                };
                consent.ask(&format!(
                    "API key {} ({id}, {}, last used: {used}) will end at once and for good",
                    found.text("name"),
                    found.text("role")
                ))?;
                client.delete(&format!("{PATH}/{}", segment(&id))).await?;
                session.done(&format!("API key {key} is revoked"))
            }
        }
    }
}

/// Returns the keys that the member with this id has made and that still open the API; none where
/// the caller may not list keys.
///
/// # Errors
///
/// When the service cannot be asked.
pub async fn made_by(client: &Client, member_id: &str) -> Result<Vec<Json>> {
    let mut keys = match client.all(PATH, &[]).await {
        Err(error) if Refusal::has_status(&error, 403) => Vec::new(),
        keys => keys?,
    };
    let now = Timestamp::now();
    keys.retain(|key| {
        let is_over = Timestamp::parse(&key.text("expiresAt")).is_some_and(|end| end <= now);
        key.text("createdBy.id") == member_id && !is_over
    });
    Ok(keys)
}

/// Prints keys, for a person with the names of their environments.
async fn list(session: &Session, page: &Page) -> Result<()> {
    let mut keys = session.client.page(PATH, &page.with([])).await?;
    let is_bound = keys.list("data").iter().any(|key| key.has("environmentId"));
    if session.format == Format::Table && is_bound {
        let environments = session.client.all(ENVIRONMENT.path, &[]).await;
        keys = with_environments(keys, &environments.unwrap_or_default());
    }
    session.print_page(&keys, COLUMNS)
}

/// Adds the name of its environment to each key; the id where the name is not known.
fn with_environments(keys: Json, environments: &[Json]) -> Json {
    let named = |key: &Json| {
        let id = key.text("environmentId");
        let found = environments
            .iter()
            .find(|environment| environment.text("id") == id);
        let name = found.map_or(id, |environment| environment.text("name"));
        key.clone().with([("environment", Some(Json::Text(name)))])
    };
    let rows = keys.list("data").iter().map(named).collect();
    keys.with([("data", Some(Json::List(rows)))])
}

/// The key of that id or name. Names need not be unique.
async fn one(client: &Client, text: &str) -> Result<Json> {
    let keys = client.all(PATH, &[]).await?;
    let by = if text.starts_with(PREFIX) {
        "id"
    } else {
        "name"
    };
    let found: Vec<&Json> = keys.iter().filter(|key| key.text(by) == text).collect();
    match found.as_slice() {
        [key] => Ok((*key).clone()),
        [] => {
            let names: Vec<String> = keys.iter().map(|key| key.text("name")).collect();
            let near = kanat_model::nearest::suggestion(text, names.iter().map(String::as_str));
            Err(failure(format!(
                "no API key is called {text:?}{near}\n`kanat api-key list` shows those there are"
            )))
        }
        several => {
            let ids = several.iter().map(|key| format!("\n  {}", key.text("id")));
            Err(failure(format!(
                "several API keys are called {text:?}: name one by its id{}",
                ids.collect::<String>()
            )))
        }
    }
}
