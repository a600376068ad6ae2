//! The names that an environment has for definitions to name, in one statement: deploys wait for
//! each other while they are read.

use kanat_model::id::{AdapterId, EnvironmentId, InstanceId, LookupTableId};

use crate::row::RowExt;
use crate::{Db, Error};

/// Something that has a name, which is unique among its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedResource {
    Instance { id: InstanceId, catalog_id: String },
    Table(LookupTableId),
    Adapter(AdapterId),
}

const OF: &str = "SELECT 'instance' AS kind, id, name, catalog_id FROM connector_instance \
    WHERE environment_id = $1 AND deleted_at IS NULL \
    UNION ALL SELECT 'table' AS kind, id, name, '' AS catalog_id FROM lookup_table \
    WHERE environment_id = $1 AND deleted_at IS NULL \
    UNION ALL SELECT 'adapter' AS kind, id, name, '' AS catalog_id FROM adapter \
    WHERE environment_id = $1 AND deleted_at IS NULL";

/// All of the environment, with their names, in no order.
pub async fn of(
    db: &mut Db,
    environment: &EnvironmentId,
) -> Result<Vec<(String, NamedResource)>, Error> {
    let rows = sqlx::query(OF)
        .bind(environment.as_str())
        .fetch_all(db)
        .await?;
    let named = rows.iter().map(|row| {
        let named = match row.text("kind")?.as_str() {
            "instance" => NamedResource::Instance {
                id: row.id("id")?,
                catalog_id: row.text("catalog_id")?,
            },
            "table" => NamedResource::Table(row.id("id")?),
            "adapter" => NamedResource::Adapter(row.id("id")?),
            other => {
                return Err(Error::Corrupt {
                    column: "kind",
                    value: other.to_owned(),
                });
            }
        };
        Ok((row.text("name")?, named))
    });
    named.collect()
}
