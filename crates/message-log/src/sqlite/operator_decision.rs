//! Decisions of an operator about a message: to retry it, or to discard it.

use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use rusqlite::{OptionalExtension, params};

use super::append::insert_dedupe_key;
use super::change::release_next_of_key;
use super::operation::Effect;
use super::transaction::Transaction;
use crate::operator_decision::Decision;
use crate::{Error, RetryVersion, Tenant, trace};

pub(super) const FIND: &str = "
SELECT seq, status, attempts, ordering_key IS NOT NULL, flow_id FROM messages
WHERE id = ? AND account_id = ? AND environment_id = ?";

const RETRY: &str = "
UPDATE messages SET status = 'received', token = ?2, owner = '', due_at = ?3, completed_at = NULL,
    max_attempts = attempts + granted_attempts
WHERE seq = ?1";

const SET_VERSION: &str = "UPDATE messages SET flow_version = ?2, ordering_key = ?3 WHERE seq = ?1";

const DISCARD: &str = "
UPDATE messages SET status = 'discarded', token = ?2, owner = '', due_at = NULL, completed_at = ?3
    WHERE seq = ?1";

const INSERT_EVENT: &str = "
INSERT INTO transitions (seq, message, at, status, attempts, due_at, error_kind, error_message,
    error_field, error_expression, trace)
SELECT token, seq, ?2, status, attempts, due_at, error_kind, error_message, error_field,
    error_expression, ?3
FROM messages WHERE seq = ?1";

/// Columns of the message that is decided on.
struct MessageRow {
    seq: i64,
    status: Status,
    attempts: u32,
    ordered: bool,
    flow_id: FlowId,
}

/// Carries out a decision, unless the message does not exist or is not in a state that allows it.
pub(super) fn decide(
    tx: &mut Transaction<'_, '_>,
    tenant: &Tenant,
    id: &MessageId,
    decision: &Decision,
) -> rusqlite::Result<Effect> {
    let Some(mut found) = find(tx, tenant, id)? else {
        return Ok(Effect::Refused(Error::NotFound(id.as_str().to_owned())));
    };
    if let Err(error) = decision.check(found.status) {
        return Ok(Effect::Refused(error));
    }
    let event = tx.take_seq();
    let now = tx.now.as_millis();
    match decision {
        Decision::Retry(version) => {
            if let Some(version) = version {
                set_version(tx, &found, id, version)?;
                found.ordered = version.ordering_key.is_some();
            }
            let due_at = (!found.ordered).then(|| tx.steady.as_millis().max(0));
            tx.execute(RETRY, params![found.seq, event, due_at])?;
        }
        Decision::Discard => {
            tx.execute(DISCARD, params![found.seq, event, now])?;
        }
    }
    if found.ordered {
        release_next_of_key(tx, found.seq)?;
    }
    let trace = trace::record(tx.now, decision.stage(), "person", found.attempts);
    let trace = trace::text(&[trace])
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    tx.execute(INSERT_EVENT, params![found.seq, now, trace])?;
    Ok(Effect::Done)
}

/// Puts a dead letter under another version of its flow, with the keys that the version gives it.
fn set_version(
    tx: &Transaction<'_, '_>,
    found: &MessageRow,
    id: &MessageId,
    version: &RetryVersion,
) -> rusqlite::Result<()> {
    tx.execute(
        SET_VERSION,
        params![found.seq, version.flow_version, version.ordering_key],
    )?;
    match &version.dedupe_key {
        Some(dedupe) => insert_dedupe_key(tx, &found.flow_id, dedupe, id, tx.now),
        None => Ok(()),
    }
}

fn find(
    tx: &Transaction<'_, '_>,
    tenant: &Tenant,
    id: &MessageId,
) -> rusqlite::Result<Option<MessageRow>> {
    let values = params![
        id.as_str(),
        tenant.account_id.as_str(),
        tenant.environment_id.as_str()
    ];
    let found = tx.conn.prepare_cached(FIND)?.query_row(values, |row| {
        let status: String = row.get(1)?;
        let status = Status::parse(&status).ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(MessageRow {
            seq: row.get(0)?,
            status,
            attempts: row.get(2)?,
            ordered: row.get(3)?,
            flow_id: FlowId::new(row.get::<_, String>(4)?),
        })
    });
    found.optional()
}
