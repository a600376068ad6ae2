//! Lists of an environment's messages, over all of its flows, the last of the log first.
//!
//! Dead letters and retries have an index by environment. Other messages are found by a scan of the
//! log in bounded stretches.

use kanat_model::id::FlowId;
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Row, Sqlite, SqlitePool};

use super::list::{PAGE, SIZES, search};
use crate::list::check_search;
use crate::walk::{Walk, too_old};
use crate::{EnvironmentFilter, Error, MessagePage, Position, row};

/// Condition of the index, in the same words, because SQLite would not use it otherwise.
const FAILING: &str = "m.status IN ('dead_letter', 'retrying')";

pub(super) async fn list(
    reader: &SqlitePool,
    filter: &EnvironmentFilter,
    position: Position,
) -> Result<MessagePage, Error> {
    check_search(filter.search.as_deref())?;
    let mut snapshot = reader.begin().await?;
    let mut all = Walk::for_total();
    run(&mut snapshot, filter, &mut all).await?;
    let mut walk = Walk::for_page(position);
    run(&mut snapshot, filter, &mut walk).await?;
    let mut page = walk.page();
    let sizes = of(SIZES, &page.found)
        .build()
        .fetch_all(&mut *snapshot)
        .await?;
    page.fit(&row::all(&sizes, row::size)?);
    let rows = of(PAGE, &page.found)
        .build()
        .fetch_all(&mut *snapshot)
        .await?;
    snapshot.commit().await?;
    Ok(page.with(row::all(&rows, row::message)?, &all))
}

async fn run(
    conn: &mut SqliteConnection,
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
            && let Some(mut recent) = recent(filter, floor, walk.before)
            && !recent
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

/// Returns the query for the last message of a stretch, and the number of messages in it.
pub(super) fn floor(filter: &EnvironmentFilter, before: i64, stretch: i64) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new("SELECT min(seq), count(*) FROM (SELECT m.seq");
    query.push(messages(filter));
    below(&mut query, filter, before);
    query
        .push(" ORDER BY m.seq DESC LIMIT ")
        .push_bind(stretch)
        .push(") AS stretch");
    query
}

/// Returns the query for the messages of a stretch that match the filter.
pub(super) fn matches(
    filter: &EnvironmentFilter,
    floor: i64,
    before: i64,
    wanted: i64,
) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new("SELECT m.seq");
    query.push(messages(filter));
    if filter.search.is_some() {
        query.push(" CROSS JOIN bodies AS b ON b.seq = m.seq");
    }
    below(&mut query, filter, before);
    query.push(" AND m.seq >= ").push_bind(floor);
    query
        .push(" AND m.environment_id = ")
        .push_bind(filter.tenant.environment_id.as_str().to_owned());
    query
        .push(" AND m.account_id = ")
        .push_bind(filter.tenant.account_id.as_str().to_owned());
    if let Some(flow_id) = &filter.flow_id {
        query
            .push(" AND m.flow_id = ")
            .push_bind(flow_id.as_str().to_owned());
    }
    if !filter.statuses.is_empty() {
        query.push(" AND ");
        status(&mut query, &filter.paused);
        query.push(" IN (");
        let mut list = query.separated(", ");
        for status in &filter.statuses {
            list.push_bind(status.as_str());
        }
        query.push(")");
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
fn status(query: &mut QueryBuilder<Sqlite>, paused: &[FlowId]) {
    if paused.is_empty() {
        query.push("m.status");
        return;
    }
    let paused: Vec<&str> = paused.iter().map(FlowId::as_str).collect();
    let paused = serde_json::json!(paused).to_string();
    query.push(
        "CASE WHEN m.status IN ('received', 'retrying') AND m.flow_id IN (SELECT value \
                FROM json_each(",
    );
    query
        .push_bind(paused)
        .push(")) THEN 'held' ELSE m.status END");
}

/// Returns the query that finds whether a stretch has a message within the filter's time.
fn recent(filter: &EnvironmentFilter, floor: i64, before: i64) -> Option<QueryBuilder<Sqlite>> {
    let too_old = too_old(filter)?;
    let mut query = QueryBuilder::new("SELECT EXISTS (SELECT 1");
    query.push(messages(filter));
    below(&mut query, filter, before);
    query.push(" AND m.seq >= ").push_bind(floor);
    query
        .push(" AND m.received_at >= ")
        .push_bind(too_old.as_millis())
        .push(")");
    Some(query)
}

fn messages(filter: &EnvironmentFilter) -> &'static str {
    match filter.is_failing() {
        true => " FROM messages AS m INDEXED BY messages_failing",
        false => " FROM messages AS m NOT INDEXED",
    }
}

/// Writes the conditions on sequence numbers, and those that an index decides.
fn below(query: &mut QueryBuilder<Sqlite>, filter: &EnvironmentFilter, before: i64) {
    query.push(" WHERE m.seq < ").push_bind(before);
    if filter.is_failing() {
        query.push(" AND ").push(FAILING);
        query
            .push(" AND m.environment_id = ")
            .push_bind(filter.tenant.environment_id.as_str().to_owned());
    }
}

/// Returns the query for `columns` of these messages, the last of the log first.
pub(super) fn of(columns: &'static str, numbers: &[i64]) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(columns);
    query.push(
        " FROM messages AS m NOT INDEXED CROSS JOIN bodies AS b ON b.seq = m.seq WHERE m.seq IN (",
    );
    let mut list = query.separated(", ");
    for number in numbers {
        list.push_bind(*number);
    }
    query.push(") ORDER BY m.seq DESC");
    query
}
