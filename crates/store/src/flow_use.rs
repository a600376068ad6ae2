//! Which resources a deployed flow reads or calls, so that none is deleted under it.

use kanat_model::id::FlowId;
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::{Db, Error};

const CLEAR: &str = "DELETE FROM flow_use WHERE flow_id = $1";
const INSERT: &str =
    "INSERT INTO flow_use (flow_id, resource_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Says anew what the flow uses, such as `lookup_table/<id>`; nothing when it is no longer
/// deployed.
pub async fn replace(db: &mut Db, flow: &FlowId, resource_ids: &[String]) -> Result<(), Error> {
    sqlx::query(CLEAR)
        .bind(flow.as_str())
        .execute(&mut *db)
        .await?;
    for resource_id in resource_ids {
        sqlx::query(INSERT)
            .bind(flow.as_str())
            .bind(resource_id.as_str())
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

const USERS: &str = "SELECT flow.name AS name FROM flow_use JOIN flow ON flow.id = \
                     flow_use.flow_id WHERE flow_use.resource_id = $1 AND flow.deleted_at IS NULL \
                     ORDER BY flow.name LIMIT 10";

const DEFINITIONS: &str = "SELECT flow.id AS id, flow.name AS name, flow_version.yaml_config AS \
                           yaml_config, flow_version.sealed_config AS sealed_config FROM flow_use \
                           JOIN flow ON flow.id = flow_use.flow_id JOIN flow_version ON \
                           flow_version.flow_id = flow.id AND flow_version.version = flow.version \
                           WHERE flow_use.resource_id = $1 AND flow.deleted_at IS NULL ORDER BY \
                           flow.name LIMIT 100";

/// A flow that uses a resource, with its deployed definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub flow_id: FlowId,
    pub name: String,
    /// Its secrets masked.
    pub yaml_config: String,
    /// As it was written, sealed; `None` when that is `yaml_config`.
    pub sealed_config: Option<Vec<u8>>,
}

/// Returns the deployed flows that use the resource, at most 100.
pub async fn definitions(db: &mut Db, resource_id: &str) -> Result<Vec<User>, Error> {
    let rows = sqlx::query(DEFINITIONS)
        .bind(resource_id)
        .fetch_all(db)
        .await?;
    let user = |row: &AnyRow| {
        Ok(User {
            flow_id: row.id("id")?,
            name: row.text("name")?,
            yaml_config: row.text("yaml_config")?,
            sealed_config: row.optional_bytes("sealed_config")?,
        })
    };
    rows.iter().map(user).collect()
}

/// Names of deployed flows that use the resource, at most ten.
pub async fn users(db: &mut Db, resource_id: &str) -> Result<Vec<String>, Error> {
    let rows = sqlx::query(USERS).bind(resource_id).fetch_all(db).await?;
    rows.iter().map(|row| row.text("name")).collect()
}
