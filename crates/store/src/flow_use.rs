//! Which resources a deployed flow reads or calls, so that none is deleted under it.

use kanat_model::id::FlowId;

use crate::record::record;
use crate::statement::statements;
use crate::{Db, Error};

const CLEAR: &str = "DELETE FROM flow_use WHERE flow_id = $1";
const INSERT: &str =
    "INSERT INTO flow_use (flow_id, resource_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Says anew what the flow uses, such as `lookup_table/<id>`; nothing when it is no longer
/// deployed.
pub async fn replace(db: &mut Db, flow: &FlowId, resource_ids: &[String]) -> Result<(), Error> {
    db.execute(CLEAR, &[flow]).await?;
    for resource_id in resource_ids {
        db.execute(INSERT, &[flow, resource_id]).await?;
    }
    Ok(())
}

statements! {
    /// Returns the deployed flows that use the resource, at most 100.
    fn definitions(resource_id: &str) -> Vec<User> =
        "SELECT flow.id AS id, flow.name AS name, flow_version.yaml_config AS yaml_config, \
         flow_version.sealed_config AS sealed_config FROM flow_use JOIN flow ON flow.id = \
         flow_use.flow_id JOIN flow_version ON flow_version.flow_id = flow.id AND \
         flow_version.version = flow.version WHERE flow_use.resource_id = $1 AND flow.deleted_at \
         IS NULL ORDER BY flow.name LIMIT 100";

    /// Names of deployed flows that use the resource, at most eleven.
    fn users(resource_id: &str) -> Vec<String> =
        "SELECT flow.name AS name FROM flow_use JOIN flow ON flow.id = flow_use.flow_id WHERE \
         flow_use.resource_id = $1 AND flow.deleted_at IS NULL ORDER BY flow.name LIMIT 11";
}

record! {
    /// A flow that uses a resource, with its deployed definition.
    pub struct User {
        pub flow_id: FlowId as "id",
        pub name: String,
        /// Its secrets masked.
        pub yaml_config: String,
        /// As it was written, sealed; `None` when that is `yaml_config`.
        pub sealed_config: Option<Vec<u8>>,
    }
}
