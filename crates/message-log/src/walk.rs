//! Walks down the log for messages that no index finds, stretch by stretch, within a time budget.

use std::time::Duration;

use kanat_model::Timestamp;
use tokio::time::Instant;

use crate::{Cursor, EnvironmentFilter, Message, MessagePage, Position};

/// Most messages that are counted.
pub(crate) const MAX_TOTAL: usize = 10_000;

/// Time after which a walk ends with the stretch that it is in.
const BUDGET: Duration = Duration::from_millis(30);

/// Messages in the first stretch. A walk that finds its page there reads no further.
const FIRST_STRETCH: i64 = 500;
/// Most messages in a stretch.
const MAX_STRETCH: i64 = 16_000;

/// Longest time from the receipt of a message to its append. A whole stretch that was
/// received longer than that before an instant has nothing before it that was received after the
/// instant.
const MAX_APPEND_DELAY: Duration = Duration::from_secs(3_600);

/// A walk from a place in the log to older messages.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Numbers of the messages found, the newest first.
    pub found: Vec<i64>,
    /// Sequence number down to which the walk has read.
    pub before: i64,
    /// The log has nothing more to read.
    pub ended: bool,
    /// Number of messages that the page needs.
    wanted: usize,
    /// Number of messages that must be found in any time.
    skipped: usize,
    stretch: i64,
    begun: Instant,
}

impl Walk {
    /// Returns a walk for a page. One message more than asked for shows that there is a next page.
    pub fn for_page(position: Position) -> Self {
        match position {
            Position::Page(page) => Self::new(i64::MAX, page.offset, page.limit.saturating_add(1)),
            Position::After { cursor, limit } => Self::new(cursor.seq, 0, limit.saturating_add(1)),
        }
    }

    /// Returns a walk for the total.
    pub fn for_total() -> Self {
        Self::new(
            i64::MAX,
            0,
            u32::try_from(MAX_TOTAL)
                .unwrap_or(u32::MAX)
                .saturating_add(1),
        )
    }

    fn new(before: i64, skipped: u32, limit: u32) -> Self {
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        Self {
            found: Vec::new(),
            before,
            ended: false,
            wanted: skipped.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)),
            skipped,
            stretch: FIRST_STRETCH,
            begun: Instant::now(),
        }
    }

    /// Returns the most messages of the next stretch, and the number that the walk still needs;
    /// `None` when the walk is over.
    pub fn next(&mut self, filter: &EnvironmentFilter) -> Option<(i64, i64)> {
        let late = self.begun.elapsed() >= BUDGET
            && self.found.len() >= self.skipped
            && self.before < i64::MAX;
        if self.ended || late || self.found.len() >= self.wanted {
            return None;
        }
        let stretch = self.stretch;
        // A search reads whole payloads.
        if filter.search.is_none() {
            self.stretch = (stretch * 8).min(MAX_STRETCH);
        }
        Some((
            stretch,
            i64::try_from(self.wanted - self.found.len()).unwrap_or(i64::MAX),
        ))
    }

    /// Adds the messages found in a stretch down to `from`.
    pub fn take(&mut self, from: i64, found: Vec<i64>) {
        self.found.extend(found);
        self.before = from;
    }

    /// Returns the page that the walk has found. The last message found may only say that there are
    /// more.
    pub fn page(&self) -> WalkPage {
        let limit = self.wanted - self.skipped - 1;
        let found: Vec<i64> = self
            .found
            .iter()
            .copied()
            .skip(self.skipped)
            .take(limit)
            .collect();
        let next = match found.last() {
            Some(last) if self.found.len() >= self.wanted => Some(*last),
            _ => (!self.ended).then_some(self.before),
        };
        WalkPage { found, next }
    }

    /// Returns the number of messages found, and whether there may be more.
    pub fn total(&self) -> (u64, bool) {
        let least = !self.ended || self.found.len() > MAX_TOTAL;
        (
            u64::try_from(self.found.len().min(MAX_TOTAL)).unwrap_or(u64::MAX),
            least,
        )
    }
}

/// Sequence numbers of the messages of a page, and of the end of the page when others follow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WalkPage {
    pub found: Vec<i64>,
    next: Option<i64>,
}

impl WalkPage {
    /// Ends the page before it has too many bytes; `sizes` are those of its messages.
    pub fn fit(&mut self, sizes: &[u64]) {
        let limit = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        let fitting = usize::try_from(MessagePage::fitting(sizes, limit)).unwrap_or(usize::MAX);
        if fitting < self.found.len() {
            self.found.truncate(fitting);
            self.next = self.found.last().copied();
        }
    }

    /// Returns the page with its messages. `all` has walked for the total.
    pub fn with(self, messages: Vec<Message>, all: &Walk) -> MessagePage {
        let (total, total_is_least) = all.total();
        MessagePage {
            messages,
            total,
            total_is_least,
            next: self.next.map(Cursor::below),
        }
    }
}

/// Returns the instant before which no message of a stretch was received that may still be followed
/// by one received since `filter.since`.
pub(crate) fn too_old(filter: &EnvironmentFilter) -> Option<Timestamp> {
    filter.since.map(|since| since.before(MAX_APPEND_DELAY))
}

#[cfg(test)]
mod tests {
    use kanat_model::id::{AccountId, EnvironmentId};
    use kanat_model::page::Page;

    use super::*;
    use crate::Tenant;

    fn all() -> EnvironmentFilter {
        EnvironmentFilter::all(Tenant {
            account_id: AccountId::new("a"),
            environment_id: EnvironmentId::new("e"),
        })
    }

    fn page(found: &[i64], next: Option<i64>) -> WalkPage {
        WalkPage {
            found: found.to_vec(),
            next,
        }
    }

    #[test]
    fn a_page_says_where_the_next_begins_unless_the_log_has_ended() {
        let mut walk = Walk::for_page(Position::Page(Page {
            limit: 2,
            offset: 1,
        }));
        assert_eq!(walk.next(&all()), Some((500, 4)));
        walk.take(5, vec![9, 8, 7, 6]);
        assert_eq!(walk.next(&all()), None);
        assert_eq!(walk.page(), page(&[8, 7], Some(7)));

        let mut walk = Walk::for_page(Position::Page(Page {
            limit: 2,
            offset: 0,
        }));
        walk.take(5, vec![9]);
        assert_eq!(walk.next(&all()), Some((500, 2)));
        assert_eq!(walk.page(), page(&[9], Some(5)));
        walk.ended = true;
        assert_eq!(walk.next(&all()), None);
        assert_eq!(walk.page(), page(&[9], None));
    }

    #[test]
    fn a_total_says_when_there_may_be_more() {
        let mut walk = Walk::for_total();
        walk.take(1, (0..10_001).rev().collect());
        assert_eq!(walk.total(), (10_000, true));
        let mut walk = Walk::for_total();
        walk.take(1, vec![3, 2]);
        assert_eq!(walk.total(), (2, true));
        walk.ended = true;
        assert_eq!(walk.total(), (2, false));
    }
}
