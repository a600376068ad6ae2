//! The states of a batch job.

use crate::Error;

texts! {
    /// State of a batch job.
    pub enum Status {
        /// None of its records has begun.
        Queued = "queued",
        Running = "running",
        /// Every record succeeded.
        Completed = "completed",
        /// Every record ended, some of them badly.
        CompletedWithErrors = "completed_with_errors",
        /// No more records begin.
        Cancelled = "cancelled",
    }
}

impl Status {
    /// A person cancels it: only while records are still to begin.
    pub fn cancel(self) -> Result<Self, Error> {
        match self {
            Self::Queued | Self::Running => Ok(Self::Cancelled),
            Self::Completed | Self::CompletedWithErrors | Self::Cancelled => Err(
                Error::precondition(format!("a batch job that is {self} cannot be cancelled")),
            ),
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
