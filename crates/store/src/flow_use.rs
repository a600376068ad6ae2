//! Resources that a deployed flow reads or calls, so that none is deleted under it, and those that
//! it used in earlier versions, under which messages may wait.

use kanat_model::id::{AccountId, EnvironmentId, FlowId};

use crate::record::record;
use crate::statement::statements;
use crate::{Db, Error};

const CLEAR: &str = "DELETE FROM flow_use WHERE flow_id = $1";
const INSERT: &str =
    "INSERT INTO flow_use (flow_id, resource_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";

const NOTE_FORMER: &str = "INSERT INTO former_flow_use (flow_id, resource_id, last_version) \
                           SELECT flow_id, resource_id, $2 FROM flow_use WHERE flow_id = $1 ON \
                           CONFLICT (flow_id, resource_id) DO UPDATE SET last_version = \
                           excluded.last_version";

/// Says anew what the flow uses from `version` on, such as `lookup_table/<id>`; nothing when it is
/// no longer deployed. What it used before is noted as used up to the version before.
pub async fn replace(
    db: &mut Db,
    flow: &FlowId,
    version: u32,
    resource_ids: &[String],
) -> Result<(), Error> {
    db.execute(NOTE_FORMER, &[flow, &version.saturating_sub(1)])
        .await?;
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

    /// Returns the flows that have used the resource in an earlier version, by their names.
    fn former(resource_id: &str) -> Vec<FormerUser> =
        "SELECT flow.id AS id, flow.account_id AS account_id, flow.environment_id AS \
         environment_id, flow.name AS name, former_flow_use.last_version AS last_version FROM \
         former_flow_use JOIN flow ON flow.id = former_flow_use.flow_id WHERE \
         former_flow_use.resource_id = $1 AND flow.deleted_at IS NULL ORDER BY flow.name";
}

record! {
    /// A flow that has used a resource in an earlier version.
    pub struct FormerUser {
        pub flow_id: FlowId as "id",
        pub account_id: AccountId,
        pub environment_id: EnvironmentId,
        pub name: String,
        /// Latest version that has used it.
        pub last_version: u32,
    }
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
