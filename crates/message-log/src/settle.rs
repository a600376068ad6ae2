//! What a node says about a message that it holds.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::message::{Failure, Status};

use crate::{Lease, TraceRecord};

/// The end of an attempt, or of the holding.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub lease: Lease,
    pub at: Timestamp,
    /// The number of the attempt that ended, from 1; not looked at where none was made.
    pub attempt: u32,
    pub outcome: Outcome,
    /// What was sent, if anything was; kept with the message.
    pub output: Option<Bytes>,
    pub failure: Option<Failure>,
    pub trace: Vec<TraceRecord>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    Filtered,
    Retry {
        due: Timestamp,
    },
    DeadLetter,
    /// Given up because nobody wants it any more.
    Discarded,
    /// Given back undone: no attempt was made, or none that counts.
    Release {
        due: Timestamp,
    },
    /// Given back undone to wait for its turn in its ordering key, for any node to claim then.
    Yield,
    /// Given back undone, and held for the reason in `failure`: the holder cannot run it, and
    /// another node may.
    Hold {
        due: Timestamp,
    },
}

/// Whether a write under a lease took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Settled {
    Done,
    /// The lease was no longer good: someone else holds or has settled the message. Nothing was
    /// written.
    Fenced,
}

/// The output of a step that succeeded, so that it is not run again.
#[derive(Debug, Clone)]
pub struct StepCheckpoint {
    pub lease: Lease,
    pub name: String,
    /// Of the step's HTTP answer.
    pub status: u32,
    /// JSON.
    pub output: Bytes,
}

impl Outcome {
    /// The status that it leads to; `None` for a release, which goes back to where the message was.
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Delivered => Some(Status::Delivered),
            Self::Filtered => Some(Status::Filtered),
            Self::Retry { .. } => Some(Status::Retrying),
            Self::DeadLetter => Some(Status::DeadLetter),
            Self::Discarded => Some(Status::Discarded),
            Self::Hold { .. } => Some(Status::Held),
            Self::Release { .. } | Self::Yield => None,
        }
    }
}
