//! Severities of governance policies.

texts! {
    /// The effect of a violation.
    pub enum Severity {
        /// The deploy is refused.
        Deny = "deny",
        /// The deploy is done, with a warning.
        Warn = "warn",
    }
}
