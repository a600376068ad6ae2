//! The access token that the OAuth2 client of an instance holds at the moment.

use kanat_model::Timestamp;

/// An access token, and what is known of it. It has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// Text that calls carry.
    pub text: String,
    /// When it ends, where its provider said so.
    pub ends_at: Option<Timestamp>,
    /// Another token can be had without a person.
    pub renewable: bool,
}

impl AccessToken {
    /// One that is good until its provider says otherwise.
    pub fn lasting(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ends_at: None,
            renewable: false,
        }
    }

    /// Returns whether it has expired.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }
}
