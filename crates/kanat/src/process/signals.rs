//! SIGTERM, SIGINT and SIGHUP: the first one asks for a drain, the second one ends the process at
//! once.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// A signal within this time after another one is the same: some senders signal the process and
/// then its group.
const REPEAT: Duration = Duration::from_millis(500);

/// The signals that arrive after this was made.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Absent where the process was started to outlive its terminal, as `nohup` does.
    hang_up: Option<Signal>,
    last: Option<Instant>,
}

impl Signals {
    pub fn listen() -> Result<Self> {
        let on = |kind| signal(kind).context("cannot listen for signals");
        let hang_up = if ignores_hang_up() {
            None
        } else {
            Some(on(SignalKind::hangup())?)
        };
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
            hang_up,
            last: None,
        })
    }

    /// Waits for the next signal that is no repeat of the one before.
    pub async fn next(&mut self) {
        loop {
            self.receive().await;
            let now = Instant::now();
            if self
                .last
                .is_none_or(|last| now.duration_since(last) >= REPEAT)
            {
                self.last = Some(now);
                return;
            }
        }
    }

    async fn receive(&mut self) {
        let Self {
            terminate,
            interrupt,
            hang_up,
            last: _,
        } = self;
        let hang_up = async {
            match hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up => {}
        }
    }

    /// Runs `stopping` to its end, unless as many further signals come first.
    pub async fn unless_again<T>(mut self, signals: u32, stopping: impl Future<Output = T>) -> T {
        let again = async {
            for _ in 0..signals {
                self.next().await;
            }
        };
        tokio::select! {
            done = stopping => done,
            () = again => {
                eprintln!("a second signal: ending at once");
                std::process::exit(1);
            }
        }
    }
}

/// Returns whether SIGHUP was ignored when the process started. Only Linux says so.
fn ignores_hang_up() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored(&status) & 1 == 1)
}

/// The signals that are ignored, the first one in the lowest bit, from the text of
/// `/proc/<id>/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_which_signals_are_ignored() {
        assert_eq!(ignored("Name:\tkanat\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored("Name:\tkanat\n"), 0);
    }
}
