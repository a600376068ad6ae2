//! What a settlement changes.

use super::operation::{Change, Problem, nobody};
use crate::{Error, Outcome, Settlement, trace};

/// The change of state that a settlement asks for.
pub(super) fn change(settlement: &Settlement) -> Result<Change, Error> {
    let Settlement {
        lease,
        at,
        attempt,
        outcome,
        output,
        failure,
        trace,
    } = settlement;
    let trace = trace::text(trace)?;
    let (due_at, attempts, error) = match outcome {
        Outcome::Delivered | Outcome::Filtered => (None, Some(*attempt), Problem::Clear),
        Outcome::DeadLetter | Outcome::Discarded => (
            None,
            Some(*attempt),
            failure.clone().map_or(Problem::Keep, Problem::Set),
        ),
        Outcome::Retry { due } => (
            Some(*due),
            Some(*attempt),
            failure.clone().map_or(Problem::Keep, Problem::Set),
        ),
        Outcome::Release { due } => (Some(*due), None, Problem::Keep),
        Outcome::Yield => (None, None, Problem::Keep),
        Outcome::Hold { due } => (
            Some(*due),
            None,
            failure.clone().map_or(Problem::Keep, Problem::Set),
        ),
    };
    Ok(Change {
        message_id: lease.message_id.clone(),
        seq: lease.seq,
        from_owner: lease.owner.clone(),
        from_token: lease.token,
        at: *at,
        to_owner: nobody(),
        status: outcome.status(),
        attempts,
        due_at,
        error,
        output: output.clone(),
        trace,
        ordered: lease.ordered,
    })
}
