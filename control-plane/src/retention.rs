//! Retention: how long finished things are kept.

use std::time::Duration;

/// Times for which finished things are kept; for ever when there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    pub messages: Option<Duration>,
    pub batch_jobs: Option<Duration>,
    pub audit_log: Option<Duration>,
}
