//! Use-cases of adapters. Code that does not run is refused before it is stored; what is changed
//! runs on the nodes at once.

pub mod template;

use std::time::Instant;

use kanat_model::adapter::Kind;
use kanat_model::id::AdapterId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, Result, Timestamp, saturated};
use kanat_plan_stream::Kind as Resource;
use kanat_proto::plan::v1 as plan;
use kanat_script::{Asker, CallResult, Script};
use kanat_store::Db;
use kanat_store::adapter::{self, Adapter, Filter};

use crate::app::{
    Call, Caller, ChangeResult, PublishTransaction, audit, json, name, resource, users,
};

resource!(
    "adapter",
    AdapterId,
    Adapter,
    adapter::get,
    environment_id,
    version
);

/// Bytes of an adapter's code.
const MAX_CODE_BYTES: usize = 64 << 10;

/// An adapter to be made.
#[derive(Debug)]
pub struct NewAdapter {
    pub name: String,
    pub description: String,
    /// `transform` when left out.
    pub kind: Option<String>,
    pub code: String,
}

/// Fields that an update changes; a field that is left out stays.
#[derive(Debug, Default)]
pub struct Update {
    pub name: Option<String>,
    pub description: Option<String>,
    pub kind: Option<String>,
    pub code: Option<String>,
}

/// Result of a test.
#[derive(Debug)]
pub struct TestResult {
    pub called: CallResult,
    pub duration_ms: u32,
}

/// Makes an adapter.
pub async fn create(call: &Call, new: NewAdapter) -> Result<ChangeResult<Adapter>> {
    let now = Timestamp::now();
    let made = Adapter {
        id: AdapterId::generate(),
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        name: name::check("name", &new.name)?,
        description: name::check_text("description", new.description)?,
        kind: new
            .kind
            .as_deref()
            .map_or(Ok(Kind::Transform), check_kind)?,
        code: check_code(call, new.code).await?,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let mut change = call.change().await?;
    if let Some(made) = call.made::<AdapterId>(&mut change).await? {
        return change.answer_repeat(made).await;
    }
    adapter::insert(&mut change, &made).await?;
    call.caller
        .record_idempotent_result(&mut change, &made.id)
        .await?;
    publish(&mut change, &made).await?;
    audit::created(call, &mut change, &made).await?;
    change.commit(made).await
}

/// The environment's adapters, newest first.
pub async fn list(call: &Call, filter: &Filter, page: Page) -> Result<ListPage<Adapter>> {
    if !filter.kind.is_empty() {
        check_kind(&filter.kind)?;
    }
    let mut tx = call.read().await?;
    Ok(adapter::list(&mut tx, &call.caller.environment_id, filter, page).await?)
}

/// Changes what the update names. What deployed flows call keeps its name and its type.
pub async fn update(call: &Call, id: &AdapterId, update: Update) -> Result<ChangeResult<Adapter>> {
    // The code is tried before the environment is locked: that takes up to its time.
    let code = match update.code {
        Some(code) => Some(check_code(call, code).await?),
        None => None,
    };
    let mut change = call.change().await?;
    let (before, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        return change.answer_repeat(before).await;
    }
    let mut after = before.clone();
    if let Some(name) = &update.name {
        after.name = name::check("name", name)?;
    }
    if let Some(description) = update.description {
        after.description = name::check_text("description", description)?;
    }
    if let Some(kind) = &update.kind {
        after.kind = check_kind(kind)?;
    }
    if let Some(code) = code {
        after.code = code;
    }
    if after == before {
        audit::updated(call, &mut change, &before, &after).await?;
        return change.commit(after).await;
    }
    if (&after.name, after.kind) != (&before.name, before.kind) {
        refuse_users(call, &mut change, &before, "its name and its type stay").await?;
    }
    after.updated_at = Timestamp::now();
    adapter::update(&mut change, &mut after).await?;
    publish(&mut change, &after).await?;
    audit::updated(call, &mut change, &before, &after).await?;
    change.commit(after).await
}

/// Takes an adapter out of service; not while a deployed flow calls it.
pub async fn delete(call: &Call, id: &AdapterId) -> Result<ChangeResult<()>> {
    let mut change = call.change().await?;
    let Some(found) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return change.answer_repeat(()).await;
    };
    refuse_users(call, &mut change, &found, "it stays").await?;
    adapter::delete(
        &mut change,
        &call.caller.environment_id,
        id,
        Timestamp::now(),
    )
    .await?;
    change.remove(Resource::Adapter, id.as_str()).await?;
    audit::deleted(call, &mut change, &found).await?;
    change.commit(()).await
}

/// Runs an adapter on an input, JSON text, as nodes do.
pub async fn test(call: &Call, id: &AdapterId, input: &str) -> Result<TestResult> {
    json::check("input", input)?;
    let found = call.get(id).await?;
    let mut session = call.app.adapters.lease(asker(&call.caller)).await;
    let begun = Instant::now();
    let called =
        kanat_script::blocking(|| session.call(&Script::new(found.code), input, TEST_CONTEXT));
    let duration_ms = saturated(begun.elapsed().as_millis());
    if let Err(failure) = &called.output
        && failure.kind == kanat_script::Kind::Unavailable
    {
        return Err(Error::unavailable(failure.message.clone()));
    }
    Ok(TestResult {
        called,
        duration_ms,
    })
}

/// Value of `context` in a test.
const TEST_CONTEXT: &str = r#"{"test":true}"#;

/// The caller to whom a test's calls are counted: all tests of an environment are one.
pub fn asker(caller: &Caller) -> Asker<'_> {
    Asker {
        environment: caller.environment_id.as_str(),
        key: caller.environment_id.as_str(),
    }
}

/// An adapter as evaluations call it.
pub fn callable(adapter: Adapter) -> kanat_script::Adapter {
    kanat_script::Adapter {
        id: adapter.id.into_string(),
        name: adapter.name,
        version: adapter.version,
        kind: adapter.kind,
        script: Script::new(adapter.code),
    }
}

fn check_kind(text: &str) -> Result<Kind> {
    Kind::parse(text).ok_or_else(|| {
        Error::field(
            "type",
            format!("{text:?} is no type of an adapter: transform, source or target"),
        )
    })
}

/// Code that runs and defines `transform`. Errors name line and column.
async fn check_code(call: &Call, code: String) -> Result<String> {
    let code = name::check_code("code", code, MAX_CODE_BYTES)?;
    match call
        .app
        .adapters
        .check(asker(&call.caller), &Script::new(code.as_str()))
        .await
    {
        Ok(()) => Ok(code),
        Err(failure) if failure.kind == kanat_script::Kind::Unavailable => {
            Err(Error::unavailable(failure.message))
        }
        Err(failure) => Err(Error::field("code", failure.to_string())),
    }
}

async fn refuse_users(call: &Call, db: &mut Db, adapter: &Adapter, what: &str) -> Result<()> {
    let id = Resource::Adapter.resource_id(&adapter.id);
    let is_called = format!("adapter {:?} is called by", adapter.name);
    users::refuse(&call.app, db, &id, &is_called, &format!("; {what}")).await
}

async fn publish(change: &mut PublishTransaction<'_>, adapter: &Adapter) -> Result<()> {
    let body = plan::Adapter {
        id: adapter.id.to_string(),
        name: adapter.name.clone(),
        version: adapter.version,
        kind: adapter.kind.as_str().to_owned(),
        code: adapter.code.clone(),
    };
    change
        .put(Resource::Adapter, adapter.id.as_str(), &body)
        .await
}
