//! Where a caller stands with its limits: nothing of how it is told.

use std::time::Duration;

use super::bucket::Limits;

/// What is left of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub window: Window,
    pub limits: Limits,
    /// Calls that are left, as far as this node knows.
    pub remaining: u64,
    /// Until there are as many again as there can be.
    pub reset: Duration,
}

/// Which limit is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    None,
    Second,
    Day,
}

/// A call that is beyond a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limited {
    /// When it may be tried again, in a time that a consumer is told.
    pub retry_after: Duration,
    /// When it is worth trying again, for one that waits: it may be for another caller then.
    pub again: Duration,
    pub standing: Standing,
}
