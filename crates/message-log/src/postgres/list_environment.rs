//! Lists of an environment's messages, over all of its flows, the last of the log first.
//!
//! Dead letters and retries have an index by environment. Everything else is found by walking down
//! the log.

use kanat_model::id::FlowId;
use sqlx::{PgConnection, PgPool, Postgres, QueryBuilder, Row};

use super::append::each;
use super::begin;
use super::failure::outward;
use super::list::{PAGE, SIZES, owned, search};
use crate::list::check_search;
use crate::walk::{Walk, too_old};
use crate::{EnvironmentFilter, Error, MessagePage, Position, row};

/// In the words of the index, or it would not be used.
const FAILING: &str = "m.status IN ('dead_letter', 'retrying')";

pub(super) async fn list(
    reader: &PgPool,
    filter: &EnvironmentFilter,
    position: Position,
) -> Result<MessagePage, Error> {
    check_search(filter.search.as_deref())?;
    read(reader, filter, position).await.map_err(outward)
}

async fn read(
    reader: &PgPool,
    filter: &EnvironmentFilter,
    position: Position,
) -> Result<MessagePage, sqlx::Error> {
    let mut snapshot = begin::snapshot(reader).await?;
    let mut all = Walk::for_total();
    run(&mut snapshot, filter, &mut all).await?;
    let mut walk = Walk::for_page(position);
    run(&mut snapshot, filter, &mut walk).await?;
    let mut page = walk.page();
    let sizes = select(SIZES, &page.found)
        .build()
        .fetch_all(&mut *snapshot)
        .await?;
    page.fit(&row::all(&sizes, row::size)?);
    let rows = select(PAGE, &page.found)
        .build()
        .fetch_all(&mut *snapshot)
        .await?;
    snapshot.commit().await?;
    Ok(page.with(row::all(&rows, row::message)?, &all))
}

async fn run(
    conn: &mut PgConnection,
    filter: &EnvironmentFilter,
    walk: &mut Walk,
) -> Result<(), sqlx::Error> {
    while let Some((stretch, wanted)) = walk.next(filter) {
        let row = floor(filter, walk.before, stretch)
            .build()
            .fetch_one(&mut *conn)
            .await?;
        walk.ended = row.try_get::<i64, _>(1)? < stretch;
        let Some(floor) = row.try_get::<Option<i64>, _>(0)? else {
            return Ok(());
        };
        let rows = matches(filter, floor, walk.before, wanted)
            .build()
            .fetch_all(&mut *conn)
            .await?;
        let found = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<Vec<i64>, _>>()?;
        if found.is_empty()
            && let Some(mut young) = young(filter, floor, walk.before)
            && !young
                .build()
                .fetch_one(&mut *conn)
                .await?
                .try_get::<bool, _>(0)?
        {
            walk.ended = true;
        }
        walk.take(floor, found);
    }
    Ok(())
}

/// Returns the statement for the last message of a stretch and the number of its messages.
pub(super) fn floor(
    filter: &EnvironmentFilter,
    before: i64,
    stretch: i64,
) -> QueryBuilder<Postgres> {
    let mut query =
        QueryBuilder::new("SELECT min(seq), count(*) FROM (SELECT m.seq FROM messages AS m");
    below(&mut query, filter, before);
    query
        .push(" ORDER BY m.seq DESC LIMIT ")
        .push_bind(stretch)
        .push(") AS stretch");
    query
}

/// Returns the statement for the messages of a stretch that the filter finds.
pub(super) fn matches(
    filter: &EnvironmentFilter,
    floor: i64,
    before: i64,
    wanted: i64,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("SELECT m.seq FROM messages AS m");
    if filter.search.is_some() {
        query.push(" JOIN bodies AS b ON b.seq = m.seq");
    }
    below(&mut query, filter, before);
    query.push(" AND m.seq >= ").push_bind(floor);
    query
        .push(" AND m.environment_id = ")
        .push_bind(owned(filter.tenant.environment_id.as_str()));
    query
        .push(" AND m.account_id = ")
        .push_bind(owned(filter.tenant.account_id.as_str()));
    if let Some(flow_id) = &filter.flow_id {
        // Not as it is indexed, which is not in the order of the log.
        query
            .push(" AND m.flow_id || '' = ")
            .push_bind(owned(flow_id.as_str()));
    }
    if !filter.statuses.is_empty() {
        let statuses = each(&filter.statuses, |status| status.as_str());
        query.push(" AND ");
        status(&mut query, &filter.paused);
        query.push(" = ANY(").push_bind(statuses).push(")");
    }
    if let Some(since) = filter.since {
        query
            .push(" AND m.received_at >= ")
            .push_bind(since.as_millis());
    }
    if let Some(until) = filter.until {
        query
            .push(" AND m.received_at < ")
            .push_bind(until.as_millis());
    }
    if let Some(text) = &filter.search {
        search(&mut query, text);
    }
    query.push(" ORDER BY m.seq DESC LIMIT ").push_bind(wanted);
    query
}

/// Writes the status of a message, which is held where it waits and its flow is paused.
fn status(query: &mut QueryBuilder<Postgres>, paused: &[FlowId]) {
    if paused.is_empty() {
        query.push("m.status");
        return;
    }
    let paused = each(paused, |id| owned(id.as_str()));
    query
        .push("CASE WHEN m.status IN ('received', 'retrying') AND m.flow_id = ANY(")
        .push_bind(paused);
    query.push(") THEN 'held' ELSE m.status END");
}

/// Returns the statement that tells whether a stretch has a message that is not too old.
fn young(filter: &EnvironmentFilter, floor: i64, before: i64) -> Option<QueryBuilder<Postgres>> {
    let too_old = too_old(filter)?;
    let mut query = QueryBuilder::new("SELECT EXISTS (SELECT 1 FROM messages AS m");
    below(&mut query, filter, before);
    query.push(" AND m.seq >= ").push_bind(floor);
    query
        .push(" AND m.received_at >= ")
        .push_bind(too_old.as_millis())
        .push(")");
    Some(query)
}

/// Writes the condition for messages before a sequence number, as an index or the log orders them.
fn below(query: &mut QueryBuilder<Postgres>, filter: &EnvironmentFilter, before: i64) {
    query.push(" WHERE m.seq < ").push_bind(before);
    if filter.is_failing() {
        query.push(" AND ").push(FAILING);
        query
            .push(" AND m.environment_id = ")
            .push_bind(owned(filter.tenant.environment_id.as_str()));
    }
}

/// Returns the statement for `columns` of these messages, newest first.
pub(super) fn select(columns: &'static str, numbers: &[i64]) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(columns);
    query.push(" FROM messages AS m JOIN bodies AS b ON b.seq = m.seq WHERE m.seq = ANY(");
    query
        .push_bind(numbers.to_vec())
        .push(") ORDER BY m.seq DESC");
    query
}
