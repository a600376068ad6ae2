//! Decisions of an operator about a message.

use kanat_model::message::Status;

use crate::Error;

/// A decision about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Puts a dead letter back into the backlog. One with an ordering key comes after the message
    /// of its key that is being run, and before those that wait, because it arrived before them.
    Retry { flow_version: Option<u32> },
    /// Ends a dead letter, or a message that waits, without a delivery.
    Discard,
}

impl Decision {
    /// Refuses the decision about a message whose status does not allow it.
    pub fn check(self, status: Status) -> Result<(), Error> {
        let decided = match self {
            Self::Retry { .. } => status.retry(),
            Self::Discard => status.discard(),
        };
        decided.map(drop).map_err(Error::State)
    }

    /// Returns the stage of the decision in the trace.
    pub fn stage(self) -> &'static str {
        match self {
            Self::Retry { .. } => "retried",
            Self::Discard => "discarded",
        }
    }
}
