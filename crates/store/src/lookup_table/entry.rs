//! Entries of lookup tables: text by text.

use kanat_model::id::LookupTableId;
use sqlx::AssertSqlSafe;

use crate::column::Value;
use crate::record::record;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
}

record!(Entry { key as "name", value });

/// Rows of one statement. Statements come in this length and in length 1 only, so that both stay
/// prepared.
const CHUNK: usize = 100;

const UPSERT: &str = "INSERT INTO lookup_entry (table_id, name, value) VALUES ";
const OR_REPLACE: &str = " ON CONFLICT (table_id, name) DO UPDATE SET value = excluded.value";

/// Adds or overwrites entries, whose keys must all differ.
pub async fn upsert(db: &mut Db, table: &LookupTableId, entries: &[Entry]) -> Result<(), Error> {
    let chunks = entries.chunks_exact(CHUNK);
    let rest = chunks.remainder();
    for chunk in chunks.chain(rest.chunks(1)) {
        let values: Vec<&dyn Value> = chunk
            .iter()
            .flat_map(|entry| [table as &dyn Value, &entry.key, &entry.value])
            .collect();
        db.run(AssertSqlSafe(upsert_text(chunk.len())), &values)
            .await?;
    }
    Ok(())
}

/// Holds placeholders only; every value is bound.
fn upsert_text(rows: usize) -> String {
    let row = |n: usize| format!("(${}, ${}, ${})", 3 * n + 1, 3 * n + 2, 3 * n + 3);
    format!(
        "{UPSERT}{}{OR_REPLACE}",
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    )
}

const DELETE: &str = "DELETE FROM lookup_entry WHERE table_id = $1 AND name = $2";

/// Deletes an entry; returns whether it existed.
pub async fn delete(db: &mut Db, table: &LookupTableId, key: &str) -> Result<bool, Error> {
    db.changes(DELETE, &[table, &key]).await
}

const ALL: &str = "SELECT name, value FROM lookup_entry WHERE table_id = $1";

/// All entries in order of the bytes of their keys, which is the same order on every database.
pub async fn all(db: &mut Db, table: &LookupTableId) -> Result<Vec<Entry>, Error> {
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
) -> Result<Vec<Entry>, Error> {
    let pattern = search::pattern(db, search)?;
    db.all(search::statement(db, FIND), &[table, &pattern, &limit])
        .await
}
