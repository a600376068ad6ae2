//! Identifiers: a prefix that names the kind, `_`, and a time-ordered unique part.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Prefix of every id of this kind, without the `_`.
            pub const PREFIX: &'static str = $prefix;

            /// A new id, later in order than every earlier one of this process.
            pub fn generate() -> Self {
                Self(format!(concat!($prefix, "_{}"), uuid::Uuid::now_v7().simple()))
            }

            /// Takes an id as it stands in a request or a row; any text is taken, what does not
            /// exist is not found.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    )*};
}

ids! {
    AccountId = "acc";
    EnvironmentId = "env";
    FlowId = "flw";
    MessageId = "msg";
    LookupTableId = "lt";
    AdapterId = "adp";
    /// A connector instance.
    InstanceId = "ci";
    /// A change of a connector instance's health.
    HealthChangeId = "hc";
    ScheduleId = "sch";
    BatchJobId = "bat";
    ApiKeyId = "key";
    PolicyId = "pol";
    MemberId = "mem";
    AuditEntryId = "aud";
    PublishedApiId = "api";
    ConsumerKeyId = "ck";
    /// A data-plane node, kept in its data folder.
    NodeId = "node";
    /// One start of a node; leases belong to it, so that a restarted node cannot be taken for its
    /// former self.
    BootId = "boot";
    /// The past of a database: one that was restored or replaced has another.
    EpochId = "epoch";
    RequestId = "req";
}

impl EpochId {
    /// Makes an epoch that is greater than this one, whatever the clock says: of two epochs the
    /// greater one is later. It is this epoch with its last parts replaced by a new one, as many as
    /// can be, so that epochs do not grow with their number.
    #[must_use]
    pub fn successor(&self) -> Self {
        let next = Self::generate();
        let text = self.as_str();
        let tail = next.as_str().trim_start_matches(|c: char| c != '_');
        let ends = text
            .match_indices('_')
            .map(|(end, _)| end)
            .chain([text.len()]);
        let mut later = ends.map(|end| Self::new(format!("{}{tail}", &text[..end])));
        later.find(|epoch| epoch > self).unwrap_or(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_greater_than_the_one_before_it_whatever_the_clock_said() {
        for former in [EpochId::generate(), EpochId::new("epoch_zzz")] {
            assert!(former.successor() > former);
        }
    }

    #[test]
    fn an_epoch_does_not_grow_with_the_number_of_those_before_it() {
        let mut epochs = vec![EpochId::new("epoch_zzz")];
        for _ in 0..10 {
            epochs.extend(epochs.last().map(EpochId::successor));
        }
        assert!(
            epochs.is_sorted_by(|former, next| former < next),
            "{epochs:?}"
        );
        assert_eq!(
            epochs[10].as_str().len(),
            epochs[1].as_str().len(),
            "{epochs:?}"
        );
    }

    #[test]
    fn ids_carry_their_prefix_and_grow_with_time() {
        let first = FlowId::generate();
        let second = FlowId::generate();
        assert!(first.as_str().starts_with("flw_"));
        assert!(first < second);
    }
}
