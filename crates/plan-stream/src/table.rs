//! Changes of lookup tables by their entries: from two bodies to what differs, from one body and
//! that to the other. A table may have 100,000 entries; one that changes costs one entry on the
//! wire and on a node's disk. The bodies are walked as they are encoded, in the order of their
//! keys, and are never taken apart: what comes out of a change is byte for byte what would have
//! been sent whole, so that the hash of the body proves it.

use std::collections::BTreeMap;

use kanat_proto::node::v1::{TableChange, TableEntry};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;
use prost::Message;

/// How fields of `kanat.plan.v1.LookupTable` begin: number and wire type.
mod field {
    pub const ID: u8 = 1 << 3 | 2;
    pub const NAME: u8 = 2 << 3 | 2;
    pub const VERSION: u8 = 3 << 3;
    pub const ENTRY: u8 = 4 << 3 | 2;
}

/// The same of its entries.
mod entry {
    pub const KEY: u8 = 1 << 3 | 2;
    pub const VALUE: u8 = 2 << 3 | 2;
}

/// A body is not as this build writes tables: perhaps a newer one has made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lookup table is not written as this build does it")]
pub struct Unreadable;

/// What differs between two bodies, without resource id and hashes; `None` when more than entries
/// does, and when so much does that the body itself is as good.
pub fn between(from: &[u8], to: &[u8]) -> Option<TableChange> {
    let mut from = Parts::of(from).ok()?;
    let mut to = Parts::of(to).ok()?;
    let former = from.head().ok()?;
    let head = to.head().ok()?;
    if (&former.id, &former.name) != (&head.id, &head.name) {
        return None;
    }
    let room = to.entries.len() / 2;
    let mut change = TableChange {
        version: head.version,
        ..TableChange::default()
    };
    let mut before = from.next().ok()?;
    let mut after = to.next().ok()?;
    let mut bytes = 0;
    loop {
        let (gone, come) = match (before, after) {
            (None, None) => return Some(change),
            (Some(before), Some(after)) if before.key == after.key => {
                (None, (before.encoded != after.encoded).then_some(after))
            }
            (Some(before), Some(after)) if before.key < after.key => (Some(before), None),
            (Some(before), None) => (Some(before), None),
            (Some(_) | None, Some(after)) => (None, Some(after)),
        };
        bytes += gone.map_or(0, |gone| gone.key.len()) + come.map_or(0, |come| come.encoded.len());
        if bytes > room {
            return None;
        }
        change.removals.extend(gone.map(|gone| gone.key.to_owned()));
        change.upserts.extend(come.map(|come| TableEntry {
            key: come.key.to_owned(),
            value: come.value.to_owned(),
        }));
        // Whoever has the lower key goes on, or both.
        let order = before
            .map(|entry| entry.key)
            .map_or(std::cmp::Ordering::Greater, |key| {
                after.map_or(std::cmp::Ordering::Less, |after| key.cmp(after.key))
            });
        if order.is_le() {
            before = from.next().ok()?;
        }
        if order.is_ge() {
            after = to.next().ok()?;
        }
    }
}

/// The body after `change`. Nothing is proven: its hash tells whether it is the body that was
/// meant.
///
/// # Errors
/// The body is none that this build writes.
pub fn changed(body: &[u8], change: &TableChange) -> Result<Vec<u8>, Unreadable> {
    let mut parts = Parts::of(body)?;
    let head = LookupTable {
        version: change.version,
        ..parts.head()?
    };
    let mut changes: Vec<(&str, Option<&str>)> = change
        .upserts
        .iter()
        .map(|entry| (entry.key.as_str(), Some(entry.value.as_str())))
        .collect();
    changes.extend(change.removals.iter().map(|key| (key.as_str(), None)));
    changes.sort_by_key(|(key, _)| *key);
    let mut changes = changes.into_iter().peekable();
    let more: usize = change
        .upserts
        .iter()
        .map(|entry| entry.encoded_len() + 8)
        .sum();
    let mut out = Vec::with_capacity(body.len() + more + 8);
    out.extend(head.encode_to_vec());
    while let Some(entry) = parts.next()? {
        while let Some((key, value)) = changes.next_if(|(key, _)| *key < entry.key) {
            write(&mut out, key, value);
        }
        match changes.next_if(|(key, _)| *key == entry.key) {
            Some((key, value)) => write(&mut out, key, value),
            None => out.extend_from_slice(entry.encoded),
        }
    }
    for (key, value) in changes {
        write(&mut out, key, value);
    }
    Ok(out)
}

