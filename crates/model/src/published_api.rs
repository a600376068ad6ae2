//! Published APIs: their words, and the states of their versions (spec, "States and transitions").

pub mod path;

use crate::{Error, Result, Timestamp};
pub use path::{Path, Segment};

texts! {
    /// A method that consumers call an API by.
    pub enum Method {
        Get = "GET",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

impl Method {
    /// Returns whether the input of a call is its body; otherwise it is query and path.
    pub fn has_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Delete => false,
        }
    }
}

texts! {
    /// Authentication of consumers.
    pub enum Auth {
        ApiKey = "api_key",
        OAuth2 = "oauth2",
        None = "none",
    }
}

texts! {
    /// Treatment of a request or of an answer that does not fit its schema.
    pub enum Validation {
        /// It is refused, and leaves nothing behind.
        Strict = "strict",
        /// The faults are noted on the message, which goes on.
        Lenient = "lenient",
    }
}

texts! {
    /// Fate of the message of a call that ran out of time.
    pub enum OnTimeout {
        Continue = "continue",
        Discard = "discard",
    }
}

/// Issuer and audience of the tokens that an API takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OAuth2 {
    pub issuer: String,
    /// Found by the issuer's discovery document when there is none.
    pub jwks_url: Option<String>,
    pub audience: String,
    /// Each is needed.
    pub scopes: Vec<String>,
}

/// Which pages of other origins may call from a browser.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cors {
    /// Origins, or `*` alone.
    pub origins: Vec<String>,
    pub headers: Vec<String>,
    pub exposed_headers: Vec<String>,
    pub credentials: bool,
    pub max_age_seconds: u32,
}

texts! {
    /// State of a version.
    pub enum VersionStatus {
        Active = "active",
        /// Serves, and every answer says when it is to end.
        Deprecated = "deprecated",
        /// Serves no more.
        Retired = "retired",
    }
}

impl VersionStatus {
    /// A deprecated version may be given another sunset date. Errors when it is retired.
    pub fn deprecate(self) -> Result<Self> {
        match self {
            Self::Active | Self::Deprecated => Ok(Self::Deprecated),
            Self::Retired => Err(Error::precondition(
                "a version that is retired cannot be deprecated",
            )),
        }
    }

    /// Errors when the version is not deprecated, and before its sunset date.
    pub fn retire(self, sunset_at: Option<Timestamp>, now: Timestamp) -> Result<Self> {
        match (self, sunset_at) {
            (Self::Deprecated, Some(at)) if now < at => {
                let day: String = at.to_string().chars().take(10).collect();
                Err(Error::precondition(format!(
                    "the version is to end on {day}: retire it from then on, or with force"
                )))
            }
            (Self::Deprecated, _) => Ok(Self::Retired),
            (Self::Active, _) => Err(Error::precondition(
                "a version that is active cannot be retired: deprecate it first, or retire it \
                 with force",
            )),
            (Self::Retired, _) => self.retire_at_once(),
        }
    }

    /// Errors when the version is retired already.
    pub fn retire_at_once(self) -> Result<Self> {
        match self {
            Self::Active | Self::Deprecated => Ok(Self::Retired),
            Self::Retired => Err(Error::precondition("the version is retired already")),
        }
    }
}

/// The highest number that a version may have.
pub const MAX_VERSION: u32 = 9_999;

/// The number in a label such as `v2`; `None` for any other text.
pub fn version_number(label: &str) -> Option<u32> {
    let digits = label.strip_prefix('v')?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    let number = digits.parse().ok().filter(|_| plain)?;
    (1..=MAX_VERSION).contains(&number).then_some(number)
}

/// The label of a version, as in `v2`.
pub fn version_label(number: u32) -> String {
    format!("v{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn texts_read_back() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.as_str()), Some(*method));
        }
        for auth in Auth::ALL {
            assert_eq!(Auth::parse(auth.as_str()), Some(*auth));
        }
        for mode in Validation::ALL {
            assert_eq!(Validation::parse(mode.as_str()), Some(*mode));
        }
        for what in OnTimeout::ALL {
            assert_eq!(OnTimeout::parse(what.as_str()), Some(*what));
        }
        for status in VersionStatus::ALL {
            assert_eq!(VersionStatus::parse(status.as_str()), Some(*status));
        }
        assert_eq!(Method::parse("post"), None);
    }

    #[test]
    fn versions_follow_the_table_of_the_spec() {
        use VersionStatus::{Active, Deprecated, Retired};
        let sunset = Timestamp::from_millis(1000);
        let before = Timestamp::from_millis(999);
        assert_eq!(Active.deprecate(), Ok(Deprecated));
        assert_eq!(Deprecated.deprecate(), Ok(Deprecated));
        assert_eq!(Deprecated.retire(Some(sunset), sunset), Ok(Retired));
        assert_eq!(Deprecated.retire_at_once(), Ok(Retired));
        assert_eq!(Active.retire_at_once(), Ok(Retired));
        for refused in [
            Retired.deprecate(),
            Deprecated.retire(Some(sunset), before),
            Active.retire(None, sunset),
            Retired.retire(Some(sunset), sunset),
            Retired.retire_at_once(),
        ] {
            assert_eq!(refused.unwrap_err().code, Code::FailedPrecondition);
        }
        let said = Deprecated.retire(Some(sunset), before).unwrap_err();
        assert!(said.message.contains("1970-01-01"), "{said}");
    }

    #[test]
    fn a_label_is_v_and_a_number() {
        assert_eq!(version_number("v1"), Some(1));
        assert_eq!(version_number(&version_label(9999)), Some(9999));
        for wrong in [
            "", "v", "1", "v0", "v01", "V1", "v1.0", "v+1", "v10000", "v 1", "vv1",
        ] {
            assert_eq!(version_number(wrong), None, "{wrong}");
        }
    }
}
