//! SIGTERM and SIGINT: the first asks for a drain, the second ends the process where it stands.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, from the moment this was made.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn listen() -> Result<Self> {
        let on = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
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
