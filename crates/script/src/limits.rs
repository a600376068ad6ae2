//! How much an adapter may use.

use std::time::Duration;

/// The bounds of one call; all calls that one attempt of a message makes share `cpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that the code's objects take.
    pub memory: usize,
    /// Time on a core.
    pub cpu: Duration,
}

impl Default for Limits {
    /// 64 MiB and one second.
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            cpu: Duration::from_secs(1),
        }
    }
}
