//! The name and the content hash of a resource.

use std::fmt;

use sha2::{Digest, Sha256};

/// Kind of a resource; the part of its id before the `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A `kanat.plan.v1.FlowPlan`.
    Flow,
    /// The head of a lookup table: a `kanat.plan.v1.LookupTable` without entries.
    LookupTable,
    /// A `kanat.plan.v1.LookupTable` with some of the entries of a table.
    LookupPart,
    /// A `kanat.plan.v1.ConnectorInstance`.
    ConnectorInstance,
    /// A `kanat.plan.v1.Adapter`.
    Adapter,
    /// A `kanat.plan.v1.PublishedApi`.
    PublishedApi,
    /// A `kanat.plan.v1.ConsumerKey`.
    ConsumerKey,
    /// A `kanat.plan.v1.EnvironmentSettings`.
    Environment,
}

impl Kind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Flow,
        Self::LookupTable,
        Self::LookupPart,
        Self::ConnectorInstance,
        Self::Adapter,
        Self::PublishedApi,
        Self::ConsumerKey,
        Self::Environment,
    ];

    /// Returns the word that ids begin with.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::LookupTable => "lookup_table",
            Self::LookupPart => "lookup_part",
            Self::ConnectorInstance => "connector_instance",
            Self::Adapter => "adapter",
            Self::PublishedApi => "published_api",
            Self::ConsumerKey => "consumer_key",
            Self::Environment => "environment",
        }
    }

    /// Returns the resource id of the object `id` of this kind, as in `flow/flw_1`.
    pub fn resource_id(self, id: impl fmt::Display) -> String {
        format!("{}/{id}", self.as_str())
    }

    /// Splits a resource id into kind and id; `None` when it is of no known kind, as those of a
    /// newer build may be.
    pub fn parse(resource_id: &str) -> Option<(Self, &str)> {
        let (kind, id) = resource_id.split_once('/')?;
        let kind = Self::ALL.iter().copied().find(|k| k.as_str() == kind)?;
        (!id.is_empty()).then_some((kind, id))
    }
}

/// SHA-256 of a resource's body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Computes the hash of `body`.
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }

    /// Reads the 32 bytes of the wire; `None` for any other length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 32 bytes, as the wire carries them.
    pub fn to_vec(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_ids_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(&kind.resource_id("x_1")), Some((*kind, "x_1")));
        }
        assert_eq!(Kind::parse("flow/a/b"), Some((Kind::Flow, "a/b")));
    }

    #[test]
    fn other_ids_are_of_no_known_kind() {
        for id in ["", "flow", "flow/", "schedule/sch_1", "/x"] {
            assert_eq!(Kind::parse(id), None, "{id}");
        }
    }

    #[test]
    fn a_hash_has_32_bytes() {
        let hash = Hash::of(b"abc");
        assert_eq!(
            hash.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Hash::from_slice(hash.as_bytes()), Some(hash));
        assert_eq!(Hash::from_slice(&hash.as_bytes()[1..]), None);
    }
}
