//! Operations that the journal has on disk and the tables lack: the journal's memtable.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use kanat_model::id::MessageId;

use crate::append::NewRow;
use crate::change::Change;
use crate::sqlite::transaction::Transaction;
use crate::sqlite::{append, attempted, change};
use crate::{NewMessage, Placement};

/// Stores the number of the last record that the tables have. Historic name of the counter: folded
/// lots are applied records.
const SET_APPLIED_RECORDS: &str = "UPDATE counters SET value = ? WHERE name = 'folded_lots'";

/// Messages and final settlements, in the order of their arrival.
#[derive(Default)]
pub(in crate::sqlite) struct PendingWrites {
    /// Number of the last journal record.
    pub last_record_number: i64,
    /// Number of the last journal record that the tables have.
    applied_record_number: i64,
    /// Messages by their sequence numbers.
    messages: Vec<PendingMessage>,
    /// Hashes of the ids of `messages`.
    ids: HashSet<u64>,
    hasher: RandomState,
    /// Settlements of messages that the tables have.
    settlements: Vec<PendingSettlement>,
    /// Sequence numbers of the messages of `settlements`.
    settled: HashSet<i64>,
}

struct PendingMessage {
    seq: i64,
    message: Box<NewMessage>,
    /// `None` while the message has not ended.
    settlement: Option<PendingSettlement>,
}

struct PendingSettlement {
    /// Sequence number of its event.
    event_seq: i64,
    change: Box<Change>,
}

impl PendingWrites {
    /// Returns an empty value for tables that have all records up to number `record`.
    pub fn empty_at(record: i64) -> Self {
        Self {
            last_record_number: record,
            applied_record_number: record,
            ..Self::default()
        }
    }

