//! Flows: the draft, where it stands, and its last deployed version. Deleted rows stay; nothing
//! reads them as flows.

use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{AccountId, EnvironmentId, FlowId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    pub id: FlowId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub name: String,
    pub description: String,
    pub status: Status,
    /// The last deployed version; 0 before the first deploy.
    pub version: u32,
    /// The trigger of the deployed version; of the draft before the first deploy.
    pub trigger_kind: String,
    /// The draft, its secrets masked.
    pub yaml_config: String,
    /// The draft as it was written, sealed; `None` when that is `yaml_config`.
    pub sealed_config: Option<Vec<u8>>,
    /// True while the definition differs from the deployed one, and before the first deploy.
    /// Derived by each read, and not written.
    pub draft: bool,
    /// Summary of the draft's changes, for its next version.
    pub change_summary: String,
    /// The sealed webhook token, from the first definition with a webhook on.
    pub webhook_token: Option<Vec<u8>>,
    /// Grows with every change of the row.
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Filter of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub status: Option<Status>,
    /// Looked for in name and description; empty finds everything.
    pub search: String,
}

/// Columns that are read.
const COLUMNS: &str = "id, account_id, environment_id, name, description, status, version, \
    trigger_kind, yaml_config, sealed_config, change_summary, webhook_token, revision, \
    created_at, updated_at, CASE WHEN EXISTS (SELECT 1 FROM flow_version v WHERE v.flow_id = \
    flow.id AND v.version = flow.version AND v.yaml_config = flow.yaml_config AND \
    (v.sealed_config = flow.sealed_config OR v.sealed_config IS NULL AND flow.sealed_config IS \
    NULL)) THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END AS draft";

fn read(row: &AnyRow) -> Result<Flow, Error> {
    let status = row.text("status")?;
    Ok(Flow {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        name: row.text("name")?,
        description: row.text("description")?,
        status: Status::parse(&status).ok_or(Error::Corrupt {
            column: "status",
            value: status,
        })?,
        version: row.whole("version")?,
        trigger_kind: row.text("trigger_kind")?,
        yaml_config: row.text("yaml_config")?,
        sealed_config: row.optional_bytes("sealed_config")?,
        draft: row.number("draft")? != 0,
        change_summary: row.text("change_summary")?,
        webhook_token: row.optional_bytes("webhook_token")?,
        revision: row.whole("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

const INSERT: &str = "INSERT INTO flow (id, account_id, environment_id, name, description, \
                      status, version, trigger_kind, yaml_config, sealed_config, change_summary, \
                      webhook_token, revision, created_at, updated_at) VALUES ($1, $2, $3, $4, \
                      $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// Errors when the environment has a flow of that name.
pub async fn insert(db: &mut Db, flow: &Flow) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(flow.id.as_str())
        .bind(flow.account_id.as_str())
        .bind(flow.environment_id.as_str())
        .bind(flow.name.as_str())
        .bind(flow.description.as_str())
        .bind(flow.status.as_str())
        .bind(i64::from(flow.version))
        .bind(flow.trigger_kind.as_str())
        .bind(flow.yaml_config.as_str())
        .bind(flow.sealed_config.clone())
        .bind(flow.change_summary.as_str())
        .bind(flow.webhook_token.clone())
        .bind(flow.revision.cast_signed())
        .bind(flow.created_at.as_millis())
        .bind(flow.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "flow", &flow.name))?;
    Ok(())
}

const GET: &str =
    sql!("SELECT {COLUMNS} FROM flow WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL");

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &FlowId,
) -> Result<Option<Flow>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const FIND: &str = sql!(
    "SELECT {COLUMNS} FROM flow WHERE environment_id = $1 AND (id = $2 OR name = $2) AND \
     deleted_at IS NULL ORDER BY id LIMIT 1"
);

/// The environment's flow of that id or name.
pub async fn find(
    db: &mut Db,
    environment: &EnvironmentId,
    id_or_name: &str,
) -> Result<Option<Flow>, Error> {
    let row = sqlx::query(FIND)
        .bind(environment.as_str())
        .bind(id_or_name)
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const PAUSED: &str = "SELECT id FROM flow WHERE environment_id = $1 AND status = 'paused' AND \
                      deleted_at IS NULL ORDER BY id";

/// Reads the ids of the environment's paused flows, in their order.
pub async fn paused(db: &mut Db, environment: &EnvironmentId) -> Result<Vec<FlowId>, Error> {
    let rows = sqlx::query(PAUSED)
        .bind(environment.as_str())
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.id("id")).collect()
}

const EXISTS: &str = "SELECT COUNT(*) AS total FROM flow WHERE id = $1 AND deleted_at IS NULL";

/// Returns whether the flow exists, in whatever environment.
pub async fn exists(db: &mut Db, id: &FlowId) -> Result<bool, Error> {
    Ok(sqlx::query(EXISTS)
        .bind(id.as_str())
        .fetch_one(db)
        .await?
        .number("total")?
        > 0)
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM flow WHERE environment_id = $1 AND deleted_at \
                     IS NULL AND ($2 = '' OR status = $2) AND ($3 = '' OR name GLOB $3 OR \
                     description GLOB $3)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM flow WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = '' OR \
     status = $2) AND ($3 = '' OR name GLOB $3 OR description GLOB $3) ORDER BY id DESC LIMIT $4 \
     OFFSET $5"
);

