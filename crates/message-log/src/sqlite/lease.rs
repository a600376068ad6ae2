//! Leases of nodes: one row for each boot, which covers all its messages.

use kanat_model::id::{BootId, NodeId};
use rusqlite::params;

use super::operation::Effect;
use super::transaction::Transaction;
use crate::LeasedWriteOutcome;

const RELEASE_POLLS: &str = "
UPDATE polls SET held_until = 0
WHERE owner IN (SELECT owner FROM leases WHERE node_id = ? AND owner <> ?)";

const END_EARLIER_BOOTS: &str = "DELETE FROM leases WHERE node_id = ? AND owner <> ?";

const OPEN: &str = "
INSERT INTO leases (owner, node_id, ttl_ms, expires_at) VALUES (?, ?, ?, ?)
ON CONFLICT (owner) DO UPDATE SET node_id = excluded.node_id, ttl_ms = excluded.ttl_ms,
    expires_at = excluded.expires_at";

const RENEW: &str = "UPDATE leases SET expires_at = ? + ttl_ms WHERE owner = ?";

const END: &str = "DELETE FROM leases WHERE owner = ?";

/// Opens the lease of a boot, and ends those of earlier boots of its node with the polls that they
/// held.
pub(super) fn open(
    tx: &Transaction<'_, '_>,
    owner: &BootId,
    node: &NodeId,
    ttl_ms: i64,
) -> rusqlite::Result<Effect> {
    for end in [RELEASE_POLLS, END_EARLIER_BOOTS] {
        tx.execute(end, params![node.as_str(), owner.as_str()])?;
    }
    let expires_at = tx.steady.as_millis().saturating_add(ttl_ms);
    tx.execute(
        OPEN,
        params![owner.as_str(), node.as_str(), ttl_ms, expires_at],
    )?;
    Ok(Effect::Done)
}

/// Renews a lease. An expired one is valid again, for the messages that no other node has claimed.
pub(super) fn renew(tx: &Transaction<'_, '_>, owner: &BootId) -> rusqlite::Result<Effect> {
    let renewed = tx.execute(RENEW, params![tx.steady.as_millis(), owner.as_str()])?;
    Ok(Effect::LeasedWrite(if renewed > 0 {
        LeasedWriteOutcome::Done
    } else {
        LeasedWriteOutcome::Fenced
    }))
}

/// Ends a lease. The messages keep their owner. If another node has claimed one meanwhile, the
/// owner's later change of it is fenced.
pub(super) fn hand_back(tx: &Transaction<'_, '_>, owner: &BootId) -> rusqlite::Result<Effect> {
    tx.execute(END, params![owner.as_str()])?;
    Ok(Effect::Done)
}
