//! Settlements and step outputs, which a node writes for a message that it holds.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::message::{Failure, Status};

use crate::{Lease, TraceRecord};

/// The end of an attempt, or of the hold on a message.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub lease: Lease,
    pub at: Timestamp,
    /// Number of the attempt that ended, from 1; 0 for a message that ends before its first one.
    /// Ignored where the message is released.
    pub attempt: u32,
    pub outcome: Outcome,
    /// Output that was sent; stored with the message.
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
    /// Ended without a delivery.
    Discarded,
    /// Released: no attempt was made, or none that counts.
    Release {
        due: Timestamp,
    },
    /// Released to wait for its turn in its ordering key, for any node to claim then.
    Yield,
    /// Released and held for the reason in `failure`: the holder cannot run it, another node may.
    Hold {
        due: Timestamp,
    },
}

/// Output of a step that succeeded, so that the step is not run again.
#[derive(Debug, Clone)]
pub struct StepCheckpoint {
    pub lease: Lease,
    pub name: String,
    /// Status of the step's HTTP response.
    pub status: u32,
    /// JSON.
    pub output: Bytes,
}

impl Outcome {
    /// Returns the instant at which the message is due again.
    pub(crate) fn due(self) -> Option<Timestamp> {
        match self {
            Self::Retry { due } | Self::Release { due } | Self::Hold { due } => Some(due),
            Self::Delivered | Self::Filtered | Self::DeadLetter | Self::Discarded | Self::Yield => {
                None
            }
        }
    }

    /// Returns whether an attempt was made that counts.
    pub(crate) fn is_attempt(self) -> bool {
        !matches!(self, Self::Release { .. } | Self::Yield | Self::Hold { .. })
    }

    /// Returns the status of the message; `None` for a release, which restores the former one.
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
