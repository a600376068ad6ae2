//! Use-cases of connectors: reads of the catalog, and the instances that an environment made of its
//! entries. Configs are sealed at rest and leave masked.

pub mod health;
mod live;
pub mod oauth;
pub mod schemas;
mod test;

use std::time::Duration;

use kanat_catalog::{Action, Entry, Instance, MASK};
use kanat_model::id::InstanceId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, FieldError, Result, Timestamp, nearest, search};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1 as plan;
use kanat_store::Db;
use kanat_store::connector_health::{self, ConnectorHealth};
use kanat_store::connector_instance::{self, ConnectorInstance, Filter};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::app::audit::{self, Audited, Entity};
use crate::app::faults::both;
use crate::app::{App, Call, ChangeResult, PublishTransaction, name, resource, users};
pub use test::{TestResult, test};

resource!(
    "connector instance",
    InstanceId,
    ConnectorInstance,
    connector_instance::get,
    environment_id,
    revision
);

/// A config: a JSON object.
pub type Config = Map<String, Value>;

/// An instance to be made.
#[derive(Debug)]
pub struct NewInstance {
    pub catalog_id: String,
    pub name: String,
    pub display_name: Option<String>,
    pub config: Config,
}

/// Fields that an update changes; a field that is left out stays.
#[derive(Debug, Default)]
pub struct Update {
    pub name: Option<String>,
    pub display_name: Option<String>,
    /// Null removes a field, the mask keeps its secret.
    pub config: Option<Config>,
}

/// An instance, how it does, and what its OAuth2 client holds, if it has one.
#[derive(Debug)]
pub struct InstanceView {
    pub instance: ConnectorInstance,
    pub health: Option<ConnectorHealth>,
    pub authorization: Option<oauth::TokenStatus>,
    /// Work that a change leaves to be done.
    pub warnings: Vec<String>,
}

/// The catalog's entries by name; `category` is looked for in their categories.
pub fn catalog(category: Option<&str>, search: &str) -> Result<Vec<&'static Entry>> {
    search::check(search)?;
    let found = |text: &str| search::contains(text, search);
    let mut entries: Vec<&Entry> = kanat_catalog::entries()
        .iter()
        .filter(|entry| category.is_none_or(|category| search::contains(&entry.category, category)))
        .filter(|entry| found(&entry.id) || found(&entry.name) || found(&entry.description))
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// One entry of the catalog.
pub fn catalog_entry(id: &str) -> Result<&'static Entry> {
    kanat_catalog::entry(id).ok_or_else(|| {
        let near = nearest::suggestion(
            id,
            kanat_catalog::entries()
                .iter()
                .map(|entry| entry.id.as_str()),
        );
        Error::new(
            Code::NotFound,
            format!("catalog entry {id:?} does not exist{near}"),
        )
        .with_resource("catalog entry", id)
    })
}

/// One action of an entry.
pub fn catalog_action(id: &str, slug: &str) -> Result<&'static Action> {
    let found = catalog_entry(id)?.action(slug);
    found.ok_or_else(|| Error::not_found("catalog action", format!("{id}.{slug}")))
}

