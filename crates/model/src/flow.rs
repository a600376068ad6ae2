//! The states of a flow (spec, "States and transitions").

use crate::{Error, Result};

texts! {
    /// State of a flow.
    pub enum Status {
        /// Never deployed.
        Draft = "draft",
        /// Deployed and taking messages.
        Active = "active",
        /// Deployed; accepts and holds its messages until it is resumed.
        Paused = "paused",
    }
}

impl Status {
    /// Every state may be deployed.
    pub fn deploy(self) -> Self {
        Self::Active
    }

    /// Errors when the flow is not active.
    pub fn pause(self) -> Result<Self> {
        self.lead(Self::Active, Self::Paused, "paused")
    }

    /// Errors when the flow is not paused.
    pub fn resume(self) -> Result<Self> {
        self.lead(Self::Paused, Self::Active, "resumed")
    }

    fn lead(self, from: Self, to: Self, done: &str) -> Result<Self> {
        if self == from {
            return Ok(to);
        }
        Err(Error::precondition(format!(
            "a flow that is {self} cannot be {done}"
        )))
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
