//! Lookup tables; their entries are in `lookup_table/entry.rs`. Deleted rows stay; nothing reads
//! them as tables.

pub mod entry;

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, LookupTableId};

use crate::record::record;
use crate::sql::sql;
use crate::statement::{lists, statements};
use crate::{Db, Error, Result, search_entry};

record! {
    pub struct LookupTable in "lookup_table" {
        pub id: LookupTableId,
        pub account_id: AccountId,
        pub environment_id: EnvironmentId,
        pub name: String,
        pub description: String,
        /// Starts at 1 and grows by one with every modification.
        pub version: u32,
        pub entries_count: u32,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// Errors when the environment has a table of that name.
pub async fn insert(db: &mut Db, table: &LookupTable) -> Result<()> {
    db.insert(table)
        .await
        .map_err(Error::taken("lookup table", &table.name))?;
    search_entry::update(db, table.id.as_str()).await
}

statements! {
    fn get(environment: &EnvironmentId, id: &LookupTableId) -> Option<LookupTable> =
        "SELECT {COLUMNS} FROM lookup_table WHERE environment_id = $1 AND id = $2 AND deleted_at \
         IS NULL";

    /// Deletes a table; returns whether it existed.
    fn delete(environment: &EnvironmentId, id: &LookupTableId, at: Timestamp) -> bool =
        "UPDATE lookup_table SET deleted_at = $3 WHERE environment_id = $1 AND id = $2 AND \
         deleted_at IS NULL", index id;
}

lists! {
    /// The environment's tables, newest first; `search` is looked for in name and description.
    fn list(environment: &EnvironmentId; search) -> LookupTable =
        "FROM lookup_table WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = '' OR name \
         GLOB $2 OR description GLOB $2)",
        "ORDER BY id DESC LIMIT $3 OFFSET $4";
}

const MODIFIED: &str = sql!(
    LookupTable,
    "UPDATE lookup_table SET version = version + 1, updated_at = $2, entries_count = $3 WHERE id \
     = $1 AND deleted_at IS NULL RETURNING {COLUMNS}"
);

/// Counts a modification after which it has so many entries, and gives the table as it now is.
pub async fn modified(
    db: &mut Db,
    id: &LookupTableId,
    entries: u32,
    at: Timestamp,
) -> Result<LookupTable> {
    db.one(MODIFIED, &[id, &at, &entries]).await
}
