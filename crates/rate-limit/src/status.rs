//! The status of limits after a call, without its form in an answer.

use std::time::Duration;

use crate::Limits;

/// Calls that are left of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitStatus {
    pub kind: LimitKind,
    pub limits: Limits,
    /// Calls that are left, as far as this node knows.
    pub remaining: u64,
    /// Time until the limit is restored in full. For the rate it is 1 s if calls were made, else 0:
    /// only consumer keys show this value, and their rates are per second. In a refusal by the rate
    /// it is `retry_after`, which is longer in an outage of the store if there are more nodes than
    /// calls per second.
    pub reset: Duration,
}

/// Limit that a status describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    None,
    Rate,
    Day,
}

/// Refusal of a call that is beyond a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitExceeded {
    /// Time after which a consumer may call again.
    pub retry_after: Duration,
    /// Time after which a waiting call should try again. No token is reserved for it.
    pub next_attempt_in: Duration,
    pub status: LimitStatus,
}
