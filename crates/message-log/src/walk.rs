//! How far one call walks down the log for messages that no index finds, stretch by stretch.

use std::time::Duration;

use kanat_model::Timestamp;
use tokio::time::Instant;

use crate::{EnvironmentFilter, Position};

/// Messages that are counted at most.
pub(crate) const MAX_TOTAL: usize = 10_000;

/// A walk that has not found enough by then ends behind the stretch that it is in.
const BUDGET: Duration = Duration::from_millis(30);

/// Messages in the first stretch, and in the longest: who finds enough at once need not look
/// further.
const FIRST_STRETCH: i64 = 500;
const LONGEST_STRETCH: i64 = 16_000;

/// A message is in the log this long after it was received, at the latest. A whole stretch that was
/// received longer than that before an instant has nothing before it that was received after the
/// instant.
const ON_ITS_WAY: Duration = Duration::from_secs(3_600);

/// A walk from a place in the log to older messages.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Numbers of the messages found, the newest first.
    pub found: Vec<i64>,
    /// Everything from here on has been looked at.
    pub before: i64,
    /// The log has nothing more to look at.
    pub ended: bool,
    /// How many are wanted.
    wanted: usize,
    /// As many as must be found however long it takes.
    skipped: usize,
    stretch: i64,
    begun: Instant,
}

impl Walk {
    /// Walks for a page: one message more than asked for says that there is a next one.
    pub fn for_page(position: Position) -> Self {
        match position {
            Position::Page(page) => Self::new(i64::MAX, page.offset, page.limit.saturating_add(1)),
            Position::After { cursor, limit } => Self::new(cursor.seq, 0, limit.saturating_add(1)),
        }
    }

    /// Walks for the number of all.
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

    /// How many messages the next stretch has at most, and how many of them are wanted; `None` when
    /// the walk is over.
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
            self.stretch = (stretch * 8).min(LONGEST_STRETCH);
        }
        Some((
            stretch,
            i64::try_from(self.wanted - self.found.len()).unwrap_or(i64::MAX),
        ))
    }

    /// Takes what a stretch down to `from` has.
    pub fn take(&mut self, from: i64, found: Vec<i64>) {
        self.found.extend(found);
        self.before = from;
    }

    /// The numbers of the page, without the one that only says that there are more, and where the
    /// next page begins.
    pub fn page(&self) -> (Vec<i64>, Option<i64>) {
        let limit = self.wanted - self.skipped - 1;
        let page: Vec<i64> = self
            .found
            .iter()
            .copied()
            .skip(self.skipped)
            .take(limit)
            .collect();
        let next = match page.last() {
            Some(last) if self.found.len() >= self.wanted => Some(*last),
            _ => (!self.ended).then_some(self.before),
        };
        (page, next)
    }

    /// How many were found, and whether there may be more.
    pub fn total(&self) -> (u64, bool) {
        let least = !self.ended || self.found.len() > MAX_TOTAL;
        (
            u64::try_from(self.found.len().min(MAX_TOTAL)).unwrap_or(u64::MAX),
            least,
        )
    }
}

/// What is received before this cannot be told apart from what is on its way since `filter.since`.
pub(crate) fn too_old(filter: &EnvironmentFilter) -> Option<Timestamp> {
    filter.since.map(|since| since.before(ON_ITS_WAY))
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

    #[test]
    fn a_page_says_where_the_next_begins_unless_the_log_has_ended() {
        let mut walk = Walk::for_page(Position::Page(Page {
            limit: 2,
            offset: 1,
        }));
        assert_eq!(walk.next(&all()), Some((500, 4)));
        walk.take(5, vec![9, 8, 7, 6]);
        assert_eq!(walk.next(&all()), None);
        assert_eq!(walk.page(), (vec![8, 7], Some(7)));

        let mut walk = Walk::for_page(Position::Page(Page {
            limit: 2,
            offset: 0,
        }));
        walk.take(5, vec![9]);
        assert_eq!(walk.next(&all()), Some((500, 2)));
        assert_eq!(walk.page(), (vec![9], Some(5)));
        walk.ended = true;
        assert_eq!(walk.next(&all()), None);
        assert_eq!(walk.page(), (vec![9], None));
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
