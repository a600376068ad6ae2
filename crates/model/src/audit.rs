//! Principals, and the words of the audit log.

texts! {
    /// Kind of a caller.
    pub enum PrincipalType {
        /// A person: a member of the account, or one with a verified token who is no member.
        User = "user",
        /// A key of the account.
        ApiKey = "api_key",
        /// Reserved for programs with a key of their own for `/mcp`, where nothing answers yet.
        Agent = "agent",
        /// The service itself.
        System = "system",
    }

    /// Way on which a call came.
    pub enum Via {
        Api = "api",
        /// The command line.
        Cli = "cli",
        /// A session of a browser.
        Console = "console",
        Mcp = "mcp",
        /// No call: the service itself.
        System = "system",
    }

    /// Result of an audited call.
    pub enum Status {
        Done = "done",
        /// The caller may not do it.
        Denied = "denied",
    }
}

/// Caller as the audit log and `createdBy` tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub kind: PrincipalType,
    /// Id of the member, of the key or of the agent's key; `system` of the service itself.
    pub id: String,
    pub name: String,
    pub email: Option<String>,
    /// Text of the role at the time of the call; empty for a person who is no member.
    pub role: String,
}

impl Principal {
    /// Returns the service itself, which acts for its operator.
    pub fn system() -> Self {
        let system = PrincipalType::System.as_str();
        Self {
            kind: PrincipalType::System,
            id: system.to_owned(),
            name: system.to_owned(),
            email: None,
            role: "owner".to_owned(),
        }
    }
}