    /// Returns whether the tables have everything, also the number of the last record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.last_record_number == self.applied_record_number
    }

    /// Returns the number of messages and of settlements of other messages.
    pub fn len(&self) -> usize {
        self.messages.len() + self.settlements.len()
    }

    /// Returns the largest sequence number of a write; 0 when there is none.
    pub fn last_seq(&self) -> i64 {
        let messages = self.messages.iter().flat_map(|pending| {
            [
                Some(pending.seq),
                pending
                    .settlement
                    .as_ref()
                    .map(|settlement| settlement.event_seq),
            ]
        });
        messages
            .flatten()
            .chain(
                self.settlements
                    .iter()
                    .map(|settlement| settlement.event_seq),
            )
            .max()
            .unwrap_or(0)
    }

    /// Returns the smallest sequence number of a write; `None` when there is none.
    fn first_seq(&self) -> Option<i64> {
        let settlements = self
            .settlements
            .iter()
            .map(|settlement| settlement.event_seq);
        self.messages
            .iter()
            .map(|pending| pending.seq)
            .chain(settlements)
            .min()
    }

    /// Gives all writes new sequence numbers after `last_seq`, if the tables already use one of
    /// theirs. `taken` is the largest number in the tables. Returns whether it did.
    pub fn renumber(&mut self, taken: i64, last_seq: i64) -> bool {
        let Some(first) = self.first_seq().filter(|first| *first <= taken) else {
            return false;
        };
        let offset = last_seq.max(self.last_seq()) + 1 - first;
        for PendingMessage {
            seq, settlement, ..
        } in &mut self.messages
        {
            *seq += offset;
            if let Some(PendingSettlement { event_seq, change }) = settlement {
                *event_seq += offset;
                change.message_seq += offset;
                change.from_token += offset;
            }
        }
        // The messages of these settlements are in the tables, and keep their sequence numbers.
        self.settlements
            .iter_mut()
            .for_each(|settlement| settlement.event_seq += offset);
        true
    }

    pub fn hash(&self, id: &MessageId) -> u64 {
        self.hasher.hash_one(id)
    }

    /// Returns whether a pending message has an id with this hash. Another id with the same hash
    /// gives a false positive; the batch then goes to the tables.
    pub fn may_contain(&self, hash: u64) -> bool {
        self.ids.contains(&hash)
    }

    /// Returns whether `change` is fenced: the message has another owner or token than those on
    /// which it relies. `None` when only the tables know.
    pub fn is_fenced(&self, change: &Change) -> Option<bool> {
        match self.find(change.message_seq) {
            Some(index) => Some(self.messages[index].is_fenced(change)),
            None => self.settled.contains(&change.message_seq).then_some(true),
        }
    }

    /// Returns whether one of the messages can be claimed.
    pub fn has_claimable(&self) -> bool {
        self.messages
            .iter()
            .any(|pending| !matches!(pending.message.place, Placement::Leased(_)))
    }

    pub fn add_message(&mut self, seq: i64, message: Box<NewMessage>) {
        self.ids.insert(self.hash(&message.id));
        self.messages.push(PendingMessage {
            seq,
            message,
            settlement: None,
        });
    }

    /// Adds a final settlement that is not fenced.
    pub fn add_settlement(&mut self, event_seq: i64, change: Box<Change>) {
        match self.find(change.message_seq) {
            Some(index) => {
                self.messages[index].settlement = Some(PendingSettlement { event_seq, change })
            }
            None => {
                self.settled.insert(change.message_seq);
                self.settlements
                    .push(PendingSettlement { event_seq, change });
            }
        }
    }

    fn find(&self, seq: i64) -> Option<usize> {
        self.messages
            .binary_search_by_key(&seq, |pending| pending.seq)
            .ok()
    }

    /// Applies all writes to the tables.
    pub fn apply(&self, tx: &Transaction<'_, '_>) -> rusqlite::Result<()> {
        for PendingMessage {
            seq,
            message,
            settlement,
        } in &self.messages
        {
            match settlement {
                None => append::insert(tx, &NewRow::new(message, *seq))?,
                Some(PendingSettlement { event_seq, change }) => attempted::AttemptedInsert {
                    message,
                    seq: *seq,
                    event_seq: *event_seq,
                    columns: change.column_values(),
                }
                .insert(tx)?,
            }
        }
        for PendingSettlement { event_seq, change } in &self.settlements {
            change::apply_with_seq(tx, change, *event_seq)?;
        }
        if self.last_record_number != self.applied_record_number {
            tx.execute(SET_APPLIED_RECORDS, [self.last_record_number])?;
        }
        Ok(())
    }

    /// Reaches the failpoint before the commit that applies the writes. Historic name: to fold is
    /// to apply.
    pub fn hit_failpoint_before_commit(&self) {
        kanat_failpoint::hit_for_each("fold.before_commit", || self.len());
    }

    /// Reaches the failpoint after the commit that applied the writes.
    pub fn hit_failpoint_after_commit(&self) {
        kanat_failpoint::hit_for_each("fold.after_commit", || self.len());
    }

    /// Skips the number of a record that failed.
    pub fn skip_record_number(&mut self) {
        self.last_record_number += 1;
    }

    /// Makes the next [`apply`](Self::apply) store a new number of applied records, so that its
    /// commit writes a page and is synced. Skips a record number for this.
    pub fn force_applied_number_write(&mut self) {
        self.skip_record_number();
    }

    /// Forgets all writes, which the tables have now.
    pub fn clear(&mut self) {
        self.applied_record_number = self.last_record_number;
        self.messages.clear();
        self.ids.clear();
        self.settlements.clear();
        self.settled.clear();
    }
}

impl PendingMessage {
    fn is_fenced(&self, change: &Change) -> bool {
        let Placement::Leased(owner) = &self.message.place else {
            return true;
        };
        // The token of a message's first holder is the message's sequence number.
        self.settlement.is_some()
            || self.seq != change.message_seq
            || self.seq != change.from_token
            || *owner != change.from_owner
    }
}
