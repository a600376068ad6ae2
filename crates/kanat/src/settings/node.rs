//! Settings of a process that holds a data-plane node.

use std::time::Duration;

use super::{Problems, flags, value};

/// Largest limit of a body, in bytes.
const MAX_BODY_LIMIT: usize = 64 << 20;
/// Largest limit of a poll's answer, in bytes.
const MAX_POLL_ANSWER_LIMIT: usize = 256 << 20;

flags! {
    /// Settings of a node, as the command line, the environment and the file give them; each may be
    /// left out.
    pub struct Flags {
        /// Largest body that a webhook may have, in bytes [default: 1048576].
        "KANAT_BODY_LIMIT" => body_limit: Option<usize>,
        /// Bytes of unfinished messages at which intake is refused [default: a quarter of the free
        /// disk at the start, at least 1073741824; with PostgreSQL 8589934592].
        "KANAT_BACKLOG_BYTES" => backlog_bytes: Option<u64>,
        /// How long the oldest message of a flow may wait for its first attempt before intake of
        /// the flow is refused, such as 10m [default: without a bound].
        "KANAT_BACKLOG_AGE" => backlog_age: Option<String>,
        /// How long messages of a process that died wait for another, in seconds [default: 30].
        "KANAT_LEASE_SECONDS" => lease_seconds: Option<u64>,
        /// Largest answer that a poll takes, in bytes [default: 16777216].
        "KANAT_POLL_ANSWER_LIMIT" => poll_answer_limit: Option<usize>,
    }
}

/// The settings of a node, checked.
pub struct Settings {
    /// Bytes.
    pub body_limit: usize,
    /// `None` for the default, which depends on the disk.
    pub backlog_bytes: Option<u64>,
    pub backlog_age: Option<Duration>,
    pub lease: Duration,
    /// Bytes.
    pub poll_answer_limit: usize,
}

impl Flags {
    pub(super) fn check(&mut self, problems: &mut Problems) -> Settings {
        let body_limit = *self.body_limit.get_or_insert(1 << 20);
        let poll_answer_limit = *self.poll_answer_limit.get_or_insert(16 << 20);
        let lease = *self.lease_seconds.get_or_insert(30);
        let backlog_age = problems.take(
            "backlog_age",
            self.backlog_age
                .as_deref()
                .map(value::backlog_age)
                .transpose(),
        );
        self.backlog_age = backlog_age.map(kanat_flow::duration::format);
        let backlog_bytes = self.backlog_bytes.map(value::backlog_bytes).transpose();
        Settings {
            body_limit: problems.take(
                "body_limit",
                value::within(body_limit, 1..=MAX_BODY_LIMIT, " bytes are"),
            ),
            backlog_bytes: problems.take("backlog_bytes", backlog_bytes),
            backlog_age,
            lease: problems.take("lease_seconds", value::seconds(lease, 1..=3600)),
            poll_answer_limit: problems.take(
                "poll_answer_limit",
                value::within(poll_answer_limit, 1..=MAX_POLL_ANSWER_LIMIT, " bytes are"),
            ),
        }
    }
}
