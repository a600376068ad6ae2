//! The states of a batch job.

use crate::Error;

/// State of a batch job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// None of its records has begun.
    Queued,
    Running,
    /// Every record succeeded.
    Completed,
    /// Every record ended, some of them badly.
    CompletedWithErrors,
    /// No more records begin.
    Cancelled,
}

impl Status {
    pub const ALL: &'static [Self] = &[
        Self::Queued,
        Self::Running,
        Self::Completed,
        Self::CompletedWithErrors,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::CompletedWithErrors => "completed_with_errors",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|status| status.as_str() == text)
    }

    /// A person cancels it: only while records are still to begin.
    pub fn cancel(self) -> Result<Self, Error> {
        match self {
            Self::Queued | Self::Running => Ok(Self::Cancelled),
            Self::Completed | Self::CompletedWithErrors | Self::Cancelled => {
                Err(Error::precondition(format!(
                    "a batch job that is {} cannot be cancelled",
                    self.as_str()
                )))
            }
        }
    }

    /// All records have ended.
    pub fn finish(failed: u32) -> Self {
        if failed == 0 {
            Self::Completed
        } else {
            Self::CompletedWithErrors
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back_and_only_what_goes_on_can_be_cancelled() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(*status));
            assert_eq!(
                status.cancel().is_ok(),
                matches!(status, Status::Queued | Status::Running)
            );
        }
    }
}
