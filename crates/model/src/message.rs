//! The states of a message and what starts one.

use crate::Error;

macro_rules! texts {
    ($name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

/// State of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Durable, not yet begun.
    Received,
    /// A node works on it.
    Processing,
    /// An attempt failed; the next one has a due time.
    Retrying,
    /// Its flow is paused.
    Held,
    Delivered,
    /// Its flow's condition was false.
    Filtered,
    /// Given up; a person may retry, replay or discard it.
    DeadLetter,
    /// It needs no delivery: a person said so, or its flow was deleted.
    Discarded,
}

texts!(Status {
    Received = "received",
    Processing = "processing",
    Retrying = "retrying",
    Held = "held",
    Delivered = "delivered",
    Filtered = "filtered",
    DeadLetter = "dead_letter",
    Discarded = "discarded",
});

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
    pub fn retry(self) -> Result<Self, Error> {
        match self {
            Self::DeadLetter => Ok(Self::Received),
            Self::Retrying => Err(Error::precondition(
                "a message that is retrying is tried again at its nextAttemptAt (a replay sends \
                 it now, as a new message beside it)",
            )),
            Self::Received
            | Self::Processing
            | Self::Held
            | Self::Delivered
            | Self::Filtered
            | Self::Discarded => Err(Error::precondition(format!(
                "a message that is {} cannot be retried: only a dead_letter can",
                self.as_str()
            ))),
        }
    }

    /// A person discards it: a dead letter, or one that still waits.
    pub fn discard(self) -> Result<Self, Error> {
        match self {
            Self::DeadLetter | Self::Received | Self::Retrying | Self::Held => Ok(Self::Discarded),
            Self::Processing | Self::Delivered | Self::Filtered | Self::Discarded => {
                Err(Error::precondition(format!(
                    "a message that is {} cannot be discarded",
                    self.as_str()
                )))
            }
        }
    }
}

/// Origin of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    Webhook,
    Schedule,
    Poll,
    Manual,
    Api,
    Batch,
    Replay,
}

texts!(Trigger {
    Webhook = "webhook",
    Schedule = "schedule",
    Poll = "poll",
    Manual = "manual",
    Api = "api",
    Batch = "batch",
    Replay = "replay",
});

/// Kind of failure of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A field of the mapping, a condition or a template; final.
    Mapping,
    /// The request never got an answer: refused, reset, cut off, no address.
    Network,
    /// The other side spoke no TLS, or showed a certificate that is not accepted.
    Tls,
    Timeout,
    /// The target answered, and not with 2xx.
    Status,
    /// The target answered with 2xx, and said in its body that it refuses the call.
    TargetRefused,
    /// The egress guard refused the address; final.
    Egress,
    /// The connector has no credentials to call with, and may get some.
    Credentials,
    /// A step with `on_failure: reject` failed; final.
    Rejected,
    /// The plan cannot run: an instance or a table that it names is gone; final.
    Configuration,
    Adapter,
    /// The flow ran, and its response does not fit the API that was called.
    Validation,
    /// The flow was deleted while the message waited; final.
    FlowDeleted,
}

texts!(ErrorKind {
    Mapping = "mapping",
    Network = "network",
    Tls = "tls",
    Timeout = "timeout",
    Status = "status",
    TargetRefused = "target_refused",
    Egress = "egress",
    Credentials = "credentials",
    Rejected = "rejected",
    Configuration = "configuration",
    Adapter = "adapter",
    Validation = "validation",
    FlowDeleted = "flow_deleted",
});

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

    /// The end of a message whose flow was deleted while it waited.
    pub fn flow_deleted() -> Self {
        let message = Self::FLOW_DELETED.to_owned();
        Self {
            kind: ErrorKind::FlowDeleted,
            message,
            field: None,
            expression: None,
        }
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
    fn only_a_dead_letter_is_retried() {
        for status in Status::ALL {
            assert_eq!(status.retry().is_ok(), *status == Status::DeadLetter);
        }
    }
}
