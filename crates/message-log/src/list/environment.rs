//! Lists of an environment's messages, over all of its flows, the last of the log first.
//!
//! Dead letters and retries have an index by environment. Other messages are found by a scan of the
//! log in bounded stretches.

use kanat_model::id::FlowId;

use crate::dialect::{Dialect, Statement};
use crate::row::{self, Columns, PAGE};
use crate::walk::{Walk, too_old};
use crate::{EnvironmentFilter, MessagePage, Position};

/// Condition of the index, in the same words, because the databases would not use it otherwise.
const FAILING: &str = "m.status IN ('dead_letter', 'retrying')";

/// Reads a page and a bounded count of the list. The caller has checked the search.
pub(crate) async fn page<D: Dialect>(
    snapshot: &mut D::Connection,
    filter: &EnvironmentFilter,
    position: Position,
) -> sqlx::Result<MessagePage> {
    let mut all = Walk::for_total();
    run::<D>(snapshot, filter, &mut all).await?;
    let mut walk = Walk::for_page(position);
    run::<D>(snapshot, filter, &mut walk).await?;
    let mut page = walk.page();
    let sizes = select::<D>(D::SIZES, &page.found).rows(snapshot).await?;
    page.fit(&row::all(&sizes, row::size)?);
    let rows = select::<D>(PAGE, &page.found).rows(snapshot).await?;
    Ok(page.with(row::all(&rows, row::message)?, &all))
}

async fn run<D: Dialect>(
    conn: &mut D::Connection,
    filter: &EnvironmentFilter,
    walk: &mut Walk,
) -> sqlx::Result<()> {
    while let Some((stretch, wanted)) = walk.next(filter) {
        let row = floor::<D>(filter, walk.before, stretch).row(conn).await?;
        walk.ended = row.number("messages")? < stretch;
        let Some(floor) = row.optional_number("floor")? else {
            return Ok(());
        };
        let rows = matches::<D>(filter, floor, walk.before, wanted)
            .rows(conn)
            .await?;
        let found = row::all(&rows, |row| row.number("seq"))?;
        if found.is_empty()
            && let Some(mut recent) = recent::<D>(filter, floor, walk.before)
            && !recent.row(conn).await?.flag("found")?
        {
            walk.ended = true;
        }
        walk.take(floor, found);
    }
    Ok(())
}

/// Returns the statement for the last message of a stretch, and the number of messages in it.
pub(crate) fn floor<D: Dialect>(
    filter: &EnvironmentFilter,
    before: i64,
    stretch: i64,
) -> Statement<D> {
    let mut query =
        Statement::new("SELECT min(seq) AS floor, count(*) AS messages FROM (SELECT m.seq");
    query.push(messages::<D>(filter));
    below(&mut query, filter, before);
    query
        .number(" ORDER BY m.seq DESC LIMIT ", stretch)
        .push(") AS stretch");
    query
}

/// Returns the statement for the messages of a stretch that match the filter.
pub(crate) fn matches<D: Dialect>(
    filter: &EnvironmentFilter,
    floor: i64,
    before: i64,
    wanted: i64,
) -> Statement<D> {
    let mut query = Statement::new("SELECT m.seq");
    query.push(messages::<D>(filter));
    if filter.search.is_some() {
        query.push(D::BODIES);
    }
    below(&mut query, filter, before);
    query.number(" AND m.seq >= ", floor).tenant(&filter.tenant);
    if let Some(flow_id) = &filter.flow_id {
        query.text(D::FLOW, flow_id.as_str());
    }
    if !filter.statuses.is_empty() {
        let statuses: Vec<&str> = filter
            .statuses
            .iter()
            .map(|status| status.as_str())
            .collect();
        query.push(" AND ");
        status(&mut query, &filter.paused);
        D::one_of(&mut query.0, &statuses);
    }
    query.received(filter.since, filter.until);
    if let Some(text) = &filter.search {
        D::search(&mut query, text);
    }
    query.number(" ORDER BY m.seq DESC LIMIT ", wanted);
    query
}

/// Writes the status of a message, which is held where it waits and its flow is paused.
fn status<D: Dialect>(query: &mut Statement<D>, paused: &[FlowId]) {
    if paused.is_empty() {
        query.push("m.status");
        return;
    }
    let paused: Vec<&str> = paused.iter().map(FlowId::as_str).collect();
    query.push("CASE WHEN m.status IN ('received', 'retrying') AND m.flow_id");
    D::one_of_set(&mut query.0, &paused);
    query.push(" THEN 'held' ELSE m.status END");
}

/// Returns the statement that finds whether a stretch has a message within the filter's time.
fn recent<D: Dialect>(filter: &EnvironmentFilter, floor: i64, before: i64) -> Option<Statement<D>> {
    let too_old = too_old(filter)?;
    let mut query = Statement::new("SELECT EXISTS (SELECT 1");
    query.push(messages::<D>(filter));
    below(&mut query, filter, before);
    query
        .number(" AND m.seq >= ", floor)
        .number(" AND m.received_at >= ", too_old.as_millis())
        .push(") AS found");
    Some(query)
}

fn messages<D: Dialect>(filter: &EnvironmentFilter) -> &'static str {
    match filter.is_failing() {
        true => D::FAILING,
        false => D::LOG,
    }
}

/// Writes the conditions on sequence numbers, and those that an index decides.
fn below<D: Dialect>(query: &mut Statement<D>, filter: &EnvironmentFilter, before: i64) {
    query.number(" WHERE m.seq < ", before);
    if filter.is_failing() {
        query.push(" AND ").push(FAILING).text(
            " AND m.environment_id = ",
            filter.tenant.environment_id.as_str(),
        );
    }
}

/// Returns the statement for `columns` of these messages, the last of the log first.
pub(crate) fn select<D: Dialect>(columns: &'static str, numbers: &[i64]) -> Statement<D> {
    let mut query = Statement::new(columns);
    query.push(D::LOG).push(D::BODIES).push(" WHERE m.seq");
    D::one_of_numbers(&mut query.0, numbers);
    query.push(" ORDER BY m.seq DESC");
    query
}
