//! State of a poll between cycles, stored as JSON in the message log. Flows see `cursor` and
//! `last_success_at`; a node that takes over continues from the progress.

use bytes::Bytes;
use kanat_model::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// The last cursor or token of the last cycle whose pages have all come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Start of the last cycle whose pages have all come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// Version that has waited for the first time of its schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<u32>,
    /// Progress of an unfinished cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// Progress towards the last page: all pages before `next` are durable. A cycle that ends at
/// `max_pages` leaves it to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Start of the cycle that asked for the first page.
    pub began_at: Timestamp,
    /// Version of the flow.
    pub version: u32,
    /// Pages done.
    pub pages: u32,
    /// Start of the present cycle; `None` before it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_began_at: Option<Timestamp>,
    /// Pages that former cycles have done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub former_pages: u32,
    pub next: Position,
    /// Last cursor or token of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Position of a page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    First,
    /// A value of the position parameter, such as a cursor or a token.
    Value(String),
    /// An offset in records.
    Offset(u64),
    /// The number of a page.
    Page(u64),
    Url(String),
}

impl Progress {
    /// Returns the progress of a cycle that begins now.
    pub fn first(now: Timestamp, version: u32) -> Self {
        Self {
            began_at: now,
            version,
            pages: 0,
            cycle_began_at: None,
            former_pages: 0,
            next: Position::First,
            cursor: None,
        }
    }

    /// Returns the progress for the next cycle, after one that ended at `max_pages`.
    pub fn for_next_cycle(self) -> Self {
        Self {
            cycle_began_at: None,
            former_pages: self.pages,
            ..self
        }
    }
}

fn is_zero(pages: &u32) -> bool {
    *pages == 0
}

impl State {
    /// Reads a state. Unreadable bytes give the empty state.
    pub fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub fn to_bytes(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns the value of `state` in expressions.
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
            Position::Page(7),
        ] {
            let progress = Progress {
                began_at: at,
                version: 3,
                pages: 2,
                cycle_began_at: Some(at),
                former_pages: 1,
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
