//! Flows: the draft, where it stands, and its last deployed version. Deleted rows stay; nothing
//! reads them as flows.

use std::iter;

use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{AccountId, EnvironmentId, FlowId};
use kanat_model::page::{ListPage, Page};
use sqlx::AssertSqlSafe;

use crate::column::Value;
use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Error, Result, flow_text, search, search_entry};

record! {
    pub struct Flow in "flow" {
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
        /// Summary of the draft's changes, for its next version.
        pub change_summary: String,
        /// The sealed webhook token, from the first definition with a webhook on.
        pub webhook_token: Option<Vec<u8>>,
        /// Grows with every change of the row.
        pub revision: u64,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    } read {
        /// True while the definition differs from the deployed one, and before the first deploy.
        /// Derived by each read, and not written.
        pub draft: bool,
    }
}

/// Filter of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub status: Option<Status>,
    /// Looked for in name and description; empty finds everything.
    pub search: String,
}

/// A statement that reads flows.
macro_rules! select {
    ($rest:literal) => {
        sql!(
            Flow,
            concat!(
                "SELECT {COLUMNS}, CASE WHEN EXISTS (SELECT 1 FROM flow_version v WHERE v.flow_id \
                 = flow.id AND v.version = flow.version AND v.yaml_config = flow.yaml_config AND \
                 (v.sealed_config = flow.sealed_config OR v.sealed_config IS NULL AND \
                 flow.sealed_config IS NULL)) THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END \
                 AS draft FROM flow WHERE environment_id = $1 AND deleted_at IS NULL ",
                $rest
            )
        )
    };
}

/// Errors when the environment has a flow of that name.
pub async fn insert(db: &mut Db, flow: &Flow) -> Result<()> {
    db.insert(flow)
        .await
        .map_err(Error::taken("flow", &flow.name))?;
    flow_text::write(db, flow).await?;
    search_entry::update(db, flow.id.as_str()).await
}

statements! {
    fn get(environment: &EnvironmentId, id: &FlowId) -> Option<Flow> = select!("AND id = $2");

    /// The environment's flow of that id or name.
    fn find(environment: &EnvironmentId, id_or_name: &str) -> Option<Flow> =
        select!("AND (id = $2 OR name = $2) ORDER BY id LIMIT 1");

    /// Reads the ids of the environment's paused flows, in their order.
    fn paused(environment: &EnvironmentId) -> Vec<FlowId> =
        "SELECT id FROM flow WHERE environment_id = $1 AND status = 'paused' AND deleted_at IS \
         NULL ORDER BY id";

    /// Reads the ids of the environment's flows, with those of deleted ones.
    fn ids(environment: &EnvironmentId) -> Vec<FlowId> =
        "SELECT id FROM flow WHERE environment_id = $1 ORDER BY id";
}

const DELETE: &str = "UPDATE flow SET deleted_at = $3, revision = revision + 1 WHERE \
                      environment_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Deletes a flow; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &FlowId,
    at: Timestamp,
) -> Result<bool> {
    let existed = db.changes(DELETE, &[environment, id, &at]).await?;
    flow_text::delete(db, environment, id).await?;
    search_entry::update(db, id.as_str()).await?;
    Ok(existed)
}

const EXISTS: &str = "SELECT COUNT(*) AS total FROM flow WHERE id = $1 AND deleted_at IS NULL";

/// Returns whether the flow exists, in whatever environment.
pub async fn exists(db: &mut Db, id: &FlowId) -> Result<bool> {
    Ok(db.one::<u64>(EXISTS, &[id]).await? > 0)
}

/// Statements of a list, which read an index or a narrow table alone.
struct Selection {
    /// How many of environment, status and text the statements bind.
    values: usize,
    count: &'static str,
    /// Counts those that are older than the flow of the last value.
    count_older: &'static str,
    newest_first: &'static str,
    oldest_first: &'static str,
}

macro_rules! selection {
    ($values:literal, $id:literal, $from:literal, $older:literal, $part:literal) => {
        Selection {
            values: $values,
            count: concat!("SELECT COUNT(*) AS total ", $from),
            count_older: concat!("SELECT COUNT(*) AS total ", $from, " AND ", $id, $older),
            newest_first: selection!(ids: $id, $from, " DESC ", $part),
            oldest_first: selection!(ids: $id, $from, " ", $part),
        }
    };
    (ids: $id:literal, $from:literal, $order:literal, $part:literal) => {
        concat!("SELECT ", $id, " ", $from, " ORDER BY ", $id, $order, $part)
    };
}

const ALL: Selection = selection!(
    1,
    "id",
    "FROM flow WHERE environment_id = $1 AND deleted_at IS NULL",
    " < $2",
    "LIMIT $2 OFFSET $3"
);
const IN_STATUS: Selection = selection!(
    2,
    "id",
    "FROM flow WHERE environment_id = $1 AND status = $2 AND deleted_at IS NULL",
    " < $3",
    "LIMIT $3 OFFSET $4"
);
const WITH_TEXT: Selection = selection!(
    3,
    "flow_id",
    "FROM flow_text WHERE environment_id = $1 AND ($2 = '' OR status = $2) AND (instr(name, $3) > \
     0 OR instr(description, $3) > 0)",
    " < $4",
    "LIMIT $4 OFFSET $5"
);

