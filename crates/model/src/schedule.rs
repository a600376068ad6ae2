//! How a run of a schedule went.

use crate::message;

texts! {
    /// State of a schedule's last run (spec, "Schedule").
    pub enum RunStatus {
        Running = "running",
        Success = "success",
        Failed = "failed",
    }
}

impl RunStatus {
    /// Returns the status of a run by that of its message. A flow whose condition was false did
    /// what it was asked to.
    pub fn of(message: message::Status) -> Self {
        match message {
            message::Status::Received
            | message::Status::Processing
            | message::Status::Retrying
            | message::Status::Held => Self::Running,
            message::Status::Delivered | message::Status::Filtered => Self::Success,
            message::Status::DeadLetter | message::Status::Discarded => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_until_its_message_has_ended() {
        for status in message::Status::ALL {
            assert_eq!(
                RunStatus::of(*status) == RunStatus::Running,
                !status.is_final(),
                "{}",
                status.as_str()
            );
        }
        for status in [RunStatus::Running, RunStatus::Success, RunStatus::Failed] {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        }
    }
}
