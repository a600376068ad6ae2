//! Keys of limits.

use std::fmt;

use kanat_model::id::{ConsumerKeyId, InstanceId};

/// A key whose calls are counted together. Ids of the two kinds have different prefixes and are
/// kept in one table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// Calls of a consumer, with a key for a published API.
    Consumer(ConsumerKeyId),
    /// Calls to a connector instance.
    Connector(InstanceId),
}

impl Key {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Consumer(id) => id.as_str(),
            Self::Connector(id) => id.as_str(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ConsumerKeyId> for Key {
    fn from(id: ConsumerKeyId) -> Self {
        Self::Consumer(id)
    }
}

impl From<InstanceId> for Key {
    fn from(id: InstanceId) -> Self {
        Self::Connector(id)
    }
}
