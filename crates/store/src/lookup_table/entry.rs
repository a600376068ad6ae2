//! Entries of lookup tables: text by text.

use kanat_model::id::LookupTableId;

use crate::column::Value;
use crate::record::record;
use crate::statement::statements;
use crate::{Db, Result, search};

record! {
    pub struct Entry {
        pub key: String as "name",
        pub value: String,
    }
}

const UPSERT: &str = "INSERT INTO lookup_entry (table_id, name, value) VALUES";
const OR_REPLACE: &str = "ON CONFLICT (table_id, name) DO UPDATE SET value = excluded.value";

/// Adds or overwrites entries, whose keys must all differ.
pub async fn upsert(db: &mut Db, table: &LookupTableId, entries: &[Entry]) -> Result<()> {
    let mut rows: Vec<[&dyn Value; 3]> = Vec::with_capacity(entries.len());
    for Entry { key, value } in entries {
        rows.push([table, key, value]);
    }
    db.insert_rows(UPSERT, &rows, OR_REPLACE).await
}

statements! {
    /// Returns the value of a key.
    fn get(table: &LookupTableId, key: &str) -> Option<String> =
        "SELECT value FROM lookup_entry WHERE table_id = $1 AND name = $2";

    /// Deletes an entry; returns whether it existed.
    fn delete(table: &LookupTableId, key: &str) -> bool =
        "DELETE FROM lookup_entry WHERE table_id = $1 AND name = $2";
}

const ALL: &str = "SELECT name, value FROM lookup_entry WHERE table_id = $1";

/// All entries in order of the bytes of their keys, which is the same order on every database.
pub async fn all(db: &mut Db, table: &LookupTableId) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = db.all(ALL, &[table]).await?;
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Ok(entries)
}

const FIND: &str = "SELECT name, value FROM lookup_entry WHERE table_id = $1 \
    AND ($2 = '' OR name GLOB $2 \
    OR value GLOB $2) ORDER BY name LIMIT $3";

/// The first `limit` entries that have `search` in key or value, in order of their keys.
pub async fn find(
    db: &mut Db,
    table: &LookupTableId,
    search: &str,
    limit: u32,
) -> Result<Vec<Entry>> {
    let pattern = search::pattern(db, search)?;
    db.all(search::statement(db, FIND), &[table, &pattern, &limit])
        .await
}
