//! What is answered and not yet in the tables.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use kanat_model::id::MessageId;

use crate::sqlite::operation::Change;
use crate::sqlite::transaction::Transaction;
use crate::sqlite::{append, change, completed};
use crate::{NewMessage, Placement};

/// So many lots are in the tables.
const FOLDED: &str = "UPDATE counters SET value = ? WHERE name = 'folded_lots'";

/// Messages and ends, in the order in which they came.
#[derive(Default)]
pub(in crate::sqlite) struct Unfolded {
    /// Number of the last lot.
    pub lots: i64,
    /// Of the last one that the tables have.
    folded: i64,
    /// By their places.
    arrivals: Vec<Arrival>,
    /// Hashes of their ids.
    ids: HashSet<u64>,
    hasher: RandomState,
    /// Of messages that the tables have.
    ends: Vec<End>,
    /// Those messages.
    ended: HashSet<i64>,
}

struct Arrival {
    seq: i64,
    message: Box<NewMessage>,
    /// It has come to its end already.
    end: Option<End>,
}

struct End {
    event: i64,
    change: Box<Change>,
}

impl Unfolded {
    /// Nothing, where the tables have so many lots.
    pub fn after(lots: i64) -> Self {
        Self {
            lots,
            folded: lots,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.lots == self.folded
    }

    /// Messages and ends.
    pub fn len(&self) -> usize {
        self.arrivals.len() + self.ends.len()
    }

    /// The last place that one of them has; 0 when there is none.
    pub fn last_seq(&self) -> i64 {
        let arrivals = self
            .arrivals
            .iter()
            .flat_map(|arrival| [Some(arrival.seq), arrival.end.as_ref().map(|end| end.event)]);
        arrivals
            .flatten()
            .chain(self.ends.iter().map(|end| end.event))
            .max()
            .unwrap_or(0)
    }

    /// The first place that one of them has; `None` when there is none.
    fn first_seq(&self) -> Option<i64> {
        let ends = self.ends.iter().map(|end| end.event);
        self.arrivals
            .iter()
            .map(|arrival| arrival.seq)
            .chain(ends)
            .min()
    }

    /// Gives all of them later places, after `last_seq`, if places from `taken` back are those of
    /// others. Returns whether they were.
    pub fn make_way(&mut self, taken: i64, last_seq: i64) -> bool {
        let Some(first) = self.first_seq().filter(|first| *first <= taken) else {
            return false;
        };
        let by = last_seq.max(self.last_seq()) + 1 - first;
        for Arrival { seq, end, .. } in &mut self.arrivals {
            *seq += by;
            if let Some(End { event, change }) = end {
                *event += by;
                change.seq += by;
                change.from_token += by;
            }
        }
        // The messages of these stand in the tables, where they stood.
        self.ends.iter_mut().for_each(|end| end.event += by);
        true
    }

    pub fn hash(&self, id: &MessageId) -> u64 {
        self.hasher.hash_one(id)
    }

    /// Whether one of the messages has an id with this hash: the same id, or another once in a very
    /// long time.
    pub fn may_have(&self, hash: u64) -> bool {
        self.ids.contains(&hash)
    }

    /// Whether the lease that a change was decided on is good; `None` when the tables know.
    pub fn holds(&self, change: &Change) -> Option<bool> {
        match self.find(change.seq) {
            Some(place) => Some(self.arrivals[place].is_held(change)),
            None => self.ended.contains(&change.seq).then_some(false),
        }
    }

    /// Somebody may claim one of these messages.
    pub fn leaves_something(&self) -> bool {
        self.arrivals
            .iter()
            .any(|arrival| !matches!(arrival.message.place, Placement::Leased(_)))
    }

    pub fn came(&mut self, seq: i64, message: Box<NewMessage>) {
        self.ids.insert(self.hash(&message.id));
        self.arrivals.push(Arrival {
            seq,
            message,
            end: None,
        });
    }

    /// The end of a message whose lease was good.
    pub fn ended(&mut self, event: i64, change: Box<Change>) {
        match self.find(change.seq) {
            Some(place) => self.arrivals[place].end = Some(End { event, change }),
            None => {
                self.ended.insert(change.seq);
                self.ends.push(End { event, change });
            }
        }
    }

    fn find(&self, seq: i64) -> Option<usize> {
        self.arrivals
            .binary_search_by_key(&seq, |arrival| arrival.seq)
            .ok()
    }

    /// Puts all of it into the tables.
    pub fn fold(&self, tx: &Transaction<'_, '_>) -> rusqlite::Result<()> {
        for Arrival { seq, message, end } in &self.arrivals {
            match end {
                None => append::insert(tx, message, *seq)?,
                Some(End { event, change }) => completed::First {
                    message,
                    seq: *seq,
                    event: *event,
                    state: change.state(),
                }
                .insert(tx)?,
            }
        }
        for End { event, change } in &self.ends {
            change::apply_as(tx, change, *event)?;
        }
        if self.lots != self.folded {
            tx.execute(FOLDED, [self.lots])?;
        }
        Ok(())
    }

    /// Lets the next fold write something in any case: a number that no lot has.
    pub fn skip_a_lot(&mut self) {
        self.lots += 1;
    }

    /// The tables have it.
    pub fn clear(&mut self) {
        self.folded = self.lots;
        self.arrivals.clear();
        self.ids.clear();
        self.ends.clear();
        self.ended.clear();
    }
}

impl Arrival {
    fn is_held(&self, change: &Change) -> bool {
        let Placement::Leased(owner) = &self.message.place else {
            return false;
        };
        // The token of a message's first holder is its place.
        self.end.is_none()
            && self.seq == change.seq
            && self.seq == change.from_token
            && *owner == change.from_owner
    }
}
