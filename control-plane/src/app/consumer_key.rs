//! Use-cases of consumer keys. What takes a key's rights away reaches the nodes without waiting for
//! other changes.

use std::collections::HashMap;

use kanat_auth::{consumer_key as auth, key::NewKey};
use kanat_message_log::KeyUsage;
use kanat_model::consumer_key::{Standing, Status, check_consumer};
use kanat_model::id::{ConsumerKeyId, PublishedApiId};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, Result, Secret, Timestamp};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1 as plan;
use kanat_store::Db;
use kanat_store::consumer_key::{self, ConsumerKey};
use kanat_store::published_api::PublishedApi;
use sha2::{Digest, Sha256};

use crate::app::audit::{self, Audited, KeyOfApi};
use crate::app::call::ResourceRevision;
use crate::app::faults::both;
use crate::app::{App, Call, ChangeResult, FieldUpdate, PublishTransaction, grace};

impl ResourceRevision for ConsumerKey {
    /// Returns a number of the values that an update can change: changes are not counted.
    fn revision(&self) -> u64 {
        let Standing {
            suspended,
            expires_at,
            revoked_at,
        } = self.standing;
        let ends = [expires_at, revoked_at].map(|end| end.map(Timestamp::as_millis));
        let limits = [self.rate_limit_per_second, self.daily_limit];
        let digest = Sha256::digest(format!("{limits:?} {suspended} {ends:?}"));
        digest[..6]
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// How much a key may be used; none is without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub per_second: Option<u32>,
    pub daily: Option<u32>,
}

/// Fields that an update changes; a field that is left out stays.
#[derive(Debug, Default)]
pub struct Update {
    /// `inactive` suspends, `active` lets in again.
    pub status: Option<String>,
    /// `Some(None)` takes the limit away.
    pub per_second: FieldUpdate<u32>,
    /// `Some(None)` takes the limit away.
    pub daily: FieldUpdate<u32>,
}

/// A key that was made, with its text, which is nowhere else: none where this very call made it
/// before a crash.
#[derive(Debug)]
pub struct IssuedKey {
    pub key: ConsumerKey,
    pub text: Option<Secret<String>>,
}

/// A key, and how it was used; no usage when it never was.
#[derive(Debug)]
pub struct KeyView {
    pub key: ConsumerKey,
    pub usage: Option<KeyUsage>,
}

/// Makes a key.
pub async fn create(
    call: &Call,
    api: &PublishedApiId,
    consumer: &str,
    limits: Limits,
) -> Result<ChangeResult<IssuedKey>> {
    let mut change = call.change().await?;
    let api = call.existing(&mut change, api).await?;
    let label = check_consumer(consumer).map_err(|why| Error::field("consumer", why));
    both(label, check_limits(limits))?;
    if let Some(made) = find_issued_key(call, &mut change, &api).await? {
        return change.answer_repeat(made).await;
    }
    let made = make(&api, consumer, limits, None);
    call.caller
        .record_idempotent_result(&mut change, &made.key.id)
        .await?;
    add(&mut change, &api, &made.key).await?;
    audit::created(call, &mut change, &of_api(&api, &made.key)).await?;
    change.commit(made).await
}

/// Returns the key that this call has made before a crash kept it from being answered.
async fn find_issued_key(
    call: &Call,
    db: &mut Db,
    api: &PublishedApi,
) -> Result<Option<IssuedKey>> {
    let Some(id) = call.caller.find_idempotent_result(db).await? else {
        return Ok(None);
    };
    let found = consumer_key::get(db, &api.id, &ConsumerKeyId::from(id)).await?;
    Ok(found.map(|key| IssuedKey { key, text: None }))
}

/// The API's keys, newest first, and how they were used; an empty `consumer` is any.
pub async fn list(
    call: &Call,
    api: &PublishedApiId,
    consumer: &str,
    page: Page,
) -> Result<ListPage<KeyView>> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, api).await?;
    let ListPage { items, total, page } = consumer_key::list(&mut tx, api, consumer, page).await?;
    drop(tx);
    let ids: Vec<ConsumerKeyId> = items.iter().map(|key| key.id.clone()).collect();
    let mut used: HashMap<_, _> = call
        .app
        .log
        .key_usage(&ids)
        .await?
        .into_iter()
        .map(|usage| (usage.key.clone(), usage))
        .collect();
    let seen = |key: ConsumerKey| KeyView {
        usage: used.remove(&key.id),
        key,
    };
    Ok(ListPage {
        items: items.into_iter().map(seen).collect(),
        total,
        page,
    })
}

