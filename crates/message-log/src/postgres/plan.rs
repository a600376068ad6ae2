//! Plans beside the messages that were accepted under them.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgPool, Postgres, Row};

use super::PostgresLog;
use super::columns::bind_each;
use super::text::text;
use crate::row::Columns;
use crate::{PlanStore, Result, SavedPlan};

macro_rules! insert {
    () => {
        "
INSERT INTO saved_plans (flow_id, version, body, saved_at)
SELECT v.flow_id, v.version, v.body, $4 FROM unnest($1::text[], $2::bigint[], $3::bytea[])
    AS v(flow_id, version, body)
ON CONFLICT (flow_id, version) DO "
    };
}

const SAVE: &str = concat!(
    insert!(),
    "UPDATE SET body = excluded.body, saved_at = excluded.saved_at"
);

const SAVE_MISSING: &str = concat!(insert!(), "NOTHING");

/// A message may be written so much later than it arrived.
const ARRIVAL_SLACK: Duration = Duration::from_secs(60);

pub(super) const GET: &str = "SELECT body FROM saved_plans WHERE flow_id = $1 AND version = $2";

/// Older ones of a flow that has a newer one, that nothing kept refers to. A newer one was also
/// saved later: after a restore of the configuration, a flow continues with lower versions.
pub(super) const UNUSED: &str = "
SELECT p.flow_id, p.version FROM saved_plans AS p
WHERE p.saved_at <= $1
    AND (SELECT true FROM saved_plans AS n WHERE n.flow_id = p.flow_id AND n.version > p.version
        AND n.saved_at >= p.saved_at LIMIT 1)
    AND (SELECT true FROM messages AS m WHERE m.flow_id = p.flow_id AND m.flow_version = p.version
        LIMIT 1) IS NULL";

/// Looks again at what came after the long look of `UNUSED`.
pub(super) const DROP: &str = "
DELETE FROM saved_plans AS p
WHERE p.flow_id = $1 AND p.version = $2 AND p.saved_at <= $3 AND NOT EXISTS (
    SELECT 1 FROM messages AS m WHERE m.flow_id = $1 AND m.received_at >= $4 AND m.flow_version
        = $2)";

#[async_trait::async_trait]
impl PlanStore for PostgresLog {
    async fn save_plans(&self, mut plans: Vec<SavedPlan>) -> Result<()> {
        self.write(insert(SAVE, &mut plans)).await.map(drop)
    }

    async fn save_missing_plans(&self, mut plans: Vec<SavedPlan>) -> Result<()> {
        self.write(insert(SAVE_MISSING, &mut plans)).await.map(drop)
    }

    async fn plan(&self, flow_id: &FlowId, version: u32) -> Result<Option<Bytes>> {
        self.ask(get(&self.workers.current(), flow_id, version))
            .await
    }
}

fn insert<'p>(
    statement: &'static str,
    plans: &'p mut Vec<SavedPlan>,
) -> Query<'p, Postgres, PgArguments> {
    // One statement does not write a row twice, and every process writes the rows in one order.
    plans.sort_by(|one, other| {
        (one.flow_id.as_str(), one.version).cmp(&(other.flow_id.as_str(), other.version))
    });
    plans.dedup_by(|later, earlier| {
        let same = (&later.flow_id, later.version) == (&earlier.flow_id, earlier.version);
        if same {
            earlier.body = std::mem::take(&mut later.body);
        }
        same
    });
    let query = bind_each!(sqlx::query(statement), plans, |plan| [
        text(plan.flow_id.as_str()),
        i64::from(plan.version),
        plan.body.as_ref(),
    ]);
    query.bind(Timestamp::now().as_millis())
}

pub(super) async fn get(
    reader: &PgPool,
    flow_id: &FlowId,
    version: u32,
) -> sqlx::Result<Option<Bytes>> {
    let query = sqlx::query(GET)
        .bind(text(flow_id.as_str()))
        .bind(i64::from(version));
    query
        .fetch_optional(reader)
        .await?
        .map(|row| row.bytes("body"))
        .transpose()
}

/// Drops plans saved before an instant that nothing needs any more.
pub(super) async fn drop_unused(workers: &PgPool, saved_before: Timestamp) -> sqlx::Result<()> {
    let checked_at = Timestamp::now();
    for row in sqlx::query(UNUSED)
        .bind(saved_before.as_millis())
        .fetch_all(workers)
        .await?
    {
        sqlx::query(DROP)
            .bind(row.try_get::<String, _>(0)?)
            .bind(row.try_get::<i64, _>(1)?)
            .bind(checked_at.as_millis())
            .bind(checked_at.before(ARRIVAL_SLACK).as_millis())
            .execute(workers)
            .await?;
    }
    Ok(())
}