/// The environment's flows, newest first.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    filter: &Filter,
    page: Page,
) -> Result<ListPage<Flow>, Error> {
    let status = filter.status.map_or("", Status::as_str);
    let pattern = search::pattern(db, &filter.search)?;
    let total = sqlx::query(search::statement(db, COUNT))
        .bind(environment.as_str())
        .bind(status)
        .bind(pattern.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(search::statement(db, LIST))
        .bind(environment.as_str())
        .bind(status)
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

const UPDATE: &str = "UPDATE flow SET name = $3, description = $4, status = $5, version = $6, \
                      trigger_kind = $7, yaml_config = $8, sealed_config = $12, change_summary = \
                      $9, webhook_token = $10, revision = revision + 1, updated_at = $11 WHERE id \
                      = $1 AND revision = $2 AND deleted_at IS NULL";

/// Writes what may change, as the next revision. Errors when the row is no longer at
/// `flow.revision`, and when another flow of the environment has the name.
pub async fn update(db: &mut Db, flow: &mut Flow) -> Result<(), Error> {
    let done = sqlx::query(UPDATE)
        .bind(flow.id.as_str())
        .bind(flow.revision.cast_signed())
        .bind(flow.name.as_str())
        .bind(flow.description.as_str())
        .bind(flow.status.as_str())
        .bind(i64::from(flow.version))
        .bind(flow.trigger_kind.as_str())
        .bind(flow.yaml_config.as_str())
        .bind(flow.change_summary.as_str())
        .bind(flow.webhook_token.clone())
        .bind(flow.updated_at.as_millis())
        .bind(flow.sealed_config.clone())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "flow", &flow.name))?;
    if done.rows_affected() == 0 {
        return Err(Error::Changed {
            kind: "flow",
            id: flow.id.as_str().to_owned(),
        });
    }
    flow.revision += 1;
    Ok(())
}

/// A definition that is not sealed: a draft, or a version where there is a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsealedDefinition {
    pub flow_id: FlowId,
    /// 0 for the draft.
    pub version: u32,
    pub yaml_config: String,
}

const UNSEALED: &str = "SELECT flow_id, version, yaml_config FROM (SELECT id AS flow_id, CAST(0 \
                        AS BIGINT) AS version, yaml_config FROM flow WHERE sealed_config IS NULL \
                        UNION ALL SELECT flow_id, version, yaml_config FROM flow_version WHERE \
                        sealed_config IS NULL) unsealed WHERE flow_id > $1 OR flow_id = $1 AND \
                        version > $2 ORDER BY flow_id, version LIMIT $3";

/// Returns definitions of all accounts, of deleted flows too, in order of flow and version, after
/// those of `after`.
pub async fn unsealed(
    db: &mut Db,
    after: (&FlowId, i64),
    limit: u32,
) -> Result<Vec<UnsealedDefinition>, Error> {
    let (flow, version) = after;
    let rows = sqlx::query(UNSEALED)
        .bind(flow.as_str())
        .bind(version)
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    let unsealed = |row: &AnyRow| {
        Ok(UnsealedDefinition {
            flow_id: row.id("flow_id")?,
            version: row.whole("version")?,
            yaml_config: row.text("yaml_config")?,
        })
    };
    rows.iter().map(unsealed).collect()
}

const SEAL_DRAFT: &str = "UPDATE flow SET yaml_config = $4, sealed_config = $5 \
    WHERE id = $1 AND CAST($2 AS BIGINT) = 0 AND yaml_config = $3 AND sealed_config IS NULL";
const SEAL_VERSION: &str = "UPDATE flow_version SET yaml_config = $4, sealed_config = $5 \
    WHERE flow_id = $1 AND version = $2 AND yaml_config = $3 AND sealed_config IS NULL";

/// Seals a definition, unless it was changed meanwhile. The flow's revision stays: nothing changes
/// for those who read it.
pub async fn seal(
    db: &mut Db,
    plain: &UnsealedDefinition,
    masked: &str,
    sealed: &[u8],
) -> Result<(), Error> {
    let statement = if plain.version == 0 {
        SEAL_DRAFT
    } else {
        SEAL_VERSION
    };
    sqlx::query(statement)
        .bind(plain.flow_id.as_str())
        .bind(i64::from(plain.version))
        .bind(plain.yaml_config.as_str())
        .bind(masked)
        .bind(sealed.to_vec())
        .execute(db)
        .await?;
    Ok(())
}

const DELETE: &str = "UPDATE flow SET deleted_at = $3, revision = revision + 1 \
    WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Deletes a flow; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &FlowId,
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
