//! Builds the entries of a document from the tokens of the lexer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use kanat_json::{Fault, Kind, MAX_DEPTH, Scalar, Visitor};

use super::{Entry, Value, hash};

/// Greatest number of keys of one object that are compared pairwise; more go through a map.
const MAX_PAIRWISE_KEYS: usize = 32;

/// Returns the entries of a text.
///
/// # Errors
/// The text is no JSON, nested too deeply, or longer than 4 GiB.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Fault> {
    if u32::try_from(text.len()).is_err() {
        return Err(Fault {
            offset: 0,
            message: "the text is too long".to_owned(),
        });
    }
    let mut builder = Builder {
        text,
        entries: Vec::with_capacity(text.len() / 8 + 4),
        open: Vec::new(),
    };
    kanat_json::read(text, MAX_DEPTH, &mut builder)?;
    Ok(builder.entries)
}

/// List or object whose end has not been read.
struct Container {
    index: u32,
    is_object: bool,
    /// One bit for each key so far, by its hash.
    seen: u64,
    /// Two of its keys may be equal.
    may_repeat: bool,
}

struct Builder<'t> {
    text: &'t str,
    entries: Vec<Entry>,
    open: Vec<Container>,
}

impl Visitor for Builder<'_> {
    #[inline]
    fn open(&mut self, kind: Kind, start: usize) {
        self.count_item();
        let index = self.push(start..start, kind, false);
        self.open.push(Container {
            index,
            is_object: kind == Kind::Object,
            seen: 0,
            may_repeat: false,
        });
    }

    #[inline]
    fn close(&mut self, end: usize) {
        let Some(container) = self.open.pop() else {
            return;
        };
        let next = self.entries.len() as u32;
        let entry = &mut self.entries[container.index as usize];
        entry.end = end as u32;
        entry.next = next;
        if container.may_repeat {
            self.mark_repeated(container.index);
        }
    }

    #[inline]
    fn key(&mut self, range: Range<usize>, has_escapes: bool) {
        let index = self.push(range, Kind::String, has_escapes);
        let hash = hash(self.name(index).as_bytes());
        self.entries[index as usize].count = hash;
        let Some(object) = self.open.last() else {
            return;
        };
        let bit = 1_u64 << (hash >> 26);
        let may_repeat = object.may_repeat
            || (object.seen & bit != 0 && self.may_have(object.index, index, hash));
        if let Some(object) = self.open.last_mut() {
            object.may_repeat = may_repeat;
            object.seen |= bit;
            self.entries[object.index as usize].count += 1;
        }
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar, range: Range<usize>) {
        let (kind, flag) = match scalar {
            Scalar::Null => (Kind::Null, false),
            Scalar::Boolean(value) => (Kind::Boolean, value),
            Scalar::Number { is_integer } => (Kind::Number, is_integer),
            Scalar::String { has_escapes } => (Kind::String, has_escapes),
        };
        self.count_item();
        self.push(range, kind, flag);
    }
}

impl Builder<'_> {
    /// Marks each key of an object that comes again.
    fn mark_repeated(&mut self, object: u32) {
        let end = self.entries[object as usize].next;
        let mut keys: Vec<(u32, u32)> =
            Vec::with_capacity(self.entries[object as usize].count as usize);
        let mut at = object + 1;
        while at < end {
            keys.push((self.entries[at as usize].count, at));
            at = self.entries[at as usize + 1].next;
        }
        let mut repeated = Vec::new();
        if keys.len() <= MAX_PAIRWISE_KEYS {
            for (place, (hash, key)) in keys.iter().enumerate() {
                let again = |(other_hash, other): &(u32, u32)| {
                    other_hash == hash && self.name(*other) == self.name(*key)
                };
                if keys[place + 1..].iter().any(again) {
                    repeated.push(*key);
                }
            }
        } else {
            let mut last: HashMap<Cow<'_, str>, u32> = HashMap::with_capacity(keys.len());
            for (_, key) in &keys {
                repeated.extend(last.insert(self.name(*key), *key));
            }
        }
        self.entries[object as usize].repeated = !repeated.is_empty();
        for key in repeated {
            self.entries[key as usize].repeated = true;
        }
    }

    fn name(&self, key: u32) -> Cow<'_, str> {
        Value {
            text: self.text,
            entries: &self.entries,
            index: key,
        }
        .string()
    }

    /// Returns whether the object may have a key of that hash before this one; an object with many
    /// keys may.
    fn may_have(&self, object: u32, key: u32, hash: u32) -> bool {
        if self.entries[object as usize].count as usize > MAX_PAIRWISE_KEYS {
            return true;
        }
        let mut at = object + 1;
        while at < key && self.entries[at as usize].count != hash {
            at = self.entries[at as usize + 1].next;
        }
        at < key
    }

    fn push(&mut self, range: Range<usize>, kind: Kind, flag: bool) -> u32 {
        let index = self.entries.len() as u32;
        self.entries.push(Entry {
            start: range.start as u32,
            end: range.end as u32,
            next: index + 1,
            count: 0,
            kind,
            flag,
            repeated: false,
        });
        index
    }

    /// Counts a value as an item when a list is open.
    fn count_item(&mut self) {
        if let Some(container) = self.open.last()
            && !container.is_object
        {
            self.entries[container.index as usize].count += 1;
        }
    }
}
