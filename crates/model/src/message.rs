//! The states of a message and what starts one.

use crate::{Error, Result};

/// Largest number of messages that one call retries, replays or discards.
pub const MAX_BULK: u64 = 10_000;

/// Checks that one call may take up this many messages.
///
/// # Errors
/// `found` is more than [`MAX_BULK`].
pub fn check_bulk(found: u64) -> Result<()> {
    if found <= MAX_BULK {
        return Ok(());
    }
    Err(Error::precondition(format!(
        "{found} messages fit, and one call takes up {MAX_BULK}: narrow it down"
    )))
}

texts! {
    /// State of a message.
    pub enum Status {
        /// Durable, not yet begun.
        Received = "received",
        /// A node works on it.
        Processing = "processing",
        /// An attempt failed; the next one has a due time.
        Retrying = "retrying",
        /// Its flow is paused.
        Held = "held",
        Delivered = "delivered",
        /// Its flow's condition was false.
        Filtered = "filtered",
        /// Given up; a person may retry, replay or discard it.
        DeadLetter = "dead_letter",
        /// It needs no delivery: a person said so, or its flow was deleted.
        Discarded = "discarded",
    }
}

impl Status {
    /// Nothing more will happen to it by itself.
    pub fn is_final(self) -> bool {
        match self {
            Self::Received | Self::Processing | Self::Retrying | Self::Held => false,
            Self::Delivered | Self::Filtered | Self::DeadLetter | Self::Discarded => true,
        }
    }

    /// Statuses of a message that waits for a node to begin it.
    pub const WAITING: [Self; 3] = [Self::Received, Self::Retrying, Self::Held];

    /// Returns the status that a message of a paused flow has: one that waits is held until the
    /// flow goes on, whatever it waited for.
    #[must_use]
    pub fn while_paused(self) -> Self {
        if Self::WAITING.contains(&self) {
            Self::Held
        } else {
            self
        }
    }

    /// A person retries it: only from `dead_letter`.
    pub fn retry(self) -> Result<Self> {
        match self {
            Self::DeadLetter => Ok(Self::Received),
            Self::Retrying => Err(Error::precondition(
                "a message that is retrying is tried again at its nextAttemptAt; to send it \
                 sooner, discard it first and replay it then (a replay beside it makes two \
                 deliveries, or waits behind it for its ordering key)",
            )),
            Self::Received
            | Self::Processing
            | Self::Held
            | Self::Delivered
            | Self::Filtered
            | Self::Discarded => Err(Error::precondition(format!(
                "a message that is {self} cannot be retried: only a dead_letter can"
            ))),
        }
    }

    /// A person discards it: a dead letter, or one that still waits.
    pub fn discard(self) -> Result<Self> {
        match self {
            Self::DeadLetter | Self::Received | Self::Retrying | Self::Held => Ok(Self::Discarded),
            Self::Processing | Self::Delivered | Self::Filtered | Self::Discarded => Err(
                Error::precondition(format!("a message that is {self} cannot be discarded")),
            ),
        }
    }
}

texts! {
    /// Origin of a message.
    pub enum Trigger {
        Webhook = "webhook",
        Schedule = "schedule",
        Poll = "poll",
        Manual = "manual",
        Api = "api",
        Batch = "batch",
        Replay = "replay",
    }
}

texts! {
    /// Kind of failure of a message.
    pub enum ErrorKind {
        /// A field of the mapping, a condition or a template; final.
        Mapping = "mapping",
        /// The request never got an answer: refused, reset, cut off, no address.
        Network = "network",
        /// The other side spoke no TLS, or showed a certificate that is not accepted.
        Tls = "tls",
        Timeout = "timeout",
        /// The target answered, and not with 2xx.
        Status = "status",
        /// The target answered with 2xx, and refused the call by its body or by `success_when`, or
        /// the body contradicts its content type.
        TargetRefused = "target_refused",
        /// The `success_when` that judges an answer could not be evaluated; final, because the
        /// target has taken the call.
        Condition = "condition",
        /// The egress guard refused the address; final.
        Egress = "egress",
        /// The connector has no credentials to call with, and may get some.
        Credentials = "credentials",
        /// A step with `on_failure: reject` failed; final.
        Rejected = "rejected",
        /// The plan cannot run: an instance or a table that it names is gone; final.
        Configuration = "configuration",
        Adapter = "adapter",
        /// The flow ran, and its response does not fit the API that was called.
        Validation = "validation",
        /// The flow was deleted while the message waited; final.
        FlowDeleted = "flow_deleted",
    }
}

/// Why an attempt or a message failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: ErrorKind,
    pub message: String,
    /// The target field, for a mapping error.
    pub field: Option<String>,
    /// The expression, for a mapping error.
    pub expression: Option<String>,
}

impl Failure {
    /// The text of [`Failure::flow_deleted`].
    pub const FLOW_DELETED: &str = "the flow was deleted before the message was delivered";

    /// Returns a failure that is of no field.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            field: None,
            expression: None,
        }
    }

    /// The end of a message whose flow was deleted while it waited.
    pub fn flow_deleted() -> Self {
        Self::new(ErrorKind::FlowDeleted, Self::FLOW_DELETED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(*status));
        }
    }

    #[test]
    fn one_call_takes_up_ten_thousand_messages() {
        assert!(check_bulk(MAX_BULK).is_ok());
        let error = check_bulk(MAX_BULK + 1).unwrap_err().to_string();
        assert!(error.starts_with("10001 messages fit"), "{error}");
    }

    #[test]
    fn only_a_dead_letter_is_retried() {
        for status in Status::ALL {
            assert_eq!(status.retry().is_ok(), *status == Status::DeadLetter);
        }
    }
}
