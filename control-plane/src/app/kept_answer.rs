//! Answers to calls with an idempotency key: how long they are kept, and what they are sealed for.

use std::time::Duration;

/// Time for which an answer, and what a call has made, is known.
pub const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the context that the answer to a call is sealed for, by the credential and the key of
/// the call.
pub fn seal_context(key_id: &str, name: &str) -> String {
    format!("answered_request/{key_id}/{name}")
}
