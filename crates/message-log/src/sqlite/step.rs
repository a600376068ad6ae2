//! Outputs of steps that succeeded.

use rusqlite::params;

use super::transaction::Transaction;
use crate::{LeasedWriteOutcome, StepCheckpoint};

pub(super) const SAVE: &str = "
INSERT INTO steps (message, name, status, output)
SELECT seq, ?4, ?5, ?6 FROM messages WHERE seq = ?1 AND owner = ?2 AND token = ?3
ON CONFLICT (message, name) DO UPDATE SET status = excluded.status, output = excluded.output";

/// Stores an output, unless its lease is fenced.
pub(super) fn checkpoint(
    tx: &Transaction<'_, '_>,
    checkpoint: &StepCheckpoint,
) -> rusqlite::Result<LeasedWriteOutcome> {
    let lease = &checkpoint.lease;
    let values = params![
        lease.seq,
        lease.owner.as_str(),
        lease.token,
        checkpoint.name,
        checkpoint.status,
        checkpoint.output.as_ref(),
    ];
    Ok(if tx.execute(SAVE, values)? > 0 {
        LeasedWriteOutcome::Done
    } else {
        LeasedWriteOutcome::Fenced
    })
}
