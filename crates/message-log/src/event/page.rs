//! Events after one: arrivals, and changes of state.

use kanat_model::message::Status;

use crate::dialect::{Dialect, Statement};
use crate::row;
use crate::{EventPage, EventQuery};

/// Reads a page of the events up to `until`. `last` is the last event of the log.
pub(crate) async fn page<D: Dialect>(
    conn: &mut D::Connection,
    asked: &EventQuery,
    until: i64,
    last: i64,
) -> sqlx::Result<EventPage> {
    let sizes = rows::<D>(conn, |[sizes, _]| sizes, asked, until).await?;
    let sizes = row::all(&sizes, row::event_size)?;
    let Some((end, cut)) = EventPage::end(sizes, asked.limit) else {
        return Ok(EventPage {
            events: Vec::new(),
            next_after: until,
            more: until < last,
        });
    };
    let rows = rows::<D>(conn, |[_, columns]| columns, asked, end).await?;
    let next_after = if cut { end } else { until };
    row::event_page(&rows, next_after, last)
}

async fn rows<D: Dialect>(
    conn: &mut D::Connection,
    columns: fn([&'static str; 2]) -> &'static str,
    asked: &EventQuery,
    until: i64,
) -> sqlx::Result<Vec<D::Row>> {
    let mut rows = transitions::<D>(columns(D::TRANSITIONS), asked, until)
        .rows(conn)
        .await?;
    // A message arrives in one of these states.
    if matches!(asked.status, None | Some(Status::Received | Status::Held)) {
        let mut arrivals = arrivals::<D>(columns(D::ARRIVALS), asked, until);
        rows.extend(arrivals.rows(conn).await?);
    }
    Ok(rows)
}

/// Returns the statement of arrivals up to `until`.
pub(crate) fn arrivals<D: Dialect>(
    columns: &'static str,
    asked: &EventQuery,
    until: i64,
) -> Statement<D> {
    statement(columns, ["m.seq", "m.accepted_as"], asked, until)
}

/// Returns the statement of changes of state up to `until`.
pub(crate) fn transitions<D: Dialect>(
    columns: &'static str,
    asked: &EventQuery,
    until: i64,
) -> Statement<D> {
    statement(columns, ["t.seq", "t.status"], asked, until)
}

/// Reads one row more than the limit, of arrivals and of changes each, which shows whether the page
/// was cut.
fn statement<D: Dialect>(
    columns: &'static str,
    [seq, status]: [&'static str; 2],
    asked: &EventQuery,
    until: i64,
) -> Statement<D> {
    let mut query = Statement::new(columns);
    query
        .number("", asked.after)
        .push(" AND ")
        .push(seq)
        .number(" <= ", until)
        .tenant(&asked.tenant);
    if let Some(flow_id) = &asked.flow_id {
        query.text(D::FLOW, flow_id.as_str());
    }
    if let Some(wanted) = asked.status {
        query
            .push(" AND ")
            .push(status)
            .text(" = ", wanted.as_str());
    }
    let limit = i64::from(asked.limit.max(1)) + 1;
    query.push(" ORDER BY ").push(seq).number(" LIMIT ", limit);
    query
}
