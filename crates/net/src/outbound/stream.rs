//! An answer whose body is read piece by piece.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use super::{Error, classify};

/// An answer of which the body is still to come.
#[derive(Debug)]
pub struct Stream {
    answer: reqwest::Response,
    /// What the call may take, and what is left of it.
    timeout: Duration,
    left: Duration,
}

impl Stream {
    pub(super) fn new(answer: reqwest::Response, timeout: Duration, taken: Duration) -> Self {
        Self {
            answer,
            timeout,
            left: timeout.saturating_sub(taken),
        }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.answer.headers()
    }

    /// Bytes of the body, where the other side says how many there will be.
    pub fn announced(&self) -> Option<u64> {
        self.answer.content_length()
    }

    /// The next bytes of the body; `None` after the last.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let begun = Instant::now();
        let outcome = tokio::time::timeout(self.left, self.answer.chunk()).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        outcome
            .map_err(|_| Error::Timeout(self.timeout))?
            .map_err(|error| classify(&error, self.answer.url()))
    }
}
