//! The states of a consumer key (spec, "States and transitions"), and the labels of consumers.

use std::time::Duration;

use crate::{Error, Result, Timestamp};

texts! {
    /// State of a key, which decides whether it opens its API.
    pub enum Status {
        Active = "active",
        Inactive = "inactive",
    }
}

/// Facts that the status of a key follows from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Refused until it is let in again.
    pub suspended: bool,
    /// Refused from then on, once it was rotated out.
    pub expires_at: Option<Timestamp>,
    /// Refused for good.
    pub revoked_at: Option<Timestamp>,
}

impl Standing {
    pub fn status(&self, now: Timestamp) -> Status {
        if self.suspended || self.has_ended(now) {
            Status::Inactive
        } else {
            Status::Active
        }
    }

    /// Returns whether the key is refused for good.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|at| at <= now)
    }

    /// The key makes room for another one when the grace period ends. Errors when it is inactive,
    /// or did so before.
    pub fn rotate(self, now: Timestamp, grace: Duration) -> Result<Self> {
        match (self.status(now), self.expires_at) {
            (Status::Active, None) => Ok(Self {
                expires_at: Some(now.after(grace)),
                ..self
            }),
            (Status::Active, Some(at)) => Err(Error::precondition(format!(
                "the key was rotated already, and ends at {at}: rotate the key that took its place"
            ))),
            (Status::Inactive, _) => Err(Error::precondition(
                "a key that is inactive cannot be rotated",
            )),
        }
    }

    /// Errors when the key has ended.
    pub fn suspend(self, now: Timestamp) -> Result<Self> {
        self.living(now, "suspended").map(|living| Self {
            suspended: true,
            ..living
        })
    }

    /// Errors when the key has ended.
    pub fn resume(self, now: Timestamp) -> Result<Self> {
        self.living(now, "activated").map(|living| Self {
            suspended: false,
            ..living
        })
    }

    /// A key that was revoked before stays as it is.
    pub fn revoke(self, now: Timestamp) -> Self {
        Self {
            revoked_at: self.revoked_at.or(Some(now)),
            ..self
        }
    }

    fn living(self, now: Timestamp, what: &str) -> Result<Self> {
        if self.has_ended(now) {
            return Err(Error::precondition(format!(
                "a key that was revoked or rotated out cannot be {what}: make another"
            )));
        }
        Ok(self)
    }
}

const MAX_LABEL_CHARS: usize = 64;

/// A consumer's label, which is a part of its keys. Errors say what is wrong with it.
pub fn check_consumer(label: &str) -> Result<(), String> {
    let is_one_line = label.trim() == label && !label.chars().any(char::is_control);
    if label.is_empty() || label.chars().count() > MAX_LABEL_CHARS || !is_one_line {
        return Err(format!(
            "{label:?} is no label of a consumer: 1 to {MAX_LABEL_CHARS} characters of one line, \
             with no space at either end"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const LATER: Timestamp = Timestamp::from_millis(1_060_000);

    #[test]
    fn follows_the_table_of_the_spec() {
        let new = Standing::default();
        assert_eq!(new.status(NOW), Status::Active);
        let rotated = new.rotate(NOW, Duration::ZERO).unwrap();
        assert_eq!(rotated.status(NOW), Status::Inactive);
        let graced = new.rotate(NOW, Duration::from_secs(60)).unwrap();
        assert_eq!(
            graced.status(Timestamp::from_millis(1_059_999)),
            Status::Active
        );
        assert_eq!(graced.status(LATER), Status::Inactive);
        assert_eq!(new.suspend(NOW).unwrap().status(NOW), Status::Inactive);
        assert_eq!(
            new.suspend(NOW).unwrap().resume(NOW).unwrap().status(NOW),
            Status::Active
        );
        assert_eq!(new.revoke(NOW).status(NOW), Status::Inactive);
        assert_eq!(new.revoke(NOW).revoke(LATER), new.revoke(NOW));
    }

    #[test]
    fn what_has_ended_stays_so() {
        let new = Standing::default();
        let graced = new.rotate(NOW, Duration::from_secs(60)).unwrap();
        for refused in [
            graced.rotate(NOW, Duration::ZERO),
            graced.rotate(LATER, Duration::ZERO),
            graced.resume(LATER),
            graced.suspend(LATER),
            new.suspend(NOW).unwrap().rotate(NOW, Duration::ZERO),
            new.revoke(NOW).resume(NOW),
            new.revoke(NOW).rotate(NOW, Duration::ZERO),
        ] {
            assert_eq!(refused.unwrap_err().code, Code::FailedPrecondition);
        }
    }

    #[test]
    fn labels_are_names_of_one_line() {
        for good in [
            "acme",
            "Acme-2",
            "a",
            "mobile_app.ios",
            "Müller & Söhne",
            &"ä".repeat(64),
        ] {
            assert_eq!(check_consumer(good), Ok(()), "{good}");
        }
        for wrong in ["", " ", " a", "a ", "a\nb", "a\u{7f}", &"x".repeat(65)] {
            assert!(check_consumer(wrong).is_err(), "{wrong}");
        }
    }
}
