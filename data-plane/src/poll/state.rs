//! What a poll remembers from one cycle to the next, as JSON in the message log: flows see `cursor`
//! and `last_success_at`, and a node that takes over sees how far the cycle has come.

use bytes::Bytes;
use kanat_model::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// The last cursor or token of the last cycle that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// When the last cycle began that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// The version for which the first of its fixed times was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<u32>,
    /// How far a cycle has come that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// A cycle under way: everything before the page that is asked for next is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    pub began_at: Timestamp,
    /// The version whose cycle it is.
    pub version: u32,
    /// Pages done.
    pub pages: u32,
    pub next: Position,
    /// The last cursor or token that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Where a page is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    First,
    /// A parameter with this value: a cursor, a token.
    Value(String),
    /// So many records on.
    Offset(u64),
    Url(String),
}

impl Progress {
    /// A cycle that begins now.
    pub fn first(now: Timestamp, version: u32) -> Self {
        Self {
            began_at: now,
            version,
            pages: 0,
            next: Position::First,
            cursor: None,
        }
    }
}

impl State {
    /// What cannot be read is as if there was nothing.
    pub fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub fn to_bytes(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    /// What flows see as `state`.
    pub fn document(&self) -> Vec<u8> {
        let last_success_at = self.last_success_at.map(|at| at.to_string());
        let seen = serde_json::json!({ "cursor": self.cursor, "last_success_at": last_success_at });
        seen.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_back_and_nonsense_is_nothing() {
        let at = Timestamp::from_millis(1_769_847_300_123);
        for next in [
            Position::First,
            Position::Value("a\"b".to_owned()),
            Position::Offset(7),
        ] {
            let progress = Progress {
                began_at: at,
                version: 3,
                pages: 2,
                next,
                cursor: None,
            };
            let state = State {
                cursor: Some("c".to_owned()),
                last_success_at: Some(at),
                progress: Some(progress),
                ..State::default()
            };
            assert_eq!(State::read(&state.to_bytes()), state);
        }
        for nonsense in ["", "[]", "{\"cursor\":1}"] {
            assert_eq!(
                State::read(nonsense.as_bytes()),
                State::default(),
                "{nonsense}"
            );
        }
        let state = State {
            last_success_at: Some(at),
            ..State::default()
        };
        assert_eq!(
            state.document(),
            br#"{"cursor":null,"last_success_at":"2026-01-31T08:15:00.123Z"}"#
        );
    }
}
