//! Lists of messages: filters, positions and pages.

pub(crate) mod environment;
pub(crate) mod flow;

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use kanat_model::page::Page;

use crate::{Error, Message, Result, Tenant};

/// Filter for the messages of a flow.
#[derive(Debug, Clone)]
pub struct Filter {
    pub tenant: Tenant,
    pub flow_id: FlowId,
    /// Only messages of these statuses, when any are given.
    pub statuses: Vec<Status>,
    /// Received at or after it.
    pub since: Option<Timestamp>,
    /// Received before it.
    pub until: Option<Timestamp>,
    /// Plain text in payload, id or error, in any case of letters; in a payload as people see it,
    /// without JSON's escapes.
    pub search: Option<String>,
    /// Only these, when any are given; at most [`Filter::MAX_IDS`].
    pub ids: Vec<MessageId>,
    /// Only messages of this version of the flow and of earlier ones.
    pub max_version: Option<u32>,
}

impl Filter {
    pub const MAX_IDS: usize = 1_000;

    /// Refuses a search text or a list of ids that is too long.
    pub(crate) fn check(&self) -> Result<()> {
        check_search(self.search.as_deref())?;
        if self.ids.len() > Self::MAX_IDS {
            let message = format!("may name at most {} messages", Self::MAX_IDS);
            return Err(Error::State(kanat_model::Error::field("ids", message)));
        }
        Ok(())
    }

    /// All messages of a flow.
    pub fn flow(tenant: Tenant, flow_id: FlowId) -> Self {
        Self {
            tenant,
            flow_id,
            statuses: Vec::new(),
            since: None,
            until: None,
            search: None,
            ids: Vec::new(),
            max_version: None,
        }
    }
}

/// Filter for the messages of an environment, in the order of the log.
#[derive(Debug, Clone)]
pub struct EnvironmentFilter {
    pub tenant: Tenant,
    /// Only messages of this flow.
    pub flow_id: Option<FlowId>,
    /// Only messages of these statuses, when any are given.
    pub statuses: Vec<Status>,
    /// Flows whose messages that wait count as held, whatever status the log has for them.
    pub paused: Vec<FlowId>,
    /// Received at or after it.
    pub since: Option<Timestamp>,
    /// Received before it.
    pub until: Option<Timestamp>,
    /// Plain text, as in [`Filter::search`].
    pub search: Option<String>,
}

impl EnvironmentFilter {
    /// All messages of an environment.
    pub fn all(tenant: Tenant) -> Self {
        Self {
            tenant,
            flow_id: None,
            statuses: Vec::new(),
            paused: Vec::new(),
            since: None,
            until: None,
            search: None,
        }
    }

    /// Returns whether it finds dead letters and retries only, which have an index of their own.
    pub(crate) fn is_failing(&self) -> bool {
        let failing = |status: &Status| matches!(status, Status::DeadLetter | Status::Retrying);
        !self.statuses.is_empty() && self.statuses.iter().all(failing)
    }
}

/// Position of a page in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Page by offset, newest first.
    Page(Page),
    /// Page after the last message of the page before. Messages that arrive meanwhile do not shift
    /// it.
    After { cursor: Cursor, limit: u32 },
}

/// Position of a message in a list; opaque to API callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub received_at: Timestamp,
    pub seq: i64,
}

impl Cursor {
    /// Position before every message, in the order of arrival.
    pub(crate) const FIRST: Self = Self {
        received_at: Timestamp::from_millis(i64::MIN),
        seq: i64::MIN,
    };
}

/// A page of a list, newest first.
#[derive(Debug, Clone, Default)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// Number of messages that the filter finds, as far as they were counted.
    pub total: u64,
    /// There may be more than `total`.
    pub total_is_least: bool,
    /// Position of the next page, if there is one.
    pub next: Option<Cursor>,
}

impl MessagePage {
    /// Bytes of payloads and outputs on one page. A page that would have more ends earlier, after
    /// one message at least.
    pub const BYTES: u64 = 32 << 20;

    /// Returns a page of a flow's list. From its position on, `found` messages were found, of which
    /// those that fit are on the page. The whole list has `total`.
    pub(crate) fn of_flow(mut messages: Vec<Message>, found: usize, total: i64) -> Self {
        messages.shrink_to_fit();
        let has_more = found > messages.len();
        let next = messages.last().filter(|_| has_more).map(|last| Cursor {
            received_at: last.received_at,
            seq: last.seq,
        });
        Self {
            messages,
            total: u64::try_from(total).unwrap_or(0),
            total_is_least: false,
            next,
        }
    }

    /// Returns how many messages with these sizes, in their order, fit on one page of at most
    /// `limit`.
    pub(crate) fn fitting(sizes: &[u64], limit: u32) -> u32 {
        fitting(sizes.iter().copied(), Self::BYTES, limit)
    }
}

/// Returns how many items with these sizes, in their order, have `room` together: one at least, and
/// at most `limit`.
pub(crate) fn fitting(sizes: impl Iterator<Item = u64>, mut room: u64, limit: u32) -> u32 {
    let fits = |size: &u64| {
        let fits = *size <= room;
        room = room.saturating_sub(*size);
        fits
    };
    let fitting = u32::try_from(sizes.take_while(fits).count()).unwrap_or(u32::MAX);
    fitting.max(1).min(limit)
}

impl Cursor {
    /// Returns the cursor of the messages before `seq`.
    pub(crate) fn below(seq: i64) -> Self {
        Self {
            received_at: Timestamp::from_millis(0),
            seq,
        }
    }

    /// Returns the text of the cursor, without special characters.
    pub fn to_text(self) -> String {
        format!("{:x}-{:x}", self.received_at.as_millis(), self.seq)
    }

    /// Parses a text of [`Self::to_text`]; `None` for any other.
    pub fn parse(text: &str) -> Option<Self> {
        let (received_at, seq) = text.split_once('-')?;
        let received_at = i64::from_str_radix(received_at, 16).ok()?;
        let seq = i64::from_str_radix(seq, 16).ok()?;
        Some(Self {
            received_at: Timestamp::from_millis(received_at),
            seq,
        })
    }
}

/// Refuses a search text that is longer than one may be.
pub(crate) fn check_search(text: Option<&str>) -> Result<()> {
    text.map_or(Ok(()), kanat_model::search::check)
        .map_err(Error::State)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_before_it_has_too_many_bytes_and_has_one_message_at_least() {
        let half = MessagePage::BYTES / 2;
        for (sizes, limit, fitting) in [
            (&[half, half, 1][..], 50, 2),
            (&[half, half + 1, 1], 50, 1),
            (&[half, 2 * half + 1, 0], 50, 1),
            (&[3 * half, 1], 50, 1),
            (&[1, 1, 1], 2, 2),
            (&[1, 1, 1], 3, 3),
            (&[], 50, 1),
        ] {
            assert_eq!(MessagePage::fitting(sizes, limit), fitting, "{sizes:?}");
        }
    }

    #[test]
    fn a_cursor_reads_back() {
        let cursor = Cursor {
            received_at: Timestamp::from_millis(1_769_847_300_123),
            seq: 77,
        };
        assert_eq!(Cursor::parse(&cursor.to_text()), Some(cursor));
        assert_eq!(Cursor::parse("x"), None);
        assert_eq!(Cursor::parse("1-"), None);
        assert_eq!(Cursor::parse(""), None);
    }
}
