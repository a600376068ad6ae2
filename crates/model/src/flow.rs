//! The states of a flow (spec, "States and transitions").

use crate::Error;

/// State of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Never deployed.
    Draft,
    /// Deployed and taking messages.
    Active,
    /// Deployed; accepts and holds its messages until it is resumed.
    Paused,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Draft, Self::Active, Self::Paused]
            .into_iter()
            .find(|s| s.as_str() == text)
    }

    /// Every state may be deployed.
    pub fn deploy(self) -> Self {
        Self::Active
    }

    /// Errors when the flow is not active.
    pub fn pause(self) -> Result<Self, Error> {
        match self {
            Self::Active => Ok(Self::Paused),
            Self::Draft | Self::Paused => Err(Error::precondition(format!(
                "a flow that is {} cannot be paused",
                self.as_str()
            ))),
        }
    }

    /// Errors when the flow is not paused.
    pub fn resume(self) -> Result<Self, Error> {
        match self {
            Self::Paused => Ok(Self::Active),
            Self::Draft | Self::Active => Err(Error::precondition(format!(
                "a flow that is {} cannot be resumed",
                self.as_str()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_table_of_the_spec() {
        assert_eq!(Status::Draft.deploy(), Status::Active);
        assert_eq!(Status::Paused.deploy(), Status::Active);
        assert_eq!(Status::Active.pause(), Ok(Status::Paused));
        assert_eq!(Status::Paused.resume(), Ok(Status::Active));
        assert!(Status::Draft.pause().is_err());
        assert!(Status::Active.resume().is_err());
    }
}
