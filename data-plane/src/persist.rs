//! Retries writes about a message until the log takes them: a log that cannot write for a while
//! loses nothing.

use std::time::Duration;

use kanat_message_log::{Error, LeasedWriteOutcome};
use kanat_model::backoff::Backoff;
use kanat_model::id::MessageId;
use kanat_telemetry::{Throttle, metrics};

/// Delays after failed writes.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(50),
    max: Duration::from_secs(5),
};

/// Log lines of failed writes: a full disk causes thousands a minute.
static FAILED_WRITES: Throttle = Throttle::new();

/// Retries `write` until it is durable, or until the log reports that the message belongs to
/// another node.
pub(crate) async fn persist<F>(message: &MessageId, write: impl Fn() -> F) -> LeasedWriteOutcome
where
    F: Future<Output = Result<LeasedWriteOutcome, Error>>,
{
    let mut failures = 0;
    loop {
        match write().await {
            Ok(LeasedWriteOutcome::Done) => return LeasedWriteOutcome::Done,
            Ok(LeasedWriteOutcome::Fenced) => {
                metrics().settles_fenced.inc();
                tracing::warn!(
                    message.id = %message,
                    "an outcome came too late: the message was taken over",
                );
                return LeasedWriteOutcome::Fenced;
            }
            Err(error) => {
                metrics().settle_failures.inc();
                if let Some(count) = FAILED_WRITES.count() {
                    tracing::warn!(
                        %error,
                        message.id = %message,
                        count,
                        "an outcome cannot be written yet",
                    );
                }
            }
        }
        failures += 1;
        tokio::time::sleep(RETRY.delay(failures)).await;
    }
}
