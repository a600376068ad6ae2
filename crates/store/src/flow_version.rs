//! Deployed versions of flows. They are written once.

use kanat_model::Timestamp;
use kanat_model::audit::PrincipalType;
use kanat_model::id::{EnvironmentId, FlowId};
use sqlx::any::AnyRow;

use crate::record::{FromRow, RowExt, record};
use crate::statement::{lists, statements};
use crate::{Db, Result};

record! {
    pub struct FlowVersion in "flow_version" {
        pub flow_id: FlowId,
        /// From 1.
        pub version: u32,
        /// Its secrets masked.
        pub yaml_config: String,
        /// As it was written, sealed; `None` when that is `yaml_config`.
        pub sealed_config: Option<Vec<u8>>,
        pub change_summary: String,
        pub created_at: Timestamp,
        /// Caller that has deployed it; type and id are `None` for versions of builds that did not
        /// note them. Then it was an API key.
        pub created_by_type: Option<PrincipalType>,
        pub created_by_id: Option<String>,
        pub created_by_name: String as "created_by",
    }
}

statements! {
    fn insert(..version: &FlowVersion);

    fn get(flow: &FlowId, version: u32) -> Option<FlowVersion> =
        "SELECT {COLUMNS} FROM flow_version WHERE flow_id = $1 AND version = $2";
}

/// A version that is deployed, with what its flow says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub version: FlowVersion,
    pub environment_id: EnvironmentId,
    pub flow_name: String,
}

impl FromRow for Running {
    fn read(row: &AnyRow, _: usize) -> Result<Self> {
        Ok(Self {
            version: FlowVersion::read(row, 0)?,
            environment_id: row.column("environment_id")?,
            flow_name: row.column("name")?,
        })
    }
}

const RUNNING: &str = "SELECT v.flow_id, v.version, v.yaml_config, v.sealed_config, \
                       v.change_summary, v.created_at, v.created_by_type, v.created_by_id, \
                       v.created_by, flow.environment_id AS environment_id, flow.name AS name \
                       FROM flow JOIN flow_version v ON v.flow_id = flow.id AND v.version = \
                       flow.version WHERE flow.deleted_at IS NULL AND flow.id > $1 AND \
                       v.yaml_config LIKE $2 ORDER BY flow.id LIMIT $3";

/// Returns deployed versions of all environments whose definition has `word` in it, in order of
/// their flows' ids, after the flow `after`.
pub async fn running(db: &mut Db, word: &str, after: &FlowId, limit: u32) -> Result<Vec<Running>> {
    db.all(RUNNING, &[after, &format!("%{word}%"), &limit])
        .await
}

lists! {
    /// The flow's versions, newest first.
    fn list(flow: &FlowId) -> FlowVersion =
        "FROM flow_version WHERE flow_id = $1",
        "ORDER BY version DESC LIMIT $2 OFFSET $3";
}
