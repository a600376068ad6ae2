//! Availability of the message log for new messages, known by the last append and, while the log
//! refuses appends, by probes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kanat_message_log::{DeliveryStore, Error};
use kanat_telemetry::Throttle;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

/// Shortest time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Availability of the log, as its appends and probes show it.
#[derive(Default)]
pub(super) struct LogAvailability {
    /// True when the last append was refused.
    refuses: AtomicBool,
    state: Mutex<State>,
    lines: Throttle,
}

#[derive(Default)]
struct State {
    reason: String,
    probed: Option<Instant>,
}

impl LogAvailability {
    /// Records that the log took a message.
    pub fn appended(&self) {
        if self.refuses.load(Ordering::Relaxed) && self.refuses.swap(false, Ordering::AcqRel) {
            tracing::info!("the message log takes messages again");
        }
    }

    /// Records that the log refused a message. A full queue does not count.
    pub fn refused(&self, error: &Error) {
        if !matches!(error, Error::Full) {
            self.state.lock().reason = unavailability(error);
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

    /// Checks that the log takes messages. It probes the log at most once a second.
    ///
    /// # Errors
    /// The reason why the log refuses messages.
    pub async fn check(&self, log: &dyn DeliveryStore) -> Result<(), String> {
        if !self.refuses.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.is_probe_due(Instant::now()) {
            return Err(self.state.lock().reason.clone());
        }
        match timeout(PROBE_TIMEOUT, log.probe()).await {
            Ok(Ok(())) => {
                self.appended();
                Ok(())
            }
            Ok(Err(error)) => {
                let reason = unavailability(&error);
                self.state.lock().reason.clone_from(&reason);
                Err(reason)
            }
            Err(_) => Err(self.state.lock().reason.clone()),
        }
    }

    fn is_probe_due(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let is_due = state
            .probed
            .is_none_or(|probed| now.saturating_duration_since(probed) >= PROBE_INTERVAL);
        if is_due {
            state.probed = Some(now);
        }
        is_due
    }
}

/// Returns why the message log is not ready, in words for callers. Only a fault of a local disk is
/// described in detail.
pub(crate) fn unavailability(error: &Error) -> String {
    match error {
        Error::Disk(_) => error.to_string(),
        _ => "the message log is out of reach".to_owned(),
    }
}
