//! `kanat key`: what opens a published API to its consumers.

use anyhow::Result;
use clap::{Args, Subcommand};
use kanat_model::Timestamp;
use serde_json::{Value, json};

use super::confirm::Consent;
use super::hint::quoted;
use super::rotation::Rotation;
use super::{Page, Session};
use crate::client::name::{API, segment};
use crate::client::{Client, MAX_PAGE, Refusal};
use crate::exit::failure;
use crate::output::Json;

/// Beginning of the ids of consumer keys.
const PREFIX: &str = "ck_";

/// Commands for consumer keys. A key is named by its id, or by its consumer.
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
        /// Name or id of the published API.
        api: String,
        /// Id of the key, or its consumer.
        key: String,
        #[command(flatten)]
        rotation: Rotation,
    },
    /// List the keys of a published API.
    List {
        /// Name or id of the published API.
        api: String,
        /// Only those of this consumer.
        #[arg(long)]
        consumer: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Refuse a key until it is let in again.
    Suspend(Named),
    /// Let a suspended key in again.
    Resume(Named),
    /// End a key at once and for good.
    Revoke {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        consent: Consent,
    },
}

/// One key, or the keys of one consumer.
#[derive(Args)]
pub struct Named {
    /// Name or id of the published API.
    api: String,
    /// Id of a key, or a consumer: its key, and former ones in their grace period.
    key: String,
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
                let path = keys(client, &api).await?;
                create(session, &api, &path, &body).await.map(drop)
            }
            Self::Rotate { api, key, rotation } => {
                if !rotation.is_given() {
                    check_id(client, &keys(client, &api).await?, &key).await?;
                }
                let path = one(client, &api, &key).await?;
                rotation.ask(&format!("key {key} of {api}"), "calls with it get 401")?;
                let body = json!({ "gracePeriod": rotation.grace });
                let answer = create(session, &api, &format!("{path}/rotate"), &body).await?;
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
            Self::Suspend(named) => named.set_status(session, "inactive").await,
            Self::Resume(named) => named.set_status(session, "active").await,
            Self::Revoke { named, consent } => named.revoke(session, consent).await,
        }
    }
}

impl Named {
    async fn revoke(self, session: &Session, consent: Consent) -> Result<()> {
        let keys = keys(&session.client, &self.api).await?;
        if !consent.is_given() {
            check_id(&session.client, &keys, &self.key).await?;
        }
        let ids = self.ids(&session.client, &keys).await?;
        let names = self.describe(&ids);
        let (each, them) = match ids.len() {
            1 => ("key", "it"),
            _ => ("keys", "them"),
        };
        consent.ask(&format!(
            "{each} {names} of {} will end at once and for good; calls with {them} get 401",
            self.api
        ))?;
        for id in &ids {
            session.client.delete(&at(&keys, id)).await?;
        }
        let are = if ids.len() == 1 { "is" } else { "are" };
        session.done(&format!("{each} {names} {are} revoked"))
    }

    async fn set_status(self, session: &Session, status: &str) -> Result<()> {
        let keys = keys(&session.client, &self.api).await?;
        let body = json!({ "status": status });
        for id in self.ids(&session.client, &keys).await? {
            let answer = session.client.patch(&at(&keys, &id), &body).await?;
            let name = self.describe(std::slice::from_ref(&id));
            session.print(&answer, |answer| {
                format!("key {name} is {}", answer.text("status"))
            })?;
        }
        Ok(())
    }

    /// Returns keys with their consumer, where it names them.
    fn describe(&self, ids: &[String]) -> String {
        match ids {
            [id] if *id == self.key => id.clone(),
            _ => format!("{} ({})", self.key, ids.join(", ")),
        }
    }

    /// Returns the id that is given, or those of all keys of the consumer that work or are
    /// suspended, the former ones of a rotation among them.
    ///
    /// # Errors
    ///
    /// When there is none, and when the consumer has several keys that were made apart from each
    /// other.
    async fn ids(&self, client: &Client, keys: &str) -> Result<Vec<String>> {
        if self.key.starts_with(PREFIX) {
            return Ok(vec![self.key.clone()]);
        }
        let found = of_consumer(client, keys, &self.key).await?;
        let (former, lasting): (Vec<_>, Vec<_>) = found.iter().partition(|key| key.ends());
        match lasting.as_slice() {
            [] if former.is_empty() => Err(missing(&self.api, &self.key)),
            [] | [_] => Ok(found.into_iter().map(|key| key.id).collect()),
            several => Err(ambiguous(&self.api, &self.key, several)),
        }
    }
}

async fn keys(client: &Client, api: &str) -> Result<String> {
    Ok(format!("{}/keys", client.path(&API, api).await?))
}

/// Path of the key with this id, where `keys` is that of the list.
fn at(keys: &str, id: &str) -> String {
    format!("{keys}/{}", segment(id))
}

/// The path of the key of that id, or of the only key of that consumer that has not ended and is
/// not about to.
async fn one(client: &Client, api: &str, key: &str) -> Result<String> {
    let keys = keys(client, api).await?;
    if key.starts_with(PREFIX) {
        return Ok(at(&keys, key));
    }
    let found = of_consumer(client, &keys, key).await?;
    let lasting: Vec<_> = found.iter().filter(|key| !key.ends()).collect();
    match lasting.as_slice() {
        [only] => Ok(at(&keys, &only.id)),
        [] => Err(missing(api, key)),
        several => Err(ambiguous(api, key, several)),
    }
}

