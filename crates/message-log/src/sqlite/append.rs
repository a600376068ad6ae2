//! New messages.

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use rusqlite::{OptionalExtension, params};

use super::transaction::Transaction;
use crate::append::NewRow;
use crate::{AppendOutcome, DedupeKey, NewMessage};

pub(super) const FIND_DUPLICATE: &str =
    "SELECT message_id FROM dedupe WHERE flow_id = ? AND key = ? AND expires_at > ?";

pub(super) const FIND_UNFINISHED_OF_ORDERING_KEY: &str = "
SELECT 1 FROM messages INDEXED BY messages_order
WHERE flow_id = ? AND ordering_key = ? AND completed_at IS NULL LIMIT 1";

const INSERT_MESSAGE: &str = "
INSERT INTO messages (seq, id, account_id, environment_id, flow_id, flow_name, flow_version,
    trigger_kind, status, accepted_as, owner, token, due_at, ordering_key, max_attempts,
    granted_attempts, received_at, replay_of, batch_id, traceparent, size_bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?1, ?12, ?13, ?14, ?14, ?15, ?16, ?17, ?18,
    ?19)";

const INSERT_BODY: &str =
    "INSERT INTO bodies (seq, raw_body, payload, request) VALUES (?, ?, ?, ?)";

/// Gives a key to a message, unless another one holds it at `?5`.
pub(super) const INSERT_DEDUPE_KEY: &str = "
INSERT INTO dedupe (flow_id, key, message_id, expires_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (flow_id, key) DO UPDATE SET message_id = excluded.message_id, expires_at
    = excluded.expires_at
WHERE dedupe.expires_at <= ?5";

/// Stores a message unless it is a duplicate, also of one in this transaction.
pub(super) fn append(
    tx: &mut Transaction<'_, '_>,
    message: &NewMessage,
) -> rusqlite::Result<AppendOutcome> {
    for dedupe in message
        .dedupe_keys
        .iter()
        .filter(|key| key.refuses_repeats())
    {
        let mut find = tx.conn.prepare_cached(FIND_DUPLICATE)?;
        let values = params![
            message.flow_id.as_str(),
            dedupe.key,
            message.received_at.as_millis()
        ];
        if let Some(first) = find
            .query_row(values, |row| row.get::<_, String>(0))
            .optional()?
        {
            return Ok(AppendOutcome::Duplicate(MessageId::new(first)));
        }
    }
    let row = NewRow {
        message,
        is_blocked: is_blocked(tx, message)?,
        seq: tx.take_seq(),
    };
    insert(tx, &row)?;
    Ok(row.outcome())
}

/// Returns whether an unfinished message with the same ordering key was stored before.
fn is_blocked(tx: &Transaction<'_, '_>, message: &NewMessage) -> rusqlite::Result<bool> {
    match &message.ordering_key {
        Some(key) => tx
            .conn
            .prepare_cached(FIND_UNFINISHED_OF_ORDERING_KEY)?
            .exists(params![message.flow_id.as_str(), key]),
        None => Ok(false),
    }
}

/// Inserts the bodies of a message, which are not in its row.
pub(super) fn insert_body(
    tx: &Transaction<'_, '_>,
    seq: i64,
    message: &NewMessage,
) -> rusqlite::Result<()> {
    let bodies = params![
        seq,
        message.raw_body.as_ref(),
        message.payload.as_deref(),
        message.request.as_ref()
    ];
    tx.execute(INSERT_BODY, bodies).map(|_| ())
}

/// Stores a message under its sequence number.
pub(super) fn insert(tx: &Transaction<'_, '_>, row: &NewRow<'_>) -> rusqlite::Result<()> {
    let message = row.message;
    // The token of the first holder is the sequence number of the message.
    let values = params![
        row.seq,
        message.id.as_str(),
        message.account_id.as_str(),
        message.environment_id.as_str(),
        message.flow_id.as_str(),
        message.flow_name,
        message.flow_version,
        message.trigger.as_str(),
        row.status().as_str(),
        row.arrival_status().as_str(),
        row.owner(),
        row.due_at(),
        message.ordering_key,
        message.max_attempts.max(1),
        message.received_at.as_millis(),
        message.replay_of.as_ref().map(MessageId::as_str),
        message.batch_id,
        message.traceparent,
        message.size_column(),
    ];
    tx.execute(INSERT_MESSAGE, values)?;
    insert_body(tx, row.seq, message)?;
    for dedupe in &message.dedupe_keys {
        insert_dedupe_key(
            tx,
            &message.flow_id,
            dedupe,
            &message.id,
            message.received_at,
        )?;
    }
    Ok(())
}

/// Gives a key to a message from `since` on, unless another one holds it.
pub(super) fn insert_dedupe_key(
    tx: &Transaction<'_, '_>,
    flow_id: &FlowId,
    dedupe: &DedupeKey,
    message_id: &MessageId,
    since: Timestamp,
) -> rusqlite::Result<()> {
    let values = params![
        flow_id.as_str(),
        dedupe.key,
        message_id.as_str(),
        since.after(dedupe.ttl).as_millis(),
        since.as_millis(),
    ];
    tx.execute(INSERT_DEDUPE_KEY, values).map(|_| ())
}