/// The environment's flows, newest first.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    filter: &Filter,
    page: Page,
) -> Result<ListPage<Flow>> {
    let text = search::ignoring_case(&filter.search)?;
    let status = filter.status.map_or("", Status::as_str);
    let all: [&dyn Value; 3] = [environment, &status, &text];
    let selection = match (text.is_empty(), filter.status) {
        (true, None) => ALL,
        (true, Some(_)) => IN_STATUS,
        (false, _) => WITH_TEXT,
    };
    let values = &all[..selection.values];
    let (ids, total) = if page.offset == 0 {
        first_page(db, &selection, values, page.limit).await?
    } else {
        let count = search::statement(db, selection.count);
        let total = db.one(count, values).await?;
        let ids = page_of_ids(db, &selection, values, total, page).await?;
        (ids, total)
    };
    let items = with_ids(db, environment, &ids).await?;
    Ok(ListPage { items, total, page })
}

/// Reads the ids of the first page and how many there are in all. Only those behind the page are
/// counted, so that a search looks at each flow once.
async fn first_page(
    db: &mut Db,
    selection: &Selection,
    values: &[&dyn Value],
    limit: u32,
) -> Result<(Vec<FlowId>, u64)> {
    let ids = read_ids(db, selection.newest_first, values, limit, 0).await?;
    let read = ids.len() as u64;
    let Some(last) = ids.last().filter(|_| read == u64::from(limit)) else {
        return Ok((ids, read));
    };
    let count = search::statement(db, selection.count_older);
    let last: [&dyn Value; 1] = [last];
    let older: u64 = db.one(count, &[values, &last].concat()).await?;
    Ok((ids, read + older))
}

/// Reads the ids of a page of `total` ones, from the end of the list that is nearer.
async fn page_of_ids(
    db: &mut Db,
    selection: &Selection,
    values: &[&dyn Value],
    total: u64,
    page: Page,
) -> Result<Vec<FlowId>> {
    let after = total.saturating_sub(u64::from(page.offset) + u64::from(page.limit));
    if u64::from(page.offset) <= after {
        return read_ids(db, selection.newest_first, values, page.limit, page.offset).await;
    }
    let length = total.saturating_sub(u64::from(page.offset));
    let limit = u32::try_from(length).unwrap_or(page.limit).min(page.limit);
    let after = u32::try_from(after).unwrap_or(u32::MAX);
    let mut ids = read_ids(db, selection.oldest_first, values, limit, after).await?;
    ids.reverse();
    Ok(ids)
}

async fn read_ids(
    db: &mut Db,
    statement: &'static str,
    values: &[&dyn Value],
    limit: u32,
    offset: u32,
) -> Result<Vec<FlowId>> {
    let part: [&dyn Value; 2] = [&limit, &offset];
    let statement = search::statement(db, statement);
    db.all(statement, &[values, &part].concat()).await
}

/// Flows that are read at a time. Their statements have this many ids, so that one stays prepared.
const FLOWS_AT_ONCE: usize = 50;

const WITH_IDS: &str = select!("AND id IN ");

/// Reads flows, newest first.
async fn with_ids(db: &mut Db, environment: &EnvironmentId, ids: &[FlowId]) -> Result<Vec<Flow>> {
    // Holds placeholders only; every value is bound.
    let placeholders: Vec<String> = (2..FLOWS_AT_ONCE + 2).map(|n| format!("${n}")).collect();
    let text = format!("{WITH_IDS}({}) ORDER BY id DESC", placeholders.join(", "));
    let mut flows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(FLOWS_AT_ONCE) {
        let mut values: Vec<&dyn Value> = vec![environment];
        // The last chunk repeats its first id.
        let repeated = iter::repeat(&ids[0]);
        for id in ids.iter().chain(repeated).take(FLOWS_AT_ONCE) {
            values.push(id);
        }
        flows.extend(db.all::<Flow>(AssertSqlSafe(text.clone()), &values).await?);
    }
    Ok(flows)
}

const UPDATE: &str = sql!(
    Flow,
    "UPDATE flow SET name = {name}, description = {description}, status = {status}, version = \
     {version}, trigger_kind = {trigger_kind}, yaml_config = {yaml_config}, sealed_config = \
     {sealed_config}, change_summary = {change_summary}, webhook_token = {webhook_token}, \
     revision = revision + 1, updated_at = {updated_at} WHERE id = {id} AND revision = {revision} \
     AND deleted_at IS NULL"
);

/// Writes what may change, as the next revision. Errors when the row is no longer at
/// `flow.revision`, and when another flow of the environment has the name.
pub async fn update(db: &mut Db, flow: &mut Flow) -> Result<()> {
    let done = db
        .execute(UPDATE, &flow.values())
        .await
        .map_err(Error::taken("flow", &flow.name))?;
    Error::check_changed(done, "flow", &flow.id)?;
    flow.revision += 1;
    flow_text::write(db, flow).await?;
    search_entry::update(db, flow.id.as_str()).await
}

record! {
    /// A definition that is not sealed: a draft, or a version where there is a number.
    pub struct UnsealedDefinition {
        pub flow_id: FlowId,
        /// 0 for the draft.
        pub version: u32,
        pub yaml_config: String,
    }
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
) -> Result<Vec<UnsealedDefinition>> {
    let (flow, version) = after;
    db.all(UNSEALED, &[flow, &version, &limit]).await
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
) -> Result<()> {
    let statement = if plain.version == 0 {
        SEAL_DRAFT
    } else {
        SEAL_VERSION
    };
    db.run(
        statement,
        &[
            &plain.flow_id,
            &plain.version,
            &plain.yaml_config,
            &masked,
            &sealed,
        ],
    )
    .await?;
    search_entry::update(db, plain.flow_id.as_str()).await
}
