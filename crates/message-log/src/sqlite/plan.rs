//! Plans under which messages were accepted.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use rusqlite::params;
use sqlx::{Row, SqlitePool};

use super::SqliteLog;
use super::operation::{Effect, Task};
use super::transaction::Transaction;
use crate::{PlanStore, Result, SavedPlan};

macro_rules! insert {
    () => {
        "
INSERT INTO saved_plans (flow_id, version, body, saved_at) VALUES (?, ?, ?, ?)
ON CONFLICT (flow_id, version) DO "
    };
}

const SAVE: &str = concat!(
    insert!(),
    "UPDATE SET body = excluded.body, saved_at = excluded.saved_at"
);

const SAVE_MISSING: &str = concat!(insert!(), "NOTHING");

/// Longest time between the arrival of a message and its write.
const ARRIVAL_SLACK: Duration = Duration::from_secs(60);

pub(super) const GET: &str = "SELECT body FROM saved_plans WHERE flow_id = ? AND version = ?";

/// Plans of a flow that has a newer one, without a message that refers to them. A newer one was
/// also saved later: after a restore of the configuration, a flow continues with lower versions.
pub(super) const UNUSED: &str = "
SELECT p.flow_id, p.version FROM saved_plans AS p
WHERE p.saved_at <= ?
    AND EXISTS (SELECT 1 FROM saved_plans AS n WHERE n.flow_id = p.flow_id AND n.version
        > p.version AND n.saved_at >= p.saved_at)
    AND NOT EXISTS (
        SELECT 1 FROM messages AS m INDEXED BY messages_flow
        WHERE m.flow_id = p.flow_id AND m.flow_version = p.version)";

/// Deletes a plan unless a message that was written after the check of [`UNUSED`] refers to it.
pub(super) const DROP: &str = "
DELETE FROM saved_plans
WHERE flow_id = ?1 AND version = ?2 AND saved_at <= ?3 AND NOT EXISTS (
    SELECT 1 FROM messages INDEXED BY messages_flow
    WHERE flow_id = ?1 AND received_at >= ?4 AND flow_version = ?2)";

#[async_trait::async_trait]
impl PlanStore for SqliteLog {
    async fn save_plans(&self, plans: Vec<SavedPlan>) -> Result<()> {
        self.run(insertion(SAVE, plans)).await
    }

    async fn save_missing_plans(&self, plans: Vec<SavedPlan>) -> Result<()> {
        self.run(insertion(SAVE_MISSING, plans)).await
    }

    async fn plan(&self, flow_id: &FlowId, version: u32) -> Result<Option<Bytes>> {
        get(&self.reader, flow_id, version).await
    }
}

fn insertion(statement: &'static str, plans: Vec<SavedPlan>) -> Task {
    let bytes = plans.iter().map(|plan| plan.body.len()).sum();
    Task::new(move |tx| insert(tx, statement, &plans)).with_bytes(bytes)
}

fn insert(
    tx: &Transaction<'_, '_>,
    statement: &'static str,
    plans: &[SavedPlan],
) -> rusqlite::Result<Effect> {
    for plan in plans {
        tx.execute(
            statement,
            params![
                plan.flow_id.as_str(),
                plan.version,
                plan.body.as_ref(),
                tx.now.as_millis()
            ],
        )?;
    }
    Ok(Effect::Done)
}

pub(super) fn drop(
    tx: &Transaction<'_, '_>,
    flow_id: &FlowId,
    version: u32,
    checked_at: Timestamp,
) -> rusqlite::Result<Effect> {
    let arrivals = checked_at.before(ARRIVAL_SLACK);
    tx.execute(
        DROP,
        params![
            flow_id.as_str(),
            version,
            checked_at.as_millis(),
            arrivals.as_millis()
        ],
    )?;
    Ok(Effect::Done)
}

pub(super) async fn get(
    reader: &SqlitePool,
    flow_id: &FlowId,
    version: u32,
) -> Result<Option<Bytes>> {
    let query = sqlx::query(GET)
        .bind(flow_id.as_str())
        .bind(i64::from(version));
    match query.fetch_optional(reader).await? {
        Some(row) => Ok(Some(Bytes::from(row.try_get::<Vec<u8>, _>(0)?))),
        None => Ok(None),
    }
}

/// Returns the plans that were saved before an instant and that no message needs.
pub(super) async fn unused(
    reader: &SqlitePool,
    saved_before: Timestamp,
) -> Result<Vec<(FlowId, u32)>> {
    let rows = sqlx::query(UNUSED)
        .bind(saved_before.as_millis())
        .fetch_all(reader)
        .await?;
    let found = rows
        .iter()
        .map(|row| Ok((FlowId::new(row.try_get::<String, _>(0)?), row.try_get(1)?)));
    found.collect()
}
