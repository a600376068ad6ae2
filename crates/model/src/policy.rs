//! Severities of governance policies.

/// The effect of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The deploy is refused.
    Deny,
    /// The deploy is done, with a warning.
    Warn,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Deny, Self::Warn]
            .into_iter()
            .find(|severity| severity.as_str() == text)
    }
}
