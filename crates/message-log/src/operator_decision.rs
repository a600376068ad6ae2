//! Decisions of an operator about a message.

use kanat_model::message::Status;

use crate::{DedupeKey, Error};

/// Version of a flow that a retried dead letter runs under, with the keys that it gives the
/// message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryVersion {
    pub flow_version: u32,
    /// Key that takes the place of the message's former one; `None` under a version without one.
    pub ordering_key: Option<String>,
    /// Key that the message holds from now on, if no other message does. The retry is no duplicate
    /// in either case. Keys that the message holds already stay.
    pub dedupe_key: Option<DedupeKey>,
}

/// A decision about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Puts a dead letter back into the backlog. One with an ordering key comes after the message
    /// of its key that is being run, and before those that wait, because it arrived before them.
    Retry(Option<RetryVersion>),
    /// Ends a dead letter, or a message that waits, without a delivery.
    Discard,
}

impl Decision {
    /// Refuses the decision about a message whose status does not allow it.
    pub fn check(&self, status: Status) -> Result<(), Error> {
        let decided = match self {
            Self::Retry(_) => status.retry(),
            Self::Discard => status.discard(),
        };
        decided.map(drop).map_err(Error::State)
    }

    /// Returns the stage of the decision in the trace.
    pub fn stage(&self) -> &'static str {
        match self {
            Self::Retry(_) => "retried",
            Self::Discard => "discarded",
        }
    }
}