/// Suspends a key, lets it in again, or changes its limits.
pub async fn update(
    call: &Call,
    api: &PublishedApiId,
    id: &ConsumerKeyId,
    update: Update,
) -> Result<ChangeResult<KeyView>> {
    let mut change = call.change().await?;
    let (api, mut key) = key_of(call, &mut change, api, id).await?;
    if call.caller.repeats(&mut change, id).await? {
        return seen(&call.app, change.answer_repeat(key).await?).await;
    }
    call.if_match.check(key.revision())?;
    let before = key.clone();
    let now = Timestamp::now();
    let mut limits = Limits {
        per_second: key.rate_limit_per_second,
        daily: key.daily_limit,
    };
    update.per_second.apply(&mut limits.per_second);
    update.daily.apply(&mut limits.daily);
    check_limits(limits)?;
    if let Some(status) = &update.status {
        key.standing = match Status::parse(status) {
            Some(Status::Active) => key.standing.resume(now)?,
            Some(Status::Inactive) => key.standing.suspend(now)?,
            None => {
                return Err(Error::field(
                    "status",
                    format!("{status:?} is neither active nor inactive"),
                ));
            }
        };
        change.mark_urgent();
    }
    key.rate_limit_per_second = limits.per_second;
    key.daily_limit = limits.daily;
    consumer_key::update(&mut change, &key).await?;
    if !key.standing.has_ended(now) {
        publish(&mut change, &api, &key).await?;
    }
    audit::updated(
        call,
        &mut change,
        &of_api(&api, &before),
        &of_api(&api, &key),
    )
    .await?;
    seen(&call.app, change.commit(key).await?).await
}

/// Returns a changed key with what it was used for.
async fn seen(app: &App, changed: ChangeResult<ConsumerKey>) -> Result<ChangeResult<KeyView>> {
    let ChangeResult {
        value: key,
        applied,
    } = changed;
    let usage = app
        .log
        .key_usage(std::slice::from_ref(&key.id))
        .await?
        .into_iter()
        .next();
    Ok(ChangeResult {
        value: KeyView { key, usage },
        applied,
    })
}

/// Makes a key in the place of another, which is accepted until the grace period, such as `24h`, is
/// over.
pub async fn rotate(
    call: &Call,
    api: &PublishedApiId,
    id: &ConsumerKeyId,
    grace: Option<&str>,
) -> Result<ChangeResult<IssuedKey>> {
    let grace = grace::parse(grace)?;
    let mut change = call.change().await?;
    let (api, mut old) = key_of(call, &mut change, api, id).await?;
    if let Some(made) = find_issued_key(call, &mut change, &api).await? {
        return change.answer_repeat(made).await;
    }
    let before = old.clone();
    let now = Timestamp::now();
    old.standing = old.standing.rotate(now, grace)?;
    consumer_key::update(&mut change, &old).await?;
    if !old.standing.has_ended(now) {
        publish(&mut change, &api, &old).await?;
    }
    let limits = Limits {
        per_second: old.rate_limit_per_second,
        daily: old.daily_limit,
    };
    let made = make(&api, &old.consumer, limits, Some(old.id.clone()));
    call.caller
        .record_idempotent_result(&mut change, &made.key.id)
        .await?;
    add(&mut change, &api, &made.key).await?;
    let entity = of_api(&api, &old).entity();
    let former = of_api(&api, &before).state(&call.app)?;
    let state = of_api(&api, &made.key).state(&call.app)?;
    audit::record(call, &mut change, entity, Some(former), Some(state)).await?;
    change.mark_urgent();
    change.commit(made).await
}

/// Ends a key at once and for good.
pub async fn revoke(
    call: &Call,
    api: &PublishedApiId,
    id: &ConsumerKeyId,
) -> Result<ChangeResult<()>> {
    let mut change = call.change().await?;
    let (api, mut key) = key_of(call, &mut change, api, id).await?;
    let before = key.clone();
    if key.standing.revoked_at.is_none() {
        key.standing = key.standing.revoke(Timestamp::now());
        consumer_key::update(&mut change, &key).await?;
    }
    // Of a revoked key too: the answer waits until no node takes it.
    change.remove(Kind::ConsumerKey, id).await?;
    change.mark_urgent();
    audit::updated(
        call,
        &mut change,
        &of_api(&api, &before),
        &of_api(&api, &key),
    )
    .await?;
    change.commit(()).await
}