/// Longest time for which the answer to a create waits for the first tokens of the instance.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which that answer looks for them.
const CONNECT_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Makes an instance.
pub async fn create(call: &Call, new: NewInstance) -> Result<ChangeResult<InstanceView>> {
    let entry = kanat_catalog::entry(&new.catalog_id).ok_or_else(|| {
        let known = kanat_catalog::entries()
            .iter()
            .map(|entry| entry.id.as_str());
        let near = nearest::suggestion(&new.catalog_id, known);
        Error::field(
            "catalogId",
            format!("the catalog has no entry {:?}{near}", new.catalog_id),
        )
    })?;
    let id = InstanceId::generate();
    let config = checked(entry, &id, &new.name, &new.config)
        .and_then(|text| check_bearer_tokens(entry, &new.config).map(|()| text));
    let (name, config) = both(name::check("name", &new.name), config)?;
    let display_name = name::check_text(
        "displayName",
        new.display_name.unwrap_or_else(|| name.clone()),
    )?;
    let now = Timestamp::now();
    let instance = ConnectorInstance {
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        catalog_id: entry.id.clone(),
        name,
        display_name,
        config: call.app.sealer.seal(config.as_bytes(), &seal_context(&id)),
        id,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let mut change = call.change().await?;
    if let Some(made) = call.made::<InstanceId>(&mut change).await? {
        let made = seen(&mut change, made).await?;
        return change.answer_repeat(made).await;
    }
    connector_instance::insert(&mut change, &instance).await?;
    call.caller
        .record_idempotent_result(&mut change, &instance.id)
        .await?;
    oauth::config_changed(&mut change, &instance, None, &new.config).await?;
    publish(&mut change, &instance, config).await?;
    audit::created(call, &mut change, &instance).await?;
    let seen = seen(&mut change, instance).await?;
    let made = change.commit(seen).await?;
    connected(&call.app, made, &new.config).await
}

/// Waits, but not for long, until the provider has answered the one who keeps the tokens, when that
/// needs nobody's consent: a flow that runs right after the change finds its connector connected.
async fn connected(
    app: &App,
    made: ChangeResult<InstanceView>,
    config: &Config,
) -> Result<ChangeResult<InstanceView>> {
    if !oauth::needs_nobody(&made.value.instance, config)? {
        return Ok(made);
    }
    let ChangeResult {
        value: InstanceView { instance, .. },
        applied,
    } = made;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    while !oauth::is_decided(&mut *app.store.read().await?, &instance.id).await?
        && Instant::now() < deadline
    {
        sleep(CONNECT_POLL_INTERVAL).await;
    }
    let mut tx = app.store.read().await?;
    Ok(ChangeResult {
        value: seen(&mut tx, instance).await?,
        applied,
    })
}

/// The environment's instances, newest first.
pub async fn list(call: &Call, filter: &Filter, page: Page) -> Result<ListPage<InstanceView>> {
    let mut tx = call.read().await?;
    let ListPage { items, total, page } =
        connector_instance::list(&mut tx, &call.caller.environment_id, filter, page).await?;
    let mut shown = Vec::with_capacity(items.len());
    for instance in items {
        shown.push(seen(&mut tx, instance).await?);
    }
    Ok(ListPage {
        items: shown,
        total,
        page,
    })
}

/// One instance.
pub async fn get(call: &Call, id: &InstanceId) -> Result<InstanceView> {
    let mut tx = call.read().await?;
    let instance = call.existing(&mut tx, id).await?;
    seen(&mut tx, instance).await
}

/// Changes what the update names.
pub async fn update(
    call: &Call,
    id: &InstanceId,
    update: Update,
) -> Result<ChangeResult<InstanceView>> {
    let mut change = call.change().await?;
    let (mut instance, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        let seen = seen(&mut change, instance).await?;
        return change.answer_repeat(seen).await;
    }
    let before = instance.clone();
    if let Some(name) = &update.name {
        instance.name = name::check("name", name)?;
    }
    if let Some(display_name) = update.display_name {
        instance.display_name = name::check_text("displayName", display_name)?;
    }
    let entry = catalog_entry(&instance.catalog_id)?;
    let stored = config(&call.app, &instance)?;
    let update = update.config.unwrap_or_default();
    let merged = entry.merge(&stored, &update);
    let text = checked(entry, id, &instance.name, &merged)?;
    check_bearer_tokens(entry, &update)?;
    let origins_change = entry.origins(&stored) != entry.origins(&merged);
    if origins_change {
        refuse_to_carry(entry.carried_secrets(&update, &merged))?;
        oauth::forget(&mut change, &instance).await?;
    }
    instance.config = call.app.sealer.seal(text.as_bytes(), &seal_context(id));
    instance.updated_at = Timestamp::now();
    connector_instance::update(&mut change, &mut instance).await?;
    if merged != stored {
        health::config_changed(&mut change, id).await?;
        oauth::config_changed(&mut change, &instance, Some(&stored), &merged).await?;
    }
    publish(&mut change, &instance, text).await?;
    audit::updated(call, &mut change, &before, &instance).await?;
    let mut seen = seen(&mut change, instance).await?;
    if let Some(held) = &seen.authorization {
        seen.warnings
            .extend(oauth::untried(&seen.instance, &stored, &merged, held));
    }
    let updated = change.commit(seen).await?;
    connected(&call.app, updated, &merged).await
}

/// Takes an instance out of service; not while a deployed flow uses it.
pub async fn delete(call: &Call, id: &InstanceId) -> Result<ChangeResult<()>> {
    let mut change = call.change().await?;
    let Some(instance) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return change.answer_repeat(()).await;
    };
    let is_used = format!("connector instance {:?} is used by", instance.name);
    users::refuse(
        &call.app,
        &mut change,
        &Kind::ConnectorInstance.resource_id(id),
        &is_used,
        "",
    )
    .await?;
    connector_instance::delete(
        &mut change,
        &call.caller.environment_id,
        id,
        Timestamp::now(),
    )
    .await?;
    oauth::forget(&mut change, &instance).await?;
    change.remove(Kind::ConnectorInstance, id).await?;
    audit::deleted(call, &mut change, &instance).await?;
    change.commit(()).await
}

