//! Answer whose body is read as a stream.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use super::{Error, next_chunk};

/// Answer whose body is not read yet.
#[derive(Debug)]
pub struct Stream {
    answer: reqwest::Response,
    /// Deadline of the call, and the time that is left.
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

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.answer.headers()
    }

    /// Returns the declared length of the body, in bytes.
    pub fn announced(&self) -> Option<u64> {
        self.answer.content_length()
    }

    /// Returns the next bytes of the body; `None` after the last.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let begun = Instant::now();
        let outcome = tokio::time::timeout(self.left, next_chunk(&mut self.answer)).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        outcome.unwrap_or(Err(Error::Timeout(self.timeout)))
    }
}
