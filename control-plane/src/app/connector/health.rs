//! How connector instances do: what is observed leads from state to state, and every change is
//! kept.

use kanat_model::health::Observation;
use kanat_model::id::{HealthChangeId, InstanceId};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Health, Result, Timestamp};
use kanat_store::Db;
use kanat_store::connector_health::{self, ConnectorHealth, HealthChange};

use crate::app::Call;

/// As many changes of an instance are kept.
const KEPT_CHANGES: u32 = 500;

/// Words in the reason of each state that calls of flows told.
pub const CALLS_FAILED: &str = "calls of flows failed";

/// Takes up an observation that was made at an instant; `reason` is in words fit for callers.
pub async fn observe(
    db: &mut Db,
    id: &InstanceId,
    observation: Observation,
    reason: &str,
    at: Timestamp,
) -> Result<()> {
    let known = connector_health::get(db, id).await?;
    let is_open = |known: &ConnectorHealth| {
        known.status == Health::Unknown.as_str()
            || ails(known) && known.reason.contains(CALLS_FAILED)
    };
    // Good calls, however few, are a first judgement, and end a bad one that calls led to.
    let heals = observation.heals() && known.as_ref().is_none_or(is_open);
    let observation = if heals {
        Observation::Passed
    } else {
        observation
    };
    if !observation.is_conclusive() {
        return Ok(());
    }
    let before = known
        .as_ref()
        .and_then(|known| Health::parse(&known.status))
        .unwrap_or_default();
    let after = before.after(observation);
    if after == Health::Unknown {
        return Ok(());
    }
    let since = known.map_or(at, |known| known.since);
    put(db, id, before, after, since, reason, at).await
}

/// Returns whether the instance is known to do badly.
fn ails(known: &ConnectorHealth) -> bool {
    matches!(
        Health::parse(&known.status),
        Some(Health::Degraded | Health::Failing)
    )
}

/// Writes down a state that was observed at `at`, and the change to it; `since` is when the state
/// before began.
async fn put(
    db: &mut Db,
    id: &InstanceId,
    before: Health,
    after: Health,
    since: Timestamp,
    reason: &str,
    at: Timestamp,
) -> Result<()> {
    let since = if before == after { since } else { at };
    let health = ConnectorHealth {
        instance_id: id.clone(),
        status: after.as_str().to_owned(),
        reason: reason.to_owned(),
        since,
        updated_at: at,
    };
    connector_health::put(db, &health).await?;
    if before != after {
        let change = HealthChange {
            id: HealthChangeId::generate(),
            instance_id: id.clone(),
            previous: before.as_str().to_owned(),
            status: after.as_str().to_owned(),
            reason: reason.to_owned(),
            at,
        };
        connector_health::insert_change(db, &change).await?;
        connector_health::keep_changes(db, id, KEPT_CHANGES).await?;
        tracing::info!(
            instance.id = %id,
            health.before = %before,
            health.after = %after,
            "a connector's health changed",
        );
    }
    Ok(())
}

/// Takes up the last poll of a flow; `failure` is what the instance did wrong.
///
/// A poll that came to its end heals what a poll of the same flow has told, and nothing else: of
/// two flows, one may fail at an instance that serves the other.
pub async fn polled(
    db: &mut Db,
    id: &InstanceId,
    flow_name: &str,
    failure: Option<String>,
) -> Result<()> {
    let origin = format!("poll of flow {flow_name}: ");
    if let Some(failure) = failure {
        let reason = format!("{origin}{failure}");
        return observe(db, id, Observation::Failed, &reason, Timestamp::now()).await;
    }
    let known = connector_health::get(db, id).await?;
    let heals = known.is_none_or(|known| {
        known.status == Health::Unknown.as_str()
            || ails(&known) && known.reason.starts_with(&origin)
    });
    if heals {
        observe(
            db,
            id,
            Observation::Passed,
            &format!("{origin}it came to its end"),
            Timestamp::now(),
        )
        .await?;
    }
    Ok(())
}

/// Forgets what was seen of an instance whose config is another one now.
pub async fn config_changed(db: &mut Db, id: &InstanceId) -> Result<()> {
    let Some(known) = connector_health::get(db, id).await? else {
        return Ok(());
    };
    let before = Health::parse(&known.status).unwrap_or_default();
    if before == Health::Unknown {
        return Ok(());
    }
    put(
        db,
        id,
        before,
        Health::Unknown,
        known.since,
        "its config was changed",
        Timestamp::now(),
    )
    .await
}

/// How an instance does, as far as it is known, and the changes of it, newest first.
pub async fn get(
    call: &Call,
    id: &InstanceId,
    page: Page,
) -> Result<(Option<ConnectorHealth>, ListPage<HealthChange>)> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, id).await?;
    let health = connector_health::get(&mut tx, id).await?;
    Ok((
        health,
        connector_health::list_changes(&mut tx, id, page).await?,
    ))
}
