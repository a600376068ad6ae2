//! Adapters. Deleted rows stay; nothing reads them as adapters.

use kanat_model::Timestamp;
use kanat_model::adapter::Kind;
use kanat_model::id::{AccountId, AdapterId, EnvironmentId};
use kanat_model::page::{ListPage, Page};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Error, Result, search_entry};

record! {
    pub struct Adapter in "adapter" {
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
}

/// Which adapters are listed; an empty text is any.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Looked for in name and description.
    pub search: String,
    pub kind: String,
}

/// Errors when the environment has an adapter of that name.
pub async fn insert(db: &mut Db, adapter: &Adapter) -> Result<()> {
    db.insert(adapter)
        .await
        .map_err(Error::taken("adapter", &adapter.name))?;
    search_entry::update(db, adapter.id.as_str()).await
}

statements! {
    fn get(environment: &EnvironmentId, id: &AdapterId) -> Option<Adapter> =
        "SELECT {COLUMNS} FROM adapter WHERE environment_id = $1 AND id = $2 AND deleted_at IS \
         NULL";

    /// Deletes an adapter; returns whether it existed.
    fn delete(environment: &EnvironmentId, id: &AdapterId, at: Timestamp) -> bool =
        "UPDATE adapter SET deleted_at = $3 WHERE environment_id = $1 AND id = $2 AND deleted_at \
         IS NULL", index id;
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM adapter WHERE environment_id = $1 AND \
                     deleted_at IS NULL AND ($2 = '' OR kind = $2) AND ($3 = '' OR name GLOB $3 \
                     OR description GLOB $3)";
const LIST: &str = sql!(
    Adapter,
    "SELECT {COLUMNS} FROM adapter WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = '' \
     OR kind = $2) AND ($3 = '' OR name GLOB $3 OR description GLOB $3) ORDER BY id DESC LIMIT $4 \
     OFFSET $5"
);

/// The environment's adapters, newest first.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    filter: &Filter,
    page: Page,
) -> Result<ListPage<Adapter>> {
    db.search(
        COUNT,
        LIST,
        &[environment, &filter.kind],
        &filter.search,
        page,
    )
    .await
}

const UPDATE: &str = sql!(
    Adapter,
    "UPDATE adapter SET name = {name}, description = {description}, kind = {kind}, code = {code}, \
     version = {version}, updated_at = {updated_at} WHERE environment_id = {environment_id} AND \
     id = {id} AND deleted_at IS NULL"
);

/// Writes an adapter as its next version. Errors when another one has the name.
pub async fn update(db: &mut Db, adapter: &mut Adapter) -> Result<()> {
    adapter.version += 1;
    db.run(UPDATE, &adapter.values())
        .await
        .map_err(Error::taken("adapter", &adapter.name))?;
    search_entry::update(db, adapter.id.as_str()).await
}
