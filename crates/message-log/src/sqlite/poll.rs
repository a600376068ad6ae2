//! Polls: one row for each flow, and one for each record that a flow has seen.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use rusqlite::{OptionalExtension, params};
use sqlx::SqlitePool;

use super::SqliteLog;
use super::operation::{Effect, Work};
use super::transaction::Transaction;
use crate::{
    Error, Poll, PollClaim, PollClaimOutcome, PollStanding, PollStore, SeenRecord, SettleOutcome,
    row,
};

pub(super) const CLAIM: &str = "
INSERT INTO polls (flow_id, owner, token, version, due_at, held_until, state) VALUES (?1, ?2, 1, ?3,
    ?4, ?5, x'')
ON CONFLICT (flow_id) DO UPDATE SET owner = excluded.owner, token = polls.token + 1, held_until
    = excluded.held_until
WHERE polls.held_until <= ?4 AND (polls.due_at <= ?4 OR polls.version < ?3) RETURNING token,
    state";

pub(super) const DUE: &str = "SELECT max(due_at, held_until) FROM polls WHERE flow_id = ?";

pub(super) const KEEP: &str = "
UPDATE polls SET version = ?4, due_at = ?5, held_until = ?6, state = coalesce(?7, state),
    ended_at = coalesce(?8, ended_at), error = CASE WHEN ?8 IS NULL THEN error ELSE ?9 END
WHERE flow_id = ?1 AND owner = ?2 AND token = ?3";

pub(super) const SEEN: &str = "
SELECT id, hash, count, seen_at FROM seen_records WHERE flow_id = ? AND id IN (SELECT value
    FROM json_each(?))";

pub(super) const NOTE: &str = "
INSERT INTO seen_records (flow_id, id, hash, count, seen_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (flow_id, id) DO UPDATE SET hash = excluded.hash, count = excluded.count, seen_at
    = excluded.seen_at";

pub(super) const FORGET: &str = "DELETE FROM seen_records WHERE flow_id = ? AND seen_at < ?";

pub(super) const STANDINGS: &str = "SELECT flow_id, max(due_at, held_until) AS due_at, ended_at, \
                                    error FROM polls WHERE flow_id IN (SELECT value FROM \
                                    json_each(?))";

pub(super) const FLOWS: &str = "SELECT flow_id FROM polls ORDER BY flow_id";

/// Deletes a bounded number of records, so that the writer serves other operations in between.
pub(super) const FORGET_SOME: &str = "
DELETE FROM seen_records WHERE flow_id = ?1 AND id IN (SELECT id FROM seen_records WHERE flow_id
    = ?1 LIMIT 5000)";

pub(super) const FORGET_POLL: &str = "DELETE FROM polls WHERE flow_id = ?";

#[async_trait::async_trait]
impl PollStore for SqliteLog {
    async fn claim_poll(&self, claim: &PollClaim) -> Result<PollClaimOutcome, Error> {
        match self
            .queue
            .submit(Work::ClaimPoll(Box::new(claim.clone())))
            .await?
        {
            Effect::Polled(claimed) => Ok(claimed),
            other => Err(other.unexpected()),
        }
    }

    async fn keep_poll(&self, poll: &Poll) -> Result<SettleOutcome, Error> {
        self.settled(Work::KeepPoll(Box::new(poll.clone()))).await
    }

    async fn seen_records(
        &self,
        flow_id: &FlowId,
        ids: &[String],
    ) -> Result<Vec<SeenRecord>, Error> {
        seen(&self.reader, flow_id, ids).await
    }

    async fn note_records(&self, flow_id: &FlowId, records: Vec<SeenRecord>) -> Result<(), Error> {
        self.done(Work::NoteRecords {
            flow_id: flow_id.clone(),
            records,
        })
        .await
    }

    async fn forget_records(&self, flow_id: &FlowId, before: Timestamp) -> Result<(), Error> {
        self.done(Work::ForgetRecords {
            flow_id: flow_id.clone(),
            before,
        })
        .await
    }

    async fn polls(&self, flow_ids: &[FlowId]) -> Result<Vec<(FlowId, PollStanding)>, Error> {
        standings(&self.reader, flow_ids).await
    }

    async fn polled_flows(&self) -> Result<Vec<FlowId>, Error> {
        flows(&self.reader).await
    }

    async fn forget_poll(&self, flow_id: &FlowId) -> Result<bool, Error> {
        match self.queue.submit(Work::ForgetPoll(flow_id.clone())).await? {
            Effect::Count(records) => Ok(records > 0),
            other => Err(other.unexpected()),
        }
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

pub(super) fn keep(tx: &Transaction<'_, '_>, poll: &Poll) -> rusqlite::Result<Effect> {
    let kept = tx.execute(
        KEEP,
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
    Ok(Effect::Settled(if kept > 0 {
        SettleOutcome::Done
    } else {
        SettleOutcome::Fenced
    }))
}

pub(super) fn note(
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
            NOTE,
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
    Ok(Effect::Count(records as u64))
}

pub(super) async fn standings(
    reader: &SqlitePool,
    flow_ids: &[FlowId],
) -> Result<Vec<(FlowId, PollStanding)>, Error> {
    let flow_ids: Vec<&str> = flow_ids.iter().map(FlowId::as_str).collect();
    let flow_ids =
        serde_json::to_string(&flow_ids).map_err(|error| Error::Other(error.to_string()))?;
    let rows = sqlx::query(STANDINGS)
        .bind(flow_ids)
        .fetch_all(reader)
        .await?;
    Ok(row::all(&rows, row::poll_standing)?)
}

pub(super) async fn flows(reader: &SqlitePool) -> Result<Vec<FlowId>, Error> {
    let flows: Vec<String> = sqlx::query_scalar(FLOWS).fetch_all(reader).await?;
    Ok(flows.into_iter().map(FlowId::from).collect())
}

pub(super) async fn seen(
    reader: &SqlitePool,
    flow_id: &FlowId,
    ids: &[String],
) -> Result<Vec<SeenRecord>, Error> {
    let ids = serde_json::to_string(ids).map_err(|error| Error::Other(error.to_string()))?;
    let rows = sqlx::query(SEEN)
        .bind(flow_id.as_str())
        .bind(ids)
        .fetch_all(reader)
        .await?;
    Ok(row::all(&rows, row::seen_record)?)
}
