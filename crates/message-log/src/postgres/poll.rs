//! Polls: one row a flow, and one for each record that a flow has seen.

use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgPool, Postgres, Row};

use super::PostgresLog;
use super::columns::bind_each;
use super::text::text;
use crate::poll::read;
use crate::row::Columns;
use crate::{
    LeasedWriteOutcome, Poll, PollClaim, PollClaimOutcome, PollStanding, PollStore, Result,
    SeenRecord,
};

pub(super) const CLAIM: &str = "
INSERT INTO polls (flow_id, owner, token, version, due_at, held_until, state) VALUES ($1, $2, 1, $3,
    $4, $5, '')
ON CONFLICT (flow_id) DO UPDATE SET owner = excluded.owner, token = polls.token + 1, held_until
    = excluded.held_until
WHERE polls.held_until <= $4 AND (polls.due_at <= $4 OR polls.version < $3) RETURNING token,
    state";

pub(super) const DUE: &str = "SELECT greatest(due_at, held_until) FROM polls WHERE flow_id = $1";

pub(super) const UPDATE_POLL: &str = "
UPDATE polls SET version = $4, due_at = $5, held_until = $6, state = coalesce($7, state),
    ended_at = coalesce($8, ended_at), error = CASE WHEN $8 IS NULL THEN error ELSE $9 END
WHERE flow_id = $1 AND owner = $2 AND token = $3";

pub(super) const UPSERT_SEEN: &str = "
INSERT INTO seen_records (flow_id, id, hash, count, seen_at)
SELECT $1, v.id, v.hash, v.count, v.seen_at
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS v(id, hash, count, seen_at)
ON CONFLICT (flow_id, id) DO UPDATE SET hash = excluded.hash, count = excluded.count, seen_at
    = excluded.seen_at";

pub(super) const FORGET: &str = "DELETE FROM seen_records WHERE flow_id = $1 AND seen_at < $2";

/// Some at a time, so that no lock is held for long.
pub(super) const FORGET_SOME: &str = "
DELETE FROM seen_records WHERE flow_id = $1
AND id = ANY (ARRAY(SELECT id FROM seen_records WHERE flow_id = $1 LIMIT 5000))";

pub(super) const FORGET_POLL: &str = "DELETE FROM polls WHERE flow_id = $1";

#[async_trait::async_trait]
impl PollStore for PostgresLog {
    async fn claim_poll(&self, claim: &PollClaim) -> Result<PollClaimOutcome> {
        self.ask(self::claim(&self.workers.current(), claim)).await
    }

    async fn update_poll(&self, poll: &Poll) -> Result<LeasedWriteOutcome> {
        let updated = self.write(update(poll)).await?;
        Ok(if updated > 0 {
            LeasedWriteOutcome::Done
        } else {
            LeasedWriteOutcome::Fenced
        })
    }

    async fn seen_records(&self, flow_id: &FlowId, ids: &[String]) -> Result<Vec<SeenRecord>> {
        self.ask(read::seen(&self.readers.current(), flow_id, ids))
            .await
    }

    async fn upsert_seen_records(&self, flow_id: &FlowId, records: Vec<SeenRecord>) -> Result<()> {
        self.write(upsert_seen(flow_id, &records)).await.map(drop)
    }

    async fn forget_records(&self, flow_id: &FlowId, before: Timestamp) -> Result<()> {
        let forget = sqlx::query(FORGET)
            .bind(text(flow_id.as_str()))
            .bind(before.as_millis());
        self.write(forget).await.map(drop)
    }

    async fn polls(&self, flow_ids: &[FlowId]) -> Result<Vec<(FlowId, PollStanding)>> {
        self.ask(read::standings(&self.readers.current(), flow_ids))
            .await
    }

    async fn polled_flows(&self) -> Result<Vec<FlowId>> {
        self.ask(read::flows(&self.readers.current())).await
    }

    async fn forget_poll(&self, flow_id: &FlowId) -> Result<bool> {
        let forget = |statement| sqlx::query(statement).bind(text(flow_id.as_str()));
        let records = self.write(forget(FORGET_SOME)).await?;
        if records == 0 {
            self.write(forget(FORGET_POLL)).await?;
        }
        Ok(records > 0)
    }
}

pub(super) async fn claim(workers: &PgPool, claim: &PollClaim) -> sqlx::Result<PollClaimOutcome> {
    let flow_id = text(claim.flow_id.as_str());
    let taken = sqlx::query(CLAIM)
        .bind(flow_id.as_ref())
        .bind(text(claim.owner.as_str()))
        .bind(i64::from(claim.version))
        .bind(claim.now.as_millis())
        .bind(claim.held_until.as_millis())
        .fetch_optional(workers)
        .await?;
    if let Some(taken) = taken {
        return Ok(PollClaimOutcome::Taken {
            token: taken.number("token")?,
            state: taken.bytes("state")?,
        });
    }
    let due: i64 = sqlx::query(DUE)
        .bind(flow_id.as_ref())
        .fetch_one(workers)
        .await?
        .try_get(0)?;
    Ok(PollClaimOutcome::Later(Timestamp::from_millis(due)))
}

fn update(poll: &Poll) -> Query<'_, Postgres, PgArguments> {
    let ended = poll.ended.as_ref();
    let error = ended.and_then(|ended| ended.error.as_deref());
    sqlx::query(UPDATE_POLL)
        .bind(text(poll.flow_id.as_str()))
        .bind(text(poll.owner.as_str()))
        .bind(poll.token)
        .bind(i64::from(poll.version))
        .bind(poll.due_at.as_millis())
        .bind(poll.held_until.as_millis())
        .bind(poll.state.as_deref())
        .bind(ended.map(|ended| ended.at.as_millis()))
        .bind(error.map(text))
}

/// One statement does not write a row twice: of records with one id, the last one counts.
fn upsert_seen<'q>(flow_id: &FlowId, records: &[SeenRecord]) -> Query<'q, Postgres, PgArguments> {
    let mut last: Vec<&SeenRecord> = records.iter().rev().collect();
    last.sort_by(|one, other| one.id.cmp(&other.id));
    last.dedup_by(|later, earlier| later.id == earlier.id);
    let query = sqlx::query(UPSERT_SEEN).bind(text(flow_id.as_str()));
    bind_each!(query, &last, |record| [
        text(&record.id),
        text(&record.hash),
        record.count,
        record.seen_at.as_millis(),
    ])
}
