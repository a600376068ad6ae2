//! Connector instances; their configs are sealed. Deleted rows stay; nothing reads them as
//! instances.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, InstanceId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorInstance {
    pub id: InstanceId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    /// Id of the catalog entry.
    pub catalog_id: String,
    pub name: String,
    pub display_name: String,
    /// Sealed JSON object.
    pub config: Vec<u8>,
    /// Grows with every change of the row.
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Filter of a list; empty texts find everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub catalog_id: String,
    /// Looked for in name and display name.
    pub search: String,
}

/// Name that definitions refer to an instance by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub id: InstanceId,
    pub name: String,
    pub catalog_id: String,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, environment_id, catalog_id, name, display_name, config, \
                       revision, created_at, updated_at";

fn read(row: &AnyRow) -> Result<ConnectorInstance, Error> {
    Ok(ConnectorInstance {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        catalog_id: row.text("catalog_id")?,
        name: row.text("name")?,
        display_name: row.text("display_name")?,
        config: row.bytes("config")?,
        revision: row.whole("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

const INSERT: &str = sql!(
    "INSERT INTO connector_instance ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
);

/// Errors when the environment has an instance of that name.
pub async fn insert(db: &mut Db, instance: &ConnectorInstance) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(instance.id.as_str())
        .bind(instance.account_id.as_str())
        .bind(instance.environment_id.as_str())
        .bind(instance.catalog_id.as_str())
        .bind(instance.name.as_str())
        .bind(instance.display_name.as_str())
        .bind(instance.config.as_slice())
        .bind(instance.revision.cast_signed())
        .bind(instance.created_at.as_millis())
        .bind(instance.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "connector instance", &instance.name))?;
    Ok(())
}

const GET: &str = sql!(
    "SELECT {COLUMNS} FROM connector_instance WHERE environment_id = $1 AND id = $2 AND \
     deleted_at IS NULL"
);

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &InstanceId,
) -> Result<Option<ConnectorInstance>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM connector_instance \
    WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = '' OR catalog_id = $2) \
    AND ($3 = '' OR name GLOB $3 \
    OR display_name GLOB $3)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM connector_instance WHERE environment_id = $1 AND deleted_at IS \
     NULL AND ($2 = '' OR catalog_id = $2) AND ($3 = '' OR name GLOB $3 OR display_name GLOB \
     $3) ORDER BY id DESC LIMIT $4 OFFSET $5"
);

/// The environment's instances, newest first.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    filter: &Filter,
    page: Page,
) -> Result<ListPage<ConnectorInstance>, Error> {
    let pattern = search::pattern(db, &filter.search)?;
    let total = sqlx::query(search::statement(db, COUNT))
        .bind(environment.as_str())
        .bind(filter.catalog_id.as_str())
        .bind(pattern.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(search::statement(db, LIST))
        .bind(environment.as_str())
        .bind(filter.catalog_id.as_str())
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

const NAMES: &str = "SELECT id, name, catalog_id FROM connector_instance \
    WHERE environment_id = $1 AND deleted_at IS NULL ORDER BY name";

/// Ids, names and entries of all instances of the environment.
pub async fn names(db: &mut Db, environment: &EnvironmentId) -> Result<Vec<Name>, Error> {
    let rows = sqlx::query(NAMES)
        .bind(environment.as_str())
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Name {
                id: row.id("id")?,
                name: row.text("name")?,
                catalog_id: row.text("catalog_id")?,
            })
        })
        .collect()
}

const UPDATE: &str = "UPDATE connector_instance SET name = $3, display_name = $4, config = $5, \
                      revision = revision + 1, updated_at = $6 WHERE id = $1 AND revision = $2 \
                      AND deleted_at IS NULL";

/// Writes what may change, as the next revision. Errors when the row is no longer at
/// `instance.revision`, and when another instance of the environment has the name.
pub async fn update(db: &mut Db, instance: &mut ConnectorInstance) -> Result<(), Error> {
    let done = sqlx::query(UPDATE)
        .bind(instance.id.as_str())
        .bind(instance.revision.cast_signed())
        .bind(instance.name.as_str())
        .bind(instance.display_name.as_str())
        .bind(instance.config.as_slice())
        .bind(instance.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "connector instance", &instance.name))?;
    if done.rows_affected() == 0 {
        return Err(Error::Changed {
            kind: "connector instance",
            id: instance.id.as_str().to_owned(),
        });
    }
    instance.revision += 1;
    Ok(())
}

const DELETE: &str = "UPDATE connector_instance SET deleted_at = $3, revision = revision + 1 \
    WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Deletes an instance; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &InstanceId,
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
