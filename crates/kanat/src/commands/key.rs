//! `kanat key`: what opens a published API to its consumers.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::confirm::Consent;
use super::rotation::Rotation;
use super::{Page, Session};
use crate::client::name::{API, segment};
use crate::client::{Client, MAX_PAGE};
use crate::exit::failure;
use crate::output::Json;

/// Beginning of the ids of consumer keys.
const PREFIX: &str = "ck_";

/// Commands for consumer keys. A key is named by its id, or by its consumer: then it is the one in
/// use.
#[derive(Subcommand)]
pub enum Command {
    /// Make a key; it shows here and nowhere else.
    Create {
        /// Name or id of the published API.
        api: String,
        /// Label of the consumer: one line of at most 64 characters.
        consumer: String,
        /// Calls per second at most [default: no limit].
        #[arg(long)]
        rate: Option<u32>,
        /// Calls per day, UTC, at most [default: no limit].
        #[arg(long)]
        daily: Option<u32>,
    },
    /// Make a key in the place of another one.
    Rotate {
        api: String,
        key: String,
        #[command(flatten)]
        rotation: Rotation,
    },
    /// List the keys of a published API.
    List {
        api: String,
        /// Only those of this consumer.
        #[arg(long)]
        consumer: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Refuse a key until it is let in again.
    Suspend { api: String, key: String },
    /// Let a suspended key in again.
    Resume { api: String, key: String },
    /// End a key at once and for good.
    Revoke {
        api: String,
        key: String,
        #[command(flatten)]
        consent: Consent,
    },
}

const COLUMNS: &str = "CONSUMER:consumer,STATUS:status,PER SECOND:rateLimitPerSecond,\
                       PER DAY:dailyLimit,REQUESTS:requestCount,LAST USED:lastUsedAt,\
                       EXPIRES:expiresAt,ID:id";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create {
                api,
                consumer,
                rate,
                daily,
            } => {
                let body = json!({
                    "consumer": consumer,
                    "rateLimitPerSecond": rate,
                    "dailyLimit": daily,
                });
                create(session, &keys(client, &api).await?, &body)
                    .await
                    .map(drop)
            }
            Self::Rotate { api, key, rotation } => {
                let path = one(client, &api, &key).await?;
                rotation.ask(&format!("key {key} of {api}"), "calls with it get 401")?;
                let body = json!({ "gracePeriod": rotation.grace });
                let answer = create(session, &format!("{path}/rotate"), &body).await?;
                session.hint(&rotation.notice("key", &answer.text("createdAt")));
                Ok(())
            }
            Self::List {
                api,
                consumer,
                page,
            } => {
                let path = keys(client, &api).await?;
                let query = page.with([("consumer", consumer)]);
                session.list(&path, query, COLUMNS).await
            }
            Self::Suspend { api, key } => set_status(session, &api, &key, "inactive").await,
            Self::Resume { api, key } => set_status(session, &api, &key, "active").await,
            Self::Revoke { api, key, consent } => {
                let path = one(client, &api, &key).await?;
                consent.ask(&format!(
                    "key {key} of {api} will end at once and for good; calls with it get 401"
                ))?;
                client.delete(&path).await?;
                session.done(&format!("key {key} is revoked"))
            }
        }
    }
}

async fn set_status(session: &Session, api: &str, key: &str, status: &str) -> Result<()> {
    let path = one(&session.client, api, key).await?;
    let body = json!({ "status": status });
    let answer = session.client.patch(&path, &body).await?;
    session.print(&answer, |answer| {
        format!("key {key} is {}", answer.text("status"))
    })
}

async fn keys(client: &Client, api: &str) -> Result<String> {
    Ok(format!("{}/keys", client.path(&API, api).await?))
}

/// The path of the key of that id, or of the only key of that consumer that has not ended and is
/// not about to.
async fn one(client: &Client, api: &str, key: &str) -> Result<String> {
    let keys = keys(client, api).await?;
    if key.starts_with(PREFIX) {
        return Ok(format!("{keys}/{}", segment(key)));
    }
    let query = [
        ("consumer", key.to_owned()),
        ("limit", MAX_PAGE.to_string()),
    ];
    let answer = client.get(&keys, &query).await?;
    let lasting = |key: &&Json| !key.has("expiresAt") && !key.has("revokedAt");
    let found = answer.list("data").iter().filter(lasting);
    let found: Vec<_> = found.map(|key| key.text("id")).collect();
    match found.as_slice() {
        [id] => Ok(format!("{keys}/{}", segment(id))),
        [] => Err(failure(format!(
            "no key of {api} in use is of the consumer {key:?}\n`kanat key list {api}` shows \
             those there are"
        ))),
        several => Err(failure(format!(
            "{} keys of {api} in use are of the consumer {key:?}: name one by its id, {}\n`kanat \
             key list {} --consumer {key}` shows them",
            several.len(),
            several.join(" or "),
            super::hint::quoted(api)
        ))),
    }
}

/// Makes a key, and prints its text alone on standard output, so that a shell can take it.
async fn create(session: &Session, path: &str, body: &Value) -> Result<Json> {
    let key = session.post(path, body, |key| key.text("key")).await?;
    session.hint(&format!(
        "this is the only time that the key shows: hand it to {} now",
        key.text("consumer")
    ));
    Ok(key)
}
