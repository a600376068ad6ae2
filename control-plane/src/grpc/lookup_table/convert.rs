//! Lookup tables between the wire and the store.

use kanat_model::{Error, Result};
use kanat_proto::v1 as wire;
use kanat_store::lookup_table::LookupTable;
use kanat_store::lookup_table::entry::Entry;

use crate::app::etag;
use crate::carry::carry;

pub fn table(table: LookupTable, entries: Vec<Entry>) -> wire::LookupTable {
    carry!(
        wire::LookupTable, table { name, description, version, entries_count }
        text { id, created_at, updated_at }
        with {
            etag: etag(&table),
            entries: entries
                .into_iter()
                .map(|entry| wire::LookupEntry {
                    key: entry.key,
                    value: Some(entry.value),
                })
                .collect(),
        }
    )
}

pub fn change(table: LookupTable) -> wire::LookupTableChange {
    wire::LookupTableChange {
        id: table.id.into_string(),
        entries_count: table.entries_count,
        version: table.version,
    }
}

/// Errors name the value that was left out.
pub fn entries_from(entries: Vec<wire::LookupEntry>) -> Result<Vec<Entry>> {
    let entry = |(n, entry): (usize, wire::LookupEntry)| {
        Ok(Entry {
            key: entry.key,
            value: required(&format!("entries[{n}].value"), entry.value)?,
        })
    };
    entries.into_iter().enumerate().map(entry).collect()
}

/// A text that may be empty. Errors name `field` when it was left out.
pub fn required(field: &str, text: Option<String>) -> Result<String> {
    text.ok_or_else(|| Error::field(field, "is required"))
}
