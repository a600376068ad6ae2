//! Lookup tables; their entries are in `lookup_table/entry.rs`. Deleted rows stay; nothing reads
//! them as tables.

pub mod entry;

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, LookupTableId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupTable {
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

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, environment_id, name, description, version, \
                       entries_count, created_at, updated_at";

fn read(row: &AnyRow) -> Result<LookupTable, Error> {
    Ok(LookupTable {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        name: row.text("name")?,
        description: row.text("description")?,
        version: row.whole("version")?,
        entries_count: row.whole("entries_count")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

const INSERT: &str =
    sql!("INSERT INTO lookup_table ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");

/// Errors when the environment has a table of that name.
pub async fn insert(db: &mut Db, table: &LookupTable) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(table.id.as_str())
        .bind(table.account_id.as_str())
        .bind(table.environment_id.as_str())
        .bind(table.name.as_str())
        .bind(table.description.as_str())
        .bind(i64::from(table.version))
        .bind(i64::from(table.entries_count))
        .bind(table.created_at.as_millis())
        .bind(table.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "lookup table", &table.name))?;
    Ok(())
}

const GET: &str = sql!(
    "SELECT {COLUMNS} FROM lookup_table WHERE environment_id = $1 AND id = $2 AND deleted_at \
     IS NULL"
);

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &LookupTableId,
) -> Result<Option<LookupTable>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM lookup_table WHERE environment_id = $1 AND \
                     deleted_at IS NULL AND ($2 = '' OR name GLOB $2 OR description GLOB $2)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM lookup_table WHERE environment_id = $1 AND deleted_at IS NULL AND \
     ($2 = '' OR name GLOB $2 OR description GLOB $2) ORDER BY id DESC LIMIT $3 OFFSET $4"
);

/// The environment's tables, newest first; `search` is looked for in name and description.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    search: &str,
    page: Page,
) -> Result<ListPage<LookupTable>, Error> {
    let pattern = search::pattern(db, search)?;
    let total = sqlx::query(search::statement(db, COUNT))
        .bind(environment.as_str())
        .bind(pattern.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(search::statement(db, LIST))
        .bind(environment.as_str())
        .bind(pattern.as_str())
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    Ok(ListPage {
        items: rows.iter().map(read).collect::<Result<_, _>>()?,
        total,
        page,
    })
}

const MODIFIED: &str = sql!(
    "UPDATE lookup_table SET version = version + 1, updated_at = $2, entries_count = $3 WHERE \
     id = $1 AND deleted_at IS NULL RETURNING {COLUMNS}"
);

/// Counts a modification after which it has so many entries, and gives the table as it now is.
pub async fn modified(
    db: &mut Db,
    id: &LookupTableId,
    entries: u32,
    at: Timestamp,
) -> Result<LookupTable, Error> {
    let row = sqlx::query(MODIFIED)
        .bind(id.as_str())
        .bind(at.as_millis())
        .bind(i64::from(entries))
        .fetch_one(db)
        .await?;
    read(&row)
}

const DELETE: &str = "UPDATE lookup_table SET deleted_at = $3 \
    WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Deletes a table; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &LookupTableId,
    at: Timestamp,
) -> Result<bool, Error> {
    let done = sqlx::query(DELETE)
        .bind(environment.as_str())
        .bind(id.as_str())
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}
