//! Adapters. Deleted rows stay; nothing reads them as adapters.

use kanat_model::Timestamp;
use kanat_model::adapter::Kind;
use kanat_model::id::{AccountId, AdapterId, EnvironmentId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    pub id: AdapterId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub name: String,
    pub description: String,
    pub kind: Kind,
    pub code: String,
    /// Starts at 1 and grows by one with every modification.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Which adapters are listed; an empty text is any.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Looked for in name and description.
    pub search: String,
    pub kind: String,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, environment_id, name, description, kind, code, version, \
                       created_at, updated_at";

fn read(row: &AnyRow) -> Result<Adapter, Error> {
    let kind = row.text("kind")?;
    Ok(Adapter {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        name: row.text("name")?,
        description: row.text("description")?,
        kind: Kind::parse(&kind).ok_or(Error::Corrupt {
            column: "kind",
            value: kind,
        })?,
        code: row.text("code")?,
        version: row.whole("version")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

const INSERT: &str =
    sql!("INSERT INTO adapter ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");

/// Errors when the environment has an adapter of that name.
pub async fn insert(db: &mut Db, adapter: &Adapter) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(adapter.id.as_str())
        .bind(adapter.account_id.as_str())
        .bind(adapter.environment_id.as_str())
        .bind(adapter.name.as_str())
        .bind(adapter.description.as_str())
        .bind(adapter.kind.as_str())
        .bind(adapter.code.as_str())
        .bind(i64::from(adapter.version))
        .bind(adapter.created_at.as_millis())
        .bind(adapter.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "adapter", &adapter.name))?;
    Ok(())
}

const GET: &str = sql!(
    "SELECT {COLUMNS} FROM adapter WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL"
);

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &AdapterId,
) -> Result<Option<Adapter>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM adapter WHERE environment_id = $1 AND \
                     deleted_at IS NULL AND ($2 = '' OR kind = $2) AND ($3 = '' OR name GLOB $3 \
                     OR description GLOB $3)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM adapter WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = \
     '' OR kind = $2) AND ($3 = '' OR name GLOB $3 OR description GLOB $3) ORDER BY id DESC \
     LIMIT $4 OFFSET $5"
);

/// The environment's adapters, newest first.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    filter: &Filter,
    page: Page,
) -> Result<ListPage<Adapter>, Error> {
    let pattern = search::pattern(db, &filter.search)?;
    let total = sqlx::query(search::statement(db, COUNT))
        .bind(environment.as_str())
        .bind(filter.kind.as_str())
        .bind(pattern.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(search::statement(db, LIST))
        .bind(environment.as_str())
        .bind(filter.kind.as_str())
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

const UPDATE: &str = "UPDATE adapter SET name = $3, description = $4, kind = $5, code = $6, \
                      version = $7, updated_at = $8 WHERE environment_id = $1 AND id = $2 AND \
                      deleted_at IS NULL";

/// Writes an adapter as its next version. Errors when another one has the name.
pub async fn update(db: &mut Db, adapter: &mut Adapter) -> Result<(), Error> {
    adapter.version += 1;
    sqlx::query(UPDATE)
        .bind(adapter.environment_id.as_str())
        .bind(adapter.id.as_str())
        .bind(adapter.name.as_str())
        .bind(adapter.description.as_str())
        .bind(adapter.kind.as_str())
        .bind(adapter.code.as_str())
        .bind(i64::from(adapter.version))
        .bind(adapter.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "adapter", &adapter.name))?;
    Ok(())
}

const DELETE: &str = "UPDATE adapter SET deleted_at = $3 \
    WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Deletes an adapter; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &AdapterId,
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
