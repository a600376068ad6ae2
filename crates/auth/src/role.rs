//! Roles of members and keys, and what each may do.

use std::fmt;

/// Role of a credential. Each one has all permissions of those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Owner,
    Admin,
    Editor,
    Viewer,
}

/// Permission that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// See.
    Read,
    /// Build and run.
    Write,
    /// Keys, members, environments.
    Admin,
    /// Billing, the master key, and the end of the account.
    Billing,
}

impl Permission {
    /// All permissions, from reading to the end of the account.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Admin, Self::Billing];

    /// Returns the permission's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Billing => "billing",
        }
    }
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Editor, Self::Viewer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    pub fn allows(self, permission: Permission) -> bool {
        match permission {
            Permission::Read => true,
            Permission::Write => self != Self::Viewer,
            Permission::Admin => matches!(self, Self::Owner | Self::Admin),
            Permission::Billing => self == Self::Owner,
        }
    }

    /// Returns whether this role may grant `other`: nobody grants more than they have.
    pub fn may_grant(self, other: Self) -> bool {
        self as u8 <= other as u8
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_allow_what_the_contract_says() {
        let table = [
            (Role::Owner, [true, true, true, true]),
            (Role::Admin, [true, true, true, false]),
            (Role::Editor, [true, true, false, false]),
            (Role::Viewer, [true, false, false, false]),
        ];
        let permissions = [
            Permission::Read,
            Permission::Write,
            Permission::Admin,
            Permission::Billing,
        ];
        for (role, expected) in table {
            assert_eq!(permissions.map(|p| role.allows(p)), expected, "{role}");
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
    }

    #[test]
    fn nobody_grants_more_than_he_has() {
        assert!(Role::Owner.may_grant(Role::Owner));
        assert!(Role::Admin.may_grant(Role::Editor));
        assert!(!Role::Admin.may_grant(Role::Owner));
        assert!(!Role::Viewer.may_grant(Role::Editor));
    }
}
