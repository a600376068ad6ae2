//! Settings of a process that holds a data-plane node.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problems, or, value};

/// What the command line, the environment and the file may say; everything may be left out.
#[derive(Default, Clone, clap::Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default)]
pub struct Flags {
    /// Largest body that a webhook may have, in bytes [default: 1048576].
    #[arg(long, env = "KANAT_BODY_LIMIT")]
    pub body_limit: Option<usize>,
    /// How long messages of a process that died wait for another, in seconds [default: 30].
    #[arg(long, env = "KANAT_LEASE_SECONDS")]
    pub lease_seconds: Option<u64>,
}

/// The settings of a node, checked.
pub struct Settings {
    /// Bytes.
    pub body_limit: usize,
    pub lease: Duration,
}

impl Flags {
    pub(super) fn or(mut self, file: Self) -> Self {
        or!(self, file; body_limit, lease_seconds);
        self
    }

    pub(super) fn check(self, problems: &mut Problems) -> Settings {
        Settings {
            body_limit: problems.take("body_limit", value::body_limit(self.body_limit.unwrap_or(1 << 20))),
            lease: problems.take("lease_seconds", value::seconds(self.lease_seconds.unwrap_or(30), 1, 3600)),
        }
    }
}

impl Settings {
    pub(super) fn to_flags(&self) -> Flags {
        Flags { body_limit: Some(self.body_limit), lease_seconds: Some(self.lease.as_secs()) }
    }
}
