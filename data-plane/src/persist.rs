//! Writes about a message until the log has taken it: a log that cannot write for a while loses
//! nothing.

use std::time::Duration;

use kanat_message_log::{Error, SettleOutcome};
use kanat_model::id::MessageId;
use kanat_telemetry::{Throttle, metrics};

/// Waits between tries: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Tries that failed: a full disk fails thousands of them a minute.
static UNWRITTEN: Throttle = Throttle::new();

/// Ends when the write is durable, or when the log says that the message belongs to another.
pub(crate) async fn persist<F>(message: &MessageId, write: impl Fn() -> F) -> SettleOutcome
where
    F: Future<Output = Result<SettleOutcome, Error>>,
{
    let mut pause = RETRY.0;
    loop {
        match write().await {
            Ok(SettleOutcome::Done) => return SettleOutcome::Done,
            Ok(SettleOutcome::Fenced) => {
                metrics().settles_fenced.inc();
                tracing::warn!(
                    message.id = %message,
                    "an outcome came too late: the message was taken over",
                );
                return SettleOutcome::Fenced;
            }
            Err(error) => {
                metrics().settle_failures.inc();
                if let Some(count) = UNWRITTEN.count() {
                    tracing::warn!(
                        %error,
                        message.id = %message,
                        count,
                        "an outcome cannot be written yet",
                    );
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}
