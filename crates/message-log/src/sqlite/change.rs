//! Changes of state by claims and settlements. Each adds an event to the table `transitions`
//! (historic name: events).

use kanat_model::message::Status;
use rusqlite::{Connection, params};

use super::transaction::Transaction;
use crate::Lease;
use crate::change::{Change, ErrorChange};

/// Changes a message that still has the owner and the token on which the change relies. The token
/// becomes the sequence number of the change's event, so that a second change finds nothing.
pub(super) const CHANGE: &str = "
UPDATE messages SET token = ?4, owner = ?5,
    status = coalesce(?6, CASE WHEN attempts = 0 THEN 'received' ELSE 'retrying' END),
    attempts = coalesce(?7, attempts), due_at = ?8, completed_at = ?9,
    error_kind = CASE ?10 WHEN 1 THEN error_kind ELSE ?11 END,
    error_message = CASE ?10 WHEN 1 THEN error_message ELSE ?12 END,
    error_field = CASE ?10 WHEN 1 THEN error_field ELSE ?13 END,
    error_expression = CASE ?10 WHEN 1 THEN error_expression ELSE ?14 END
WHERE seq = ?1 AND token = ?2 AND owner = ?3";

/// Finds the message that [`CHANGE`] would update. Both have one condition.
const FIND_LEASE: &str = "SELECT 1 FROM messages WHERE seq = ? AND token = ? AND owner = ?";

/// Inserts the event of a change that sets the whole state of the message.
pub(super) const INSERT_EVENT: &str = "
INSERT INTO transitions (seq, message, at, status, attempts, due_at, error_kind, error_message,
    error_field, error_expression, output, trace)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Inserts the event of a change that keeps a part of the state.
pub(super) const INSERT_EVENT_FROM_ROW: &str = "
INSERT INTO transitions (seq, message, at, status, attempts, due_at, error_kind, error_message,
    error_field, error_expression, output, trace)
SELECT ?1, seq, ?3, status, attempts, due_at, error_kind, error_message, error_field,
    error_expression, ?4, ?5
FROM messages WHERE seq = ?2";

/// Makes the next message of an ordering key claimable, once all before it have ended. `?1` is a
/// message that was the first of its key.
pub(super) const RELEASE_NEXT: &str = "
UPDATE messages SET due_at = ?2
WHERE seq = (
    SELECT (SELECT n.seq FROM messages AS n INDEXED BY messages_order
            WHERE n.flow_id = m.flow_id AND n.ordering_key = m.ordering_key AND n.completed_at
                IS NULL
                AND n.due_at IS NULL
            ORDER BY n.seq LIMIT 1)
    FROM messages AS m
    WHERE m.seq = ?1 AND NOT EXISTS (
        SELECT 1 FROM messages AS h INDEXED BY messages_order
        WHERE h.flow_id = m.flow_id AND h.ordering_key = m.ordering_key AND h.completed_at IS NULL
            AND h.due_at >= 0))";

/// Makes a change, and returns the new lease; `None` when the change is fenced.
pub(super) fn apply(
    tx: &mut Transaction<'_, '_>,
    change: &Change,
) -> rusqlite::Result<Option<Lease>> {
    let event_seq = tx.take_seq();
    apply_with_seq(tx, change, event_seq)
}

/// Makes a change like [`apply`], with an event whose sequence number was taken before.
pub(super) fn apply_with_seq(
    tx: &Transaction<'_, '_>,
    change: &Change,
    event_seq: i64,
) -> rusqlite::Result<Option<Lease>> {
    if !update(tx, change, event_seq)? {
        return Ok(None);
    }
    insert_event(tx, change, event_seq)?;
    if change.releases_ordering_key() {
        release_next_of_key(tx, change.message_seq)?;
    }
    Ok(Some(change.lease(event_seq)))
}

/// Returns whether `change` is fenced: the message has another owner or token in the tables than
/// those on which it relies.
pub(super) fn is_fenced(conn: &Connection, change: &Change) -> rusqlite::Result<bool> {
    let lease = params![
        change.message_seq,
        change.from_token,
        change.from_owner.as_str()
    ];
    Ok(!conn.prepare_cached(FIND_LEASE)?.exists(lease)?)
}

fn insert_event(tx: &Transaction<'_, '_>, change: &Change, event_seq: i64) -> rusqlite::Result<()> {
    let seq = change.message_seq;
    let columns = change.column_values();
    let (Some(status), Some(attempts), ErrorChange::Clear | ErrorChange::Set(_)) =
        (columns.status, columns.attempts, &change.error)
    else {
        let values = params![event_seq, seq, columns.at, columns.output, columns.trace];
        tx.execute(INSERT_EVENT_FROM_ROW, values)?;
        return Ok(());
    };
    let values = params![
        event_seq,
        seq,
        columns.at,
        status.as_str(),
        attempts,
        columns.due_at,
        columns.error_kind(),
        columns.error_message(),
        columns.error_field(),
        columns.error_expression(),
        columns.output,
        columns.trace,
    ];
    tx.execute(INSERT_EVENT, values)?;
    Ok(())
}

fn update(tx: &Transaction<'_, '_>, change: &Change, event_seq: i64) -> rusqlite::Result<bool> {
    let keep = i64::from(matches!(change.error, ErrorChange::Keep));
    let columns = change.column_values();
    let values = params![
        change.message_seq,
        change.from_token,
        change.from_owner.as_str(),
        event_seq,
        change.to_owner.as_str(),
        columns.status.map(Status::as_str),
        columns.attempts,
        columns.due_at,
        columns.completed_at,
        keep,
        columns.error_kind(),
        columns.error_message(),
        columns.error_field(),
        columns.error_expression(),
    ];
    Ok(tx.execute(CHANGE, values)? > 0)
}

/// Makes the next message of the ordering key of `message` claimable, once all before it have
/// ended. The caller has ended `message`, or put it back into the backlog without a due time.
pub(super) fn release_next_of_key(tx: &Transaction<'_, '_>, message: i64) -> rusqlite::Result<()> {
    tx.execute(RELEASE_NEXT, params![message, tx.steady.as_millis().max(0)])?;
    Ok(())
}