/// Errors where `key` is the id of no key in the list at `keys`. A consumer is looked for
/// elsewhere.
async fn check_id(client: &Client, keys: &str, key: &str) -> Result<()> {
    if !key.starts_with(PREFIX) {
        return Ok(());
    }
    let all = client.all(keys, &[]).await?;
    if all.iter().any(|found| found.text("id") == key) {
        return Ok(());
    }
    let error = kanat_model::Error::not_found("consumer key", key);
    Err(Refusal::of(&error).into())
}

/// A key that has not ended.
struct Key {
    id: String,
    expires_at: Option<Timestamp>,
}

impl Key {
    /// Returns whether the key is about to end, such as the former one of a rotation.
    fn ends(&self) -> bool {
        self.expires_at.is_some()
    }
}

/// Returns the keys of a consumer that have not ended.
async fn of_consumer(client: &Client, keys: &str, consumer: &str) -> Result<Vec<Key>> {
    let query = [
        ("consumer", consumer.to_owned()),
        ("limit", MAX_PAGE.to_string()),
    ];
    let answer = client.page(keys, &query).await?;
    Ok(unended(answer.list("data"), Timestamp::now()))
}

fn unended(keys: &[Json], now: Timestamp) -> Vec<Key> {
    let unrevoked = keys.iter().filter(|key| !key.has("revokedAt"));
    let found = unrevoked.filter_map(|key| {
        let expires_at = Timestamp::parse(&key.text("expiresAt"));
        // The clocks of this machine and of the service may differ.
        let is_open = key.text("status") == "active" || expires_at.is_none_or(|at| at > now);
        is_open.then(|| Key {
            id: key.text("id"),
            expires_at,
        })
    });
    found.collect()
}

fn missing(api: &str, consumer: &str) -> anyhow::Error {
    failure(format!(
        "no key of {api} in use is of the consumer {consumer:?}\n`kanat key list {}` shows those \
         there are",
        quoted(api)
    ))
}

fn ambiguous(api: &str, consumer: &str, keys: &[&Key]) -> anyhow::Error {
    let ids: Vec<_> = keys.iter().map(|key| key.id.as_str()).collect();
    failure(format!(
        "{} keys of {api} in use are of the consumer {consumer:?}: name one by its id, {}\n`kanat \
         key list {} --consumer {}` shows them",
        ids.len(),
        ids.join(" or "),
        quoted(api),
        quoted(consumer)
    ))
}

/// Makes a key of the published API that `api` names, and prints its text alone on standard output,
/// so that a shell can take it.
async fn create(session: &Session, api: &str, path: &str, body: &Value) -> Result<Json> {
    let key = session.post(path, body, |key| key.text("key")).await?;
    let api = match session.client.path(&API, api).await {
        Ok(path) => session.client.get(&path, &[]).await.ok(),
        // The key is made, and shows whatever becomes of the hint.
        Err(_) => None,
    };
    session.hint(&handover(api.as_ref(), &key.text("consumer")));
    Ok(key)
}

/// Returns what to do with a new key for this consumer, where its API is known.
fn handover(api: Option<&Json>, consumer: &str) -> String {
    let name = api.map(|api| quoted(&api.text("name"))).unwrap_or_default();
    let auth = api.map(|api| api.text("authType")).unwrap_or_default();
    match auth.as_str() {
        "oauth2" => format!(
            "this is the only time that the key shows; {name} takes access tokens of its issuer \
             and no keys: calls with this one get 401 until `kanat api update {name} --auth \
             api_key`"
        ),
        "none" => format!(
            "this is the only time that the key shows; {name} takes calls without a key until \
             `kanat api update {name} --auth api_key`"
        ),
        _ => format!("this is the only time that the key shows: hand it to {consumer} now"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_handed_over_where_its_api_takes_keys() {
        let hint = |auth: &str| {
            let api = Json::parse(&format!(r#"{{"name":"stock","authType":"{auth}"}}"#));
            handover(Some(&api.unwrap()), "acme")
        };
        assert!(hint("api_key").ends_with("hand it to acme now"));
        assert!(handover(None, "acme").ends_with("hand it to acme now"));
        for (auth, expected) in [
            ("oauth2", "access tokens of its issuer and no keys"),
            ("none", "takes calls without a key"),
        ] {
            let hint = hint(auth);
            assert!(hint.contains(expected), "{hint}");
            assert!(!hint.contains("acme"), "{hint}");
        }
    }

    #[test]
    fn a_key_in_its_grace_period_has_not_ended() {
        let keys = r#"{"data":[
            {"id":"ck_1"},
            {"id":"ck_2","expiresAt":"2026-05-01T00:00:01Z"},
            {"id":"ck_3","expiresAt":"2026-05-01T00:00:00Z"},
            {"id":"ck_4","revokedAt":"2026-04-01T00:00:00Z"},
            {"id":"ck_5","expiresAt":"2026-05-01T00:00:00Z","status":"active"}
        ]}"#;
        let keys = Json::parse(keys).unwrap();
        let now = Timestamp::parse("2026-05-01T00:00:00Z").unwrap();
        let found = unended(keys.list("data"), now);
        let found: Vec<_> = found
            .iter()
            .map(|key| (key.id.as_str(), key.ends()))
            .collect();
        assert_eq!(found, [("ck_1", false), ("ck_2", true), ("ck_5", true)]);
    }
}
