//! Bounds of lookup-table entries.

use std::collections::HashMap;

use kanat_model::id::LookupTableId;
use kanat_model::{Error, FieldError, Result};
use kanat_store::Db;
use kanat_store::lookup_table::entry::{self, Entry};
use serde_json::{Map, Value, json};

const MAX_ENTRIES: u32 = 100_000;
const MAX_KEY_BYTES: usize = 1_024;
const MAX_VALUE_BYTES: usize = 16 << 10;
/// Nodes hold whole tables in memory.
const MAX_TABLE_BYTES: usize = 16 << 20;
const MAX_REPORTED: usize = 100;
/// Keys of one change that the audit log tells.
const MAX_LISTED_KEYS: usize = 100;

/// Entries whose keys all differ: of those with one key, the last one. Errors name each wrong one
/// by its place.
pub fn check(entries: Vec<Entry>) -> Result<Vec<Entry>> {
    if entries.is_empty() {
        return Err(Error::field("entries", "must not be empty"));
    }
    if u32::try_from(entries.len()).is_ok_and(|count| count > MAX_ENTRIES) {
        return Err(Error::field(
            "entries",
            format!("has more than {MAX_ENTRIES} entries"),
        ));
    }
    let faults = entries.iter().enumerate().flat_map(|(n, entry)| {
        let place = format!("entries[{n}]");
        faults(entry)
            .map(move |(field, message)| FieldError::new(format!("{place}.{field}"), message))
    });
    let faults: Vec<FieldError> = faults.take(MAX_REPORTED).collect();
    if !faults.is_empty() {
        return Err(Error::invalid("some entries are wrong", faults));
    }
    Ok(last_of_each_key(entries))
}

/// Errors name `key` or `value`.
pub fn check_one(entry: &Entry) -> Result<()> {
    match faults(entry).next() {
        Some((field, message)) => Err(Error::field(field, message)),
        None => Ok(()),
    }
}

/// Errors when a table would have too many entries.
pub fn check_count(count: u32) -> Result<()> {
    if count > MAX_ENTRIES {
        return Err(Error::field(
            "entries",
            format!("the table would have {count} entries; it may have {MAX_ENTRIES}"),
        ));
    }
    Ok(())
}

/// Errors when a table would be too large, by the bytes of its keys and values.
pub fn check_size(bytes: usize) -> Result<()> {
    if bytes > MAX_TABLE_BYTES {
        let message = format!("the table would have {bytes} bytes; it may have {MAX_TABLE_BYTES}");
        return Err(Error::field("entries", message));
    }
    Ok(())
}

/// Changes of entries as the audit log tells them.
pub struct Edits {
    pub before: Value,
    pub after: Value,
}

impl Edits {
    /// Returns what becomes of a table when entries, whose keys all differ, are put into it.
    pub async fn of(db: &mut Db, table: &LookupTableId, entries: &[Entry]) -> Result<Self> {
        let is_large = entries.len() > MAX_LISTED_KEYS;
        let mut all = HashMap::new();
        if is_large {
            let kept = entry::all(db, table).await?;
            all.extend(kept.into_iter().map(|entry| (entry.key, entry.value)));
        }
        let mut listed = ListedKeys::default();
        for Entry { key, value } in entries {
            let former = if is_large {
                all.remove(key)
            } else {
                entry::get(db, table, key).await?
            };
            if former.as_ref() != Some(value) {
                listed.add(key, former, Some(value));
            }
        }
        Ok(listed.edits())
    }

    /// Returns what becomes of a table that loses an entry.
    pub fn of_removal(key: &str, former: Option<String>) -> Self {
        let mut listed = ListedKeys::default();
        listed.add(key, former, None);
        listed.edits()
    }
}

/// Keys that are listed, each with the value before and after; the others are counted.
#[derive(Default)]
struct ListedKeys {
    added: Pairs,
    changed: Pairs,
    removed: Pairs,
    keys: usize,
    omitted: usize,
}

#[derive(Default)]
struct Pairs {
    before: Map<String, Value>,
    after: Map<String, Value>,
}

impl ListedKeys {
    fn add(&mut self, key: &str, before: Option<String>, after: Option<&String>) {
        if self.keys == MAX_LISTED_KEYS {
            self.omitted += 1;
            return;
        }
        self.keys += 1;
        let pairs = match (&before, after) {
            (None, _) => &mut self.added,
            (Some(_), Some(_)) => &mut self.changed,
            (Some(_), None) => &mut self.removed,
        };
        pairs.before.insert(key.to_owned(), before.into());
        pairs.after.insert(key.to_owned(), after.cloned().into());
    }

    fn edits(self) -> Edits {
        let Self {
            added,
            changed,
            removed,
            omitted,
            ..
        } = self;
        type Values = Map<String, Value>;
        let state = |added: Values, changed: Values, removed: Values| {
            let mut state = json!({"added": added, "changed": changed, "removed": removed});
            if omitted > 0 {
                state["omitted"] = omitted.into();
            }
            state
        };
        Edits {
            before: state(added.before, changed.before, removed.before),
            after: state(added.after, changed.after, removed.after),
        }
    }
}

fn faults(entry: &Entry) -> impl Iterator<Item = (&'static str, String)> {
    let key = match entry.key.len() {
        0 => Some("must not be empty".to_owned()),
        1..=MAX_KEY_BYTES => nul(&entry.key),
        _ => Some(format!("has more than {MAX_KEY_BYTES} bytes")),
    };
    let value = match entry.value.len() {
        0..=MAX_VALUE_BYTES => nul(&entry.value),
        _ => Some(format!("has more than {MAX_VALUE_BYTES} bytes")),
    };
    key.map(|message| ("key", message))
        .into_iter()
        .chain(value.map(|message| ("value", message)))
}

/// PostgreSQL cannot store it.
fn nul(text: &str) -> Option<String> {
    text.contains('\0')
        .then(|| "must not contain a NUL character".to_owned())
}

fn last_of_each_key(entries: Vec<Entry>) -> Vec<Entry> {
    let mut place: HashMap<String, usize> = HashMap::with_capacity(entries.len());
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        match place.get(&entry.key) {
            Some(&n) => kept[n] = entry,
            None => {
                place.insert(entry.key.clone(), kept.len());
                kept.push(entry);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn of_entries_with_one_key_the_last_one_counts() {
        let kept = check(vec![entry("a", "1"), entry("b", "2"), entry("a", "3")]).unwrap();
        assert_eq!(kept, [entry("a", "3"), entry("b", "2")]);
    }

    #[test]
    fn names_every_wrong_entry_by_its_place() {
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        let error = check(vec![entry("a", "1"), entry("", &long), entry("c\0", "")]).unwrap_err();
        let fields: Vec<_> = error
            .details
            .iter()
            .map(|detail| detail.field.as_str())
            .collect();
        assert_eq!(
            fields,
            ["entries[1].key", "entries[1].value", "entries[2].key"]
        );
        assert!(check(Vec::new()).is_err());
        assert_eq!(
            check_one(&entry("", "")).unwrap_err().details[0].field,
            "key"
        );
    }
}
