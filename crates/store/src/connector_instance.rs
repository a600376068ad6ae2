//! Connector instances; their configs are sealed. Deleted rows stay; nothing reads them as
//! instances.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, InstanceId};
use kanat_model::page::{ListPage, Page};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Error, Result, search_entry};

record! {
    pub struct ConnectorInstance in "connector_instance" {
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
}

/// Filter of a list; empty texts find everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub catalog_id: String,
    /// Looked for in name and display name.
    pub search: String,
}

record! {
    /// Name that definitions refer to an instance by.
    pub struct Name {
        pub id: InstanceId,
        pub name: String,
        pub catalog_id: String,
    }
}

/// Errors when the environment has an instance of that name.
pub async fn insert(db: &mut Db, instance: &ConnectorInstance) -> Result<()> {
    db.insert(instance)
        .await
        .map_err(Error::taken("connector instance", &instance.name))?;
    search_entry::update(db, instance.id.as_str()).await
}

statements! {
    fn get(environment: &EnvironmentId, id: &InstanceId) -> Option<ConnectorInstance> =
        "SELECT {COLUMNS} FROM connector_instance WHERE environment_id = $1 AND id = $2 AND \
         deleted_at IS NULL";

    /// Ids, names and entries of all instances of the environment.
    fn names(environment: &EnvironmentId) -> Vec<Name> =
        "SELECT id, name, catalog_id FROM connector_instance WHERE environment_id = $1 AND \
         deleted_at IS NULL ORDER BY name";

    /// Deletes an instance; returns whether it existed.
    fn delete(environment: &EnvironmentId, id: &InstanceId, at: Timestamp) -> bool =
        "UPDATE connector_instance SET deleted_at = $3, revision = revision + 1 WHERE \
         environment_id = $1 AND id = $2 AND deleted_at IS NULL", index id;
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM connector_instance \
    WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = '' OR catalog_id = $2) \
    AND ($3 = '' OR name GLOB $3 \
    OR display_name GLOB $3)";
const LIST: &str = sql!(
    ConnectorInstance,
    "SELECT {COLUMNS} FROM connector_instance WHERE environment_id = $1 AND deleted_at IS NULL \
     AND ($2 = '' OR catalog_id = $2) AND ($3 = '' OR name GLOB $3 OR display_name GLOB $3) ORDER \
     BY id DESC LIMIT $4 OFFSET $5"
);

/// The environment's instances, newest first.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    filter: &Filter,
    page: Page,
) -> Result<ListPage<ConnectorInstance>> {
    db.search(
        COUNT,
        LIST,
        &[environment, &filter.catalog_id],
        &filter.search,
        page,
    )
    .await
}

const UPDATE: &str = sql!(
    ConnectorInstance,
    "UPDATE connector_instance SET name = {name}, display_name = {display_name}, config = \
     {config}, revision = revision + 1, updated_at = {updated_at} WHERE id = {id} AND revision = \
     {revision} AND deleted_at IS NULL"
);

/// Writes what may change, as the next revision. Errors when the row is no longer at
/// `instance.revision`, and when another instance of the environment has the name.
pub async fn update(db: &mut Db, instance: &mut ConnectorInstance) -> Result<()> {
    let done = db
        .execute(UPDATE, &instance.values())
        .await
        .map_err(Error::taken("connector instance", &instance.name))?;
    Error::check_changed(done, "connector instance", &instance.id)?;
    instance.revision += 1;
    search_entry::update(db, instance.id.as_str()).await
}