impl Audited for ConnectorInstance {
    fn entity(&self) -> Entity {
        Entity::of(&self.environment_id, &self.id).named(&self.name)
    }

    fn state(&self, app: &App) -> Result<Value> {
        Ok(json!({
            "id": self.id, "name": self.name, "displayName": self.display_name,
            "catalogId": self.catalog_id, "environmentId": self.environment_id,
            "config": audit::value(&redacted(app, self)?),
            "createdAt": self.created_at.to_string(),
        }))
    }
}

/// The config of an instance as callers may see it.
pub fn redacted(app: &App, instance: &ConnectorInstance) -> Result<String> {
    let config = config(app, instance)?;
    let shown = match kanat_catalog::entry(&instance.catalog_id) {
        Some(entry) => entry.redact(&config),
        // Without its entry nobody knows what is secret.
        None => config
            .keys()
            .map(|name| (name.clone(), MASK.into()))
            .collect(),
    };
    Ok(Value::Object(shown).to_string())
}

/// An instance as runs use it, with its secrets; `None` when there is none of that id, or it no
/// longer fits its entry.
pub async fn instance(call: &Call, db: &mut Db, id: &InstanceId) -> Result<Option<Instance>> {
    let Some(found) = connector_instance::get(db, &call.caller.environment_id, id).await? else {
        return Ok(None);
    };
    Ok(ready(&call.app, db, &found).await?.ok())
}

/// An instance as calls use it, with its access token where it has one; inside, why it no longer
/// fits its entry.
async fn ready(
    app: &App,
    db: &mut Db,
    row: &ConnectorInstance,
) -> Result<Result<Instance, String>> {
    let config = config(app, row)?;
    let token = oauth::access_token(app, db, row, &config).await?;
    let config = Value::Object(config).to_string();
    let made = Instance::new(row.id.as_str(), row.name.as_str(), &row.catalog_id, &config);
    let refusal = match token {
        Some(_) => None,
        None => why_no_token(db, &row.id).await?,
    };
    Ok(made.and_then(|instance| match (token, refusal) {
        (Some(token), _) => instance.with_access_token(token),
        (None, Some(refusal)) => Ok(instance.with_refusal(refusal)),
        (None, None) => Ok(instance),
    }))
}

/// Returns why the provider has given an instance no token: it has refused, or the last request for
/// one failed.
async fn why_no_token(db: &mut Db, id: &InstanceId) -> Result<Option<String>> {
    let refusal = oauth::held(db, id).await?.error;
    if refusal.is_some() {
        return Ok(refusal);
    }
    let health = connector_health::get(db, id).await?;
    let failing = health.filter(|health| health.status != "healthy");
    Ok(failing.map(|health| health.reason))
}

