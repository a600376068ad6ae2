//! Whether the message log takes what comes in: as the last message that came said and, while it
//! refuses, as probes say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kanat_message_log::{DeliveryStore, Error};
use kanat_telemetry::Throttle;
use tokio::time::{Instant, timeout};

/// Between two probes.
const PROBE_PAUSE: Duration = Duration::from_secs(1);
/// A probe that is not answered within this time has failed.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// What is known of the log's readiness to take messages.
#[derive(Default)]
pub(super) struct Taking {
    /// The last message was refused.
    refuses: AtomicBool,
    state: Mutex<State>,
    lines: Throttle,
}

#[derive(Default)]
struct State {
    reason: String,
    probed: Option<Instant>,
}

impl Taking {
    /// The log took a message.
    pub fn took(&self) {
        if self.refuses.load(Ordering::Relaxed) && self.refuses.swap(false, Ordering::AcqRel) {
            tracing::info!("the message log takes messages again");
        }
    }

    /// The log refused a message. A full queue says nothing of the log itself.
    pub fn refused(&self, error: &Error) {
        if !matches!(error, Error::Full) {
            self.state().reason = told(error);
            self.refuses.store(true, Ordering::Release);
        }
        if let Some(count) = self.lines.count() {
            tracing::warn!(
                %error,
                count,
                "messages were not accepted: the message log cannot store them",
            );
        }
    }

    /// Errors with the reason while the log refuses messages. It is probed once a second at most,
    /// however often this is asked.
    pub async fn check(&self, log: &dyn DeliveryStore) -> Result<(), String> {
        if !self.refuses.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.is_probe_due(Instant::now()) {
            return Err(self.state().reason.clone());
        }
        match timeout(PROBE_TIMEOUT, log.probe()).await {
            Ok(Ok(())) => {
                self.took();
                Ok(())
            }
            Ok(Err(error)) => {
                let reason = told(&error);
                self.state().reason.clone_from(&reason);
                Err(reason)
            }
            Err(_) => Err(self.state().reason.clone()),
        }
    }

    fn is_probe_due(&self, now: Instant) -> bool {
        let mut state = self.state();
        let is_due = state
            .probed
            .is_none_or(|probed| now.saturating_duration_since(probed) >= PROBE_PAUSE);
        if is_due {
            state.probed = Some(now);
        }
        is_due
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says why the message log is not ready. Only what is wrong with a disk of ours is told to whoever
/// asks.
pub(crate) fn told(error: &Error) -> String {
    match error {
        Error::Disk(_) => error.to_string(),
        _ => "the message log is out of reach".to_owned(),
    }
}
