//! Polls: one row for each flow, and one for each record that a flow has seen.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use rusqlite::{OptionalExtension, params};

use super::SqliteLog;
use super::operation::{Effect, Task};
use super::transaction::Transaction;
use crate::poll::read;
use crate::{
    LeasedWriteOutcome, Poll, PollClaim, PollClaimOutcome, PollStanding, PollStore, Result,
    SeenRecord,
};

pub(super) const CLAIM: &str = "
INSERT INTO polls (flow_id, owner, token, version, due_at, held_until, state) VALUES (?1, ?2, 1, ?3,
    ?4, ?5, x'')
ON CONFLICT (flow_id) DO UPDATE SET owner = excluded.owner, token = polls.token + 1, held_until
    = excluded.held_until
WHERE polls.held_until <= ?4 AND (polls.due_at <= ?4 OR polls.version < ?3) RETURNING token,
    state";

pub(super) const DUE: &str = "SELECT max(due_at, held_until) FROM polls WHERE flow_id = ?";

pub(super) const UPDATE_POLL: &str = "
UPDATE polls SET version = ?4, due_at = ?5, held_until = ?6, state = coalesce(?7, state),
    ended_at = coalesce(?8, ended_at), error = CASE WHEN ?8 IS NULL THEN error ELSE ?9 END
WHERE flow_id = ?1 AND owner = ?2 AND token = ?3";

pub(super) const UPSERT_SEEN: &str = "
INSERT INTO seen_records (flow_id, id, hash, count, seen_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (flow_id, id) DO UPDATE SET hash = excluded.hash, count = excluded.count, seen_at
    = excluded.seen_at";

pub(super) const FORGET: &str = "DELETE FROM seen_records WHERE flow_id = ? AND seen_at < ?";

/// Deletes a bounded number of records, so that the writer serves other operations in between.
pub(super) const FORGET_SOME: &str = "
DELETE FROM seen_records WHERE flow_id = ?1 AND id IN (SELECT id FROM seen_records WHERE flow_id
    = ?1 LIMIT 5000)";

pub(super) const FORGET_POLL: &str = "DELETE FROM polls WHERE flow_id = ?";

#[async_trait::async_trait]
impl PollStore for SqliteLog {
    async fn claim_poll(&self, claim: &PollClaim) -> Result<PollClaimOutcome> {
        let claim = claim.clone();
        let claim = Task::new(move |tx| self::claim(tx, &claim));
        match self.writer.submit(claim).await? {
            Effect::Polled(claimed) => Ok(claimed),
            other => Err(other.unexpected()),
        }
    }

    async fn update_poll(&self, poll: &Poll) -> Result<LeasedWriteOutcome> {
        let bytes = poll.state.as_ref().map_or(0, Bytes::len);
        let poll = poll.clone();
        let update = Task::new(move |tx| update(tx, &poll));
        self.submit_under_lease(update.with_bytes(bytes)).await
    }

    async fn seen_records(&self, flow_id: &FlowId, ids: &[String]) -> Result<Vec<SeenRecord>> {
        Ok(read::seen(&self.reader, flow_id, ids).await?)
    }

    async fn upsert_seen_records(&self, flow_id: &FlowId, records: Vec<SeenRecord>) -> Result<()> {
        let bytes = records.iter().map(|record| record.id.len()).sum();
        let flow_id = flow_id.clone();
        let upsert = Task::new(move |tx| upsert_seen(tx, &flow_id, &records));
        self.run(upsert.with_bytes(bytes)).await
    }

    async fn forget_records(&self, flow_id: &FlowId, before: Timestamp) -> Result<()> {
        let flow_id = flow_id.clone();
        let forget = Task::new(move |tx| forget(tx, &flow_id, before));
        self.run(forget.deleting_rows()).await
    }

    async fn polls(&self, flow_ids: &[FlowId]) -> Result<Vec<(FlowId, PollStanding)>> {
        Ok(read::standings(&self.reader, flow_ids).await?)
    }

    async fn polled_flows(&self) -> Result<Vec<FlowId>> {
        Ok(read::flows(&self.reader).await?)
    }

    async fn forget_poll(&self, flow_id: &FlowId) -> Result<bool> {
        let flow_id = flow_id.clone();
        let forget = Task::new(move |tx| forget_poll(tx, &flow_id));
        let forgotten = self.writer.submit(forget.deleting_rows()).await?;
        Ok(forgotten.into_count()? > 0)
    }
}

pub(super) fn claim(tx: &Transaction<'_, '_>, claim: &PollClaim) -> rusqlite::Result<Effect> {
    let values = params![
        claim.flow_id.as_str(),
        claim.owner.as_str(),
        claim.version,
        claim.now.as_millis(),
        claim.held_until.as_millis()
    ];
    let taken = tx
        .conn
        .prepare_cached(CLAIM)?
        .query_row(values, |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))
        .optional()?;
    if let Some((token, state)) = taken {
        return Ok(Effect::Polled(PollClaimOutcome::Taken {
            token,
            state: Bytes::from(state),
        }));
    }
    let due: i64 = tx
        .conn
        .prepare_cached(DUE)?
        .query_row([claim.flow_id.as_str()], |row| row.get(0))?;
    Ok(Effect::Polled(PollClaimOutcome::Later(
        Timestamp::from_millis(due),
    )))
}

pub(super) fn update(tx: &Transaction<'_, '_>, poll: &Poll) -> rusqlite::Result<Effect> {
    let updated = tx.execute(
        UPDATE_POLL,
        params![
            poll.flow_id.as_str(),
            poll.owner.as_str(),
            poll.token,
            poll.version,
            poll.due_at.as_millis(),
            poll.held_until.as_millis(),
            poll.state.as_deref(),
            poll.ended.as_ref().map(|ended| ended.at.as_millis()),
            poll.ended.as_ref().and_then(|ended| ended.error.as_deref())
        ],
    )?;
    Ok(Effect::LeasedWrite(if updated > 0 {
        LeasedWriteOutcome::Done
    } else {
        LeasedWriteOutcome::Fenced
    }))
}

pub(super) fn upsert_seen(
    tx: &Transaction<'_, '_>,
    flow_id: &FlowId,
    records: &[SeenRecord],
) -> rusqlite::Result<Effect> {
    for record in records {
        let SeenRecord {
            id,
            hash,
            count,
            seen_at,
        } = record;
        tx.execute(
            UPSERT_SEEN,
            params![flow_id.as_str(), id, hash, count, seen_at.as_millis()],
        )?;
    }
    Ok(Effect::Done)
}

pub(super) fn forget(
    tx: &Transaction<'_, '_>,
    flow_id: &FlowId,
    before: Timestamp,
) -> rusqlite::Result<Effect> {
    tx.execute(FORGET, params![flow_id.as_str(), before.as_millis()])?;
    Ok(Effect::Done)
}

/// Forgets some records of a flow or, when there are none, its poll. Returns the number of records.
pub(super) fn forget_poll(tx: &Transaction<'_, '_>, flow_id: &FlowId) -> rusqlite::Result<Effect> {
    let records = tx.execute(FORGET_SOME, params![flow_id.as_str()])?;
    if records == 0 {
        tx.execute(FORGET_POLL, params![flow_id.as_str()])?;
    }
    Ok(Effect::Affected(records as u64))
}
