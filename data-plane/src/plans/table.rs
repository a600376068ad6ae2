//! Lookup tables as messages ask them: the entries of a large one are in parts, which it shares
//! with the table before.

use std::collections::HashMap;
use std::sync::Arc;

use kanat_plan_stream::parts;
use kanat_proto::node::v1::{TableChange, TableEntry};
use kanat_proto::plan::v1;

/// A lookup table.
#[derive(Debug)]
pub struct Table {
    pub name: String,
    /// At least one.
    parts: Vec<Arc<Part>>,
}

/// Some entries of a table, or all of them.
#[derive(Debug)]
pub struct Part {
    /// The texts are shared with the part before.
    entries: HashMap<Arc<str>, Arc<str>>,
}

impl Table {
    /// A table that is whole.
    pub fn whole(name: String, part: Part) -> Self {
        Self {
            name,
            parts: vec![Arc::new(part)],
        }
    }

    /// One in parts. Errors when one of them is missing, in words for an operator.
    pub fn in_parts<'p>(
        table: v1::LookupTable,
        part: impl Fn(&str) -> Option<&'p Arc<Part>>,
    ) -> Result<Self, String> {
        let parts = parts::resource_ids(&table.id, table.parts).map(|id| {
            part(&id)
                .cloned()
                .ok_or_else(|| format!("its part {id:?} is not in the set"))
        });
        Ok(Self {
            name: table.name,
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    /// The table after a change of some entries; `None` when it is in parts, which change instead.
    pub fn changed(&self, change: &TableChange) -> Option<Self> {
        match self.parts.as_slice() {
            [whole] => Some(Self::whole(self.name.clone(), whole.changed(change))),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        let part = match self.parts.as_slice() {
            [whole] => whole,
            parts => parts.get(parts::of_key(key, parts.len() as u32) as usize)?,
        };
        part.entries.get(key).map(AsRef::as_ref)
    }
}

impl Part {
    pub fn new(entries: Vec<v1::lookup_table::Entry>) -> Self {
        Self {
            entries: entries
                .into_iter()
                .map(|entry| (entry.key.into(), entry.value.into()))
                .collect(),
        }
    }

    /// The part after a change of some entries.
    #[must_use]
    pub fn changed(&self, change: &TableChange) -> Self {
        let mut entries = self.entries.clone();
        for key in &change.removals {
            entries.remove(key.as_str());
        }
        for TableEntry { key, value } in &change.upserts {
            entries.insert(key.as_str().into(), value.as_str().into());
        }
        Self { entries }
    }
}
