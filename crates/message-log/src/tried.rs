//! Messages whose first attempt was over before the log heard of them.

use std::sync::Arc;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::message::{Failure, Status};

use crate::{Error, NewMessage, Outcome, TraceRecord, trace};

/// A message and its first attempt. It has neither a key of order nor keys of repeats, and its
/// place says nothing: who tried it holds it no longer.
#[derive(Debug, Clone)]
pub struct Tried {
    pub message: NewMessage,
    /// When the attempt ended.
    pub at: Timestamp,
    pub outcome: Outcome,
    /// What was made of it; kept with the message.
    pub output: Option<Bytes>,
    pub failure: Option<Failure>,
    pub trace: Vec<TraceRecord>,
}

/// The same as the tables have it.
#[derive(Debug)]
pub(crate) struct Row {
    tried: Arc<Tried>,
    /// JSON.
    pub trace: Option<String>,
}

impl Row {
    pub fn of(tried: Arc<Tried>) -> Result<Self, Error> {
        let trace = trace::text(&tried.trace)?;
        Ok(Self { tried, trace })
    }

    pub fn message(&self) -> &NewMessage {
        &self.tried.message
    }

    pub fn status(&self) -> Status {
        self.tried.outcome.status().unwrap_or(Status::Received)
    }

    pub fn attempts(&self) -> u32 {
        u32::from(!matches!(
            self.tried.outcome,
            Outcome::Release { .. } | Outcome::Yield | Outcome::Hold { .. }
        ))
    }

    pub fn at(&self) -> i64 {
        self.tried.at.as_millis()
    }

    pub fn due_at(&self) -> Option<i64> {
        match self.tried.outcome {
            Outcome::Retry { due } | Outcome::Release { due } | Outcome::Hold { due } => {
                Some(due.as_millis().max(0))
            }
            Outcome::Delivered
            | Outcome::Filtered
            | Outcome::DeadLetter
            | Outcome::Discarded
            | Outcome::Yield => None,
        }
    }

    pub fn completed_at(&self) -> Option<i64> {
        self.status().is_final().then(|| self.at())
    }

    pub fn failure(&self) -> Option<&Failure> {
        let Tried {
            outcome, failure, ..
        } = self.tried.as_ref();
        let shows_it = matches!(
            outcome,
            Outcome::Retry { .. } | Outcome::DeadLetter | Outcome::Discarded
        );
        failure.as_ref().filter(|_| shows_it)
    }

    pub fn output(&self) -> Option<&[u8]> {
        self.tried.output.as_deref()
    }

    /// The bytes that the log has to keep, about.
    pub fn size_bytes(&self) -> usize {
        self.message().size_bytes()
            + self.output().map_or(0, <[u8]>::len)
            + self.trace.as_ref().map_or(0, String::len)
    }
}