/// Takes the keys off the nodes whose grace is over, of all APIs: they are refused there, and would
/// stay until their API gets another key. Gives how many there were.
pub async fn drop_expired(app: &App) -> Result<usize> {
    let now = Timestamp::now();
    let mut tx = app.store.read().await?;
    let found = consumer_key::with_expired(&mut tx, now).await?;
    drop(tx);
    let mut dropped = 0;
    for (environment, api) in found {
        let mut change = PublishTransaction::begin(app, &environment).await?;
        dropped += remove_expired(&mut change, &api, now).await?;
        change.commit(()).await?;
    }
    Ok(dropped)
}

/// Returns a key as the audit log tells it.
fn of_api<'a>(api: &'a PublishedApi, key: &'a ConsumerKey) -> KeyOfApi<'a> {
    KeyOfApi { api, key }
}

/// Reads a key that is to be changed, and its API. Other changes of the key wait.
async fn key_of(
    call: &Call,
    db: &mut Db,
    api: &PublishedApiId,
    id: &ConsumerKeyId,
) -> Result<(PublishedApi, ConsumerKey)> {
    let api = call.existing(db, api).await?;
    consumer_key::lock(db, &api.id, id).await?;
    let found = consumer_key::get(db, &api.id, id).await?;
    Ok((
        api,
        found.ok_or_else(|| Error::not_found("consumer key", id.as_str()))?,
    ))
}

fn make(
    api: &PublishedApi,
    consumer: &str,
    limits: Limits,
    rotated_from: Option<ConsumerKeyId>,
) -> IssuedKey {
    let NewKey {
        text,
        sha256,
        prefix,
    } = auth::generate(consumer);
    let key = ConsumerKey {
        id: ConsumerKeyId::generate(),
        api_id: api.id.clone(),
        consumer: consumer.to_owned(),
        prefix,
        sha256,
        rate_limit_per_second: limits.per_second,
        daily_limit: limits.daily,
        standing: Default::default(),
        rotated_from,
        created_at: Timestamp::now(),
    };
    IssuedKey {
        key,
        text: Some(text),
    }
}

async fn remove_expired(
    change: &mut PublishTransaction<'_>,
    api: &PublishedApiId,
    now: Timestamp,
) -> Result<usize> {
    let ended = consumer_key::end_expired(change, api, now).await?;
    for key in &ended {
        change.remove(Kind::ConsumerKey, &key).await?;
    }
    Ok(ended.len())
}

/// Stores and publishes a key, and takes those off the nodes whose grace is over: they refuse them
/// already.
async fn add(
    change: &mut PublishTransaction<'_>,
    api: &PublishedApi,
    key: &ConsumerKey,
) -> Result<()> {
    remove_expired(change, &api.id, key.created_at).await?;
    consumer_key::insert(change, key).await?;
    publish(change, api, key).await
}

async fn publish(
    change: &mut PublishTransaction<'_>,
    api: &PublishedApi,
    key: &ConsumerKey,
) -> Result<()> {
    let body = plan::ConsumerKey {
        id: key.id.to_string(),
        api_id: api.id.to_string(),
        environment_id: api.environment_id.to_string(),
        consumer: key.consumer.clone(),
        prefix: key.prefix.clone(),
        sha256: key.sha256.to_vec(),
        rate_limit_per_second: key.rate_limit_per_second.unwrap_or(0),
        daily_limit: key.daily_limit.map_or(0, u64::from),
        expires_at: key.standing.expires_at.map_or(0, Timestamp::as_millis),
        suspended: key.standing.suspended,
    };
    change.put(Kind::ConsumerKey, &key.id, &body).await
}

fn check_limits(limits: Limits) -> Result<()> {
    let check = |field: &str, limit: Option<u32>| match limit {
        Some(0) => Err(Error::field(
            field,
            "must be 1 at least; a key without it has no limit, and a suspended one no use",
        )),
        Some(_) | None => Ok(()),
    };
    let rate = check("rateLimitPerSecond", limits.per_second);
    both(rate, check("dailyLimit", limits.daily)).map(drop)
}
