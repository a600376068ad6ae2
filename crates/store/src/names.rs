//! The names that an environment has for definitions to name, in one statement: deploys wait for
//! each other while they are read.

use kanat_model::id::{AdapterId, EnvironmentId, InstanceId, LookupTableId};
use sqlx::any::AnyRow;

use crate::Error;
use crate::record::{FromRow, RowExt};
use crate::statement::statements;

/// Something that has a name, which is unique among its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedResource {
    Instance { id: InstanceId, catalog_id: String },
    Table(LookupTableId),
    Adapter(AdapterId),
}

statements! {
    /// All of the environment, with their names, in no order.
    fn of(environment: &EnvironmentId) -> Vec<(String, NamedResource)> =
        "SELECT name, 'instance' AS kind, id, catalog_id FROM connector_instance WHERE \
         environment_id = $1 AND deleted_at IS NULL UNION ALL SELECT name, 'table' AS kind, id, '' \
         AS catalog_id FROM lookup_table WHERE environment_id = $1 AND deleted_at IS NULL UNION \
         ALL SELECT name, 'adapter' AS kind, id, '' AS catalog_id FROM adapter WHERE \
         environment_id = $1 AND deleted_at IS NULL";
}

impl FromRow for NamedResource {
    fn read(row: &AnyRow, _: usize) -> Result<Self, Error> {
        let kind: String = row.column("kind")?;
        Ok(match kind.as_str() {
            "instance" => Self::Instance {
                id: row.column("id")?,
                catalog_id: row.column("catalog_id")?,
            },
            "table" => Self::Table(row.column("id")?),
            "adapter" => Self::Adapter(row.column("id")?),
            _ => return Err(Error::corrupt("kind", kind)),
        })
    }
}
