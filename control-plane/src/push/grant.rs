//! Grants: the environments that are open to a node, and the credentials that it was admitted with.

use kanat_net::tls::ClientCertificate;

/// Environments that a node may ask for. The grant is an extension of the node's request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// Lists of ids or names of environments. An environment has to be in each of them; without a
    /// list, every environment is open.
    pub(super) restrictions: Vec<Vec<String>>,
    /// Credentials of the node; `None` for a node in this process.
    pub(super) credentials: Option<Credentials>,
}

/// Credentials that a node was admitted with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    /// SHA-256 of the token.
    pub token: Option<[u8; 32]>,
    pub certificate: Option<ClientCertificate>,
}

impl Grant {
    /// Returns whether an environment of this id and name is open to the node.
    pub fn allows(&self, id: &str, name: &str) -> bool {
        self.restrictions
            .iter()
            .all(|list| list.iter().any(|allowed| allowed == id || allowed == name))
    }

    /// Returns whether a node of this grant may replace a connected one with the same id: one with
    /// the same credentials. A node of this process may replace any.
    pub fn may_replace(&self, other: &Self) -> bool {
        self.credentials.is_none() || self.credentials == other.credentials
    }

    /// Returns whether the node is one of this process.
    pub fn is_own(&self) -> bool {
        self.credentials.is_none()
    }

    /// Returns whether every environment is open to the node, those of the future too.
    pub fn is_unbound(&self) -> bool {
        self.restrictions.is_empty()
    }
}
