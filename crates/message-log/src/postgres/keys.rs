//! Locks of ordering keys and deduplication keys. A transaction locks its keys in one order, before
//! any row and before it reads what depends on them. So two nodes that append with one key see each
//! other's message, a message that ends sees the messages that wait for it, and no deadlock
//! arises.

use std::borrow::Cow;

use kanat_model::id::FlowId;
use sqlx::PgConnection;

use super::operation::{Operation, Work};
use super::options::LockSpace;
use super::text::text;
use crate::change::Change;
use crate::operator_decision::Decision;

/// Locks keys by their hashes. The kind is part of the hash. Two keys with one hash only wait for
/// each other. `$2` to `$4` are keys, `$5` messages whose keys are locked.
pub(super) const LOCK: &str = "
SELECT pg_advisory_xact_lock($1, wanted.hash) FROM (
    SELECT DISTINCT hashtext(k.kind || k.flow_id || ' ' || k.key) AS hash FROM (
        SELECT v.kind, v.flow_id, v.key FROM unnest($2::text[], $3::text[], $4::text[]) AS v(kind,
            flow_id, key)
        UNION ALL
        SELECT 'order ', m.flow_id, m.ordering_key FROM unnest($5::bigint[]) AS v(seq)
        CROSS JOIN LATERAL (SELECT f.flow_id, f.ordering_key FROM messages AS f WHERE f.seq = v.seq
            OFFSET 0) AS m
        WHERE m.ordering_key IS NOT NULL
    ) AS k ORDER BY hash
) AS wanted";

/// Locks the keys of a group.
pub(super) async fn lock(
    conn: &mut PgConnection,
    space: LockSpace,
    operations: &[Operation],
) -> sqlx::Result<()> {
    let mut keys: Vec<(&str, &str, Cow<'_, str>)> = Vec::new();
    let mut ended = Vec::new();
    for operation in operations {
        match &operation.work {
            Work::Append(message) => {
                let flow = message.flow_id.as_str();
                keys.extend(
                    message
                        .ordering_key
                        .as_deref()
                        .map(|key| ("order ", flow, text(key))),
                );
                keys.extend(
                    message
                        .dedupe_keys
                        .iter()
                        .map(|dedupe| ("repeat ", flow, text(&dedupe.key))),
                );
            }
            Work::Settle(change) => ended
                .extend(Some(change.message_seq).filter(|_| Change::releases_ordering_key(change))),
            Work::AppendAttempted(_) | Work::Checkpoint(_) => {}
        }
    }
    run(conn, space, keys, ended).await
}

/// Locks the ordering keys of a message: the present one of `ordered`, and those that a retry gives
/// it.
pub(super) async fn lock_for_decision(
    conn: &mut PgConnection,
    space: LockSpace,
    flow_id: &FlowId,
    decision: &Decision,
    ordered: Option<i64>,
) -> sqlx::Result<()> {
    let flow = flow_id.as_str();
    let mut keys = Vec::new();
    if let Decision::Retry(Some(version)) = decision {
        let ordering_key = version.ordering_key.as_deref();
        keys.extend(ordering_key.map(|key| ("order ", flow, text(key))));
        let dedupe = version.dedupe_key.as_ref();
        keys.extend(dedupe.map(|dedupe| ("repeat ", flow, text(&dedupe.key))));
    }
    run(conn, space, keys, ordered.into_iter().collect()).await
}

/// Locks the ordering keys of messages.
pub(super) async fn lock_order_of(
    conn: &mut PgConnection,
    space: LockSpace,
    messages: Vec<i64>,
) -> sqlx::Result<()> {
    run(conn, space, Vec::new(), messages).await
}

async fn run(
    conn: &mut PgConnection,
    space: LockSpace,
    keys: Vec<(&str, &str, Cow<'_, str>)>,
    messages: Vec<i64>,
) -> sqlx::Result<()> {
    if keys.is_empty() && messages.is_empty() {
        return Ok(());
    }
    let kinds: Vec<&str> = keys.iter().map(|(kind, _, _)| *kind).collect();
    let flows: Vec<&str> = keys.iter().map(|(_, flow, _)| *flow).collect();
    let keys: Vec<Cow<'_, str>> = keys.into_iter().map(|(_, _, key)| key).collect();
    let query = sqlx::query(LOCK)
        .bind(space.keys)
        .bind(kinds)
        .bind(flows)
        .bind(keys)
        .bind(messages);
    query.execute(conn).await?;
    Ok(())
}