async fn seen(db: &mut Db, instance: ConnectorInstance) -> Result<InstanceView> {
    let health = connector_health::get(db, &instance.id).await?;
    let by_oauth2 = kanat_catalog::entry(&instance.catalog_id)
        .is_some_and(|entry| entry.authentication == "oauth2");
    let authorization = if by_oauth2 {
        Some(oauth::held(db, &instance.id).await?)
    } else {
        None
    };
    Ok(InstanceView {
        instance,
        health,
        authorization,
        warnings: Vec::new(),
    })
}

/// Refuses to send secrets to another place than they were given for: who may change an instance
/// may not read them.
fn refuse_to_carry(secrets: Vec<String>) -> Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let detail = |field| {
        FieldError::new(
            field,
            "is required again: the instance's calls would go to another origin than so far",
        )
    };
    Err(Error::invalid(
        "the instance's calls would go to another origin: give its secrets again",
        secrets.into_iter().map(detail).collect(),
    ))
}

/// The text of a config that fits its entry. Errors name each wrong field as `config.<name>`.
fn checked(entry: &Entry, id: &InstanceId, name: &str, config: &Config) -> Result<String> {
    let mut config: Config = config
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(clone_pair)
        .collect();
    entry
        .choose_auth(&mut config)
        .map_err(|fault| Error::field(fault.field, fault.message))?;
    entry
        .check(&config)
        .map_err(|faults| Error::invalid("the config does not fit its catalog entry", faults))?;
    let text = Value::Object(config).to_string();
    match Instance::new(id.as_str(), name, &entry.id, &text) {
        Ok(_) => Ok(text),
        Err(why) => Err(Error::field("config", why)),
    }
}

/// Refuses bearer tokens that no provider takes as they are given. A stored one stays.
fn check_bearer_tokens(entry: &Entry, given: &Config) -> Result<()> {
    entry
        .check_bearer_tokens(given)
        .map_err(|fault| Error::field(fault.field, fault.message))
}

fn clone_pair((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn config(app: &App, instance: &ConnectorInstance) -> Result<Config> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(
            instance.id = %instance.id,
            error = %error,
            "the config of a connector instance cannot be read",
        );
        Error::internal()
    };
    let plain = app
        .sealer
        .open(&instance.config, &seal_context(&instance.id))
        .map_err(|error| failed(&error))?;
    serde_json::from_slice(&plain).map_err(|_| failed(&"it is no JSON object"))
}

/// Returns the context that a config is sealed under.
pub(super) fn seal_context(id: &InstanceId) -> String {
    Kind::ConnectorInstance.resource_id(id)
}

/// Publishes an instance whose config is as it was, with the tokens that it holds by now.
async fn republish(
    change: &mut PublishTransaction<'_>,
    instance: &ConnectorInstance,
) -> Result<()> {
    let config = Value::Object(config(change.app, instance)?).to_string();
    publish(change, instance, config).await
}

async fn publish(
    change: &mut PublishTransaction<'_>,
    instance: &ConnectorInstance,
    config: String,
) -> Result<()> {
    let values: Config = serde_json::from_str(&config).unwrap_or_default();
    let token = oauth::access_token(change.app, change, instance, &values).await?;
    let ends_at = token.as_ref().and_then(|token| token.ends_at);
    let body = plan::ConnectorInstance {
        id: instance.id.to_string(),
        name: instance.name.clone(),
        catalog_id: instance.catalog_id.clone(),
        config,
        access_token_ends_at: ends_at.map(Timestamp::as_millis).unwrap_or_default(),
        access_token_renewable: token.as_ref().is_some_and(|token| token.renewable),
        access_token_refusal: oauth::held(change, &instance.id)
            .await?
            .error
            .unwrap_or_default(),
        access_token: token.map(|token| token.text).unwrap_or_default(),
    };
    change
        .put(Kind::ConnectorInstance, &instance.id, &body)
        .await
}