/// One change in the place of several that follow one another; `None` of none.
pub fn merged<'c>(changes: impl IntoIterator<Item = &'c TableChange>) -> Option<TableChange> {
    let mut changes = changes.into_iter().peekable();
    let first = changes.peek()?;
    let mut merged = TableChange {
        resource_id: first.resource_id.clone(),
        from_hash: first.from_hash.clone(),
        ..TableChange::default()
    };
    let mut entries: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for change in changes {
        entries.extend(change.removals.iter().map(|key| (key.as_str(), None)));
        entries.extend(
            change
                .upserts
                .iter()
                .map(|entry| (entry.key.as_str(), Some(entry.value.as_str()))),
        );
        merged.hash.clone_from(&change.hash);
        merged.version = change.version;
    }
    for (key, value) in entries {
        match value {
            Some(value) => merged.upserts.push(TableEntry {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            None => merged.removals.push(key.to_owned()),
        }
    }
    Some(merged)
}

/// How much a table has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Its entries.
    pub entries: usize,
    /// Bytes of all keys and values.
    pub text_bytes: usize,
}

/// How much a body has.
///
/// # Errors
/// The body is none that this build writes.
pub fn size(body: &[u8]) -> Result<Size, Unreadable> {
    let mut parts = Parts::of(body)?;
    let mut size = Size::default();
    while let Some(entry) = parts.next()? {
        size.entries += 1;
        size.text_bytes += entry.key.len() + entry.value.len();
    }
    Ok(size)
}

/// An encoded table: what stands before its entries, and those that were not read yet.
struct Parts<'b> {
    head: &'b [u8],
    entries: &'b [u8],
    last: Option<&'b str>,
}

#[derive(Clone, Copy)]
struct Encoded<'b> {
    key: &'b str,
    value: &'b str,
    /// With its field's beginning.
    encoded: &'b [u8],
}

impl<'b> Parts<'b> {
    fn of(body: &'b [u8]) -> Result<Self, Unreadable> {
        let mut rest = body;
        loop {
            match rest.first() {
                Some(&(field::ID | field::NAME)) => drop(text(&mut rest)?),
                Some(&field::VERSION) => {
                    rest = &rest[1..];
                    length(&mut rest)?;
                }
                Some(_) | None => break,
            }
        }
        Ok(Self {
            head: &body[..body.len() - rest.len()],
            entries: rest,
            last: None,
        })
    }

    fn head(&self) -> Result<LookupTable, Unreadable> {
        LookupTable::decode(self.head).map_err(|_| Unreadable)
    }

    /// The next entry, whose key is greater than the one before.
    fn next(&mut self) -> Result<Option<Encoded<'b>>, Unreadable> {
        let mut rest = self.entries;
        match rest.first() {
            None => return Ok(None),
            Some(&field::ENTRY) => {}
            Some(_) => return Err(Unreadable),
        }
        let mut fields = content(&mut rest)?;
        let encoded = &self.entries[..self.entries.len() - rest.len()];
        self.entries = rest;
        let mut take = |name: u8| {
            if fields.first() == Some(&name) {
                text(&mut fields)
            } else {
                Ok("")
            }
        };
        let key = take(entry::KEY)?;
        let value = take(entry::VALUE)?;
        if !fields.is_empty() || self.last.is_some_and(|last| last >= key) {
            return Err(Unreadable);
        }
        self.last = Some(key);
        Ok(Some(Encoded {
            key,
            value,
            encoded,
        }))
    }
}

fn write(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    let entry = Entry {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    out.push(field::ENTRY);
    out.extend(entry.encode_length_delimited_to_vec());
}

/// The content of a field that begins here, which is of some length.
fn content<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Unreadable> {
    *rest = &rest[1..];
    let length = length(rest)?;
    let (content, after) = rest.split_at_checked(length).ok_or(Unreadable)?;
    *rest = after;
    Ok(content)
}

fn text<'b>(rest: &mut &'b [u8]) -> Result<&'b str, Unreadable> {
    std::str::from_utf8(content(rest)?).map_err(|_| Unreadable)
}

fn length(rest: &mut &[u8]) -> Result<usize, Unreadable> {
    prost::decode_length_delimiter(rest).map_err(|_| Unreadable)
}

#[cfg(test)]
mod tests;
