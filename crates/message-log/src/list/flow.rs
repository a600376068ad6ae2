//! Lists of one flow's messages, newest first.

use crate::dialect::{Dialect, Statement};
use crate::row::{self, Columns, PAGE};
use crate::{Filter, MessagePage, Position};

pub(crate) const COUNT: &str = "SELECT count(*) AS total";

/// Sequence number of a message, which every index has.
const SEQ: &str = "SELECT m.seq";

/// Reads a page and the length of the whole list. The caller has checked the filter.
pub(crate) async fn page<D: Dialect>(
    snapshot: &mut D::Connection,
    filter: &Filter,
    position: Position,
) -> sqlx::Result<MessagePage> {
    let total = query::<D>(COUNT, filter).row(snapshot).await?;
    let limit = match position {
        Position::Page(page) => page.limit,
        Position::After { limit, .. } => limit,
    };
    // One more row than asked for shows that there is a next page.
    let sizes = select::<D>(D::SIZES, filter, position, limit.saturating_add(1))
        .rows(snapshot)
        .await?;
    let sizes = row::all(&sizes, row::size)?;
    let rows = select::<D>(PAGE, filter, position, MessagePage::fitting(&sizes, limit))
        .rows(snapshot)
        .await?;
    let messages = row::all(&rows, row::message)?;
    Ok(MessagePage::of_flow(
        messages,
        sizes.len(),
        total.number("total")?,
    ))
}

/// Returns the statement for `columns` of at most `limit` messages from `position` on.
///
/// The index has the messages of one status in the order of the list. Several statuses have to be
/// sorted: then the page is found in the index alone, and the other columns are read for it.
pub(crate) fn select<D: Dialect>(
    columns: &'static str,
    filter: &Filter,
    position: Position,
    limit: u32,
) -> Statement<D> {
    if filter.statuses.len() <= 1 {
        let mut page = query(columns, filter);
        limit_to(&mut page, position, limit);
        return page;
    }
    let mut page = Statement::new(columns);
    let [begin, end] = D::FOUND;
    page.push(D::LOG)
        .push(D::BODIES)
        .push(" WHERE m.seq")
        .push(begin);
    write(&mut page, SEQ, filter);
    limit_to(&mut page, position, limit);
    page.push(end)
        .push(" ORDER BY m.received_at DESC, m.seq DESC");
    page
}

fn limit_to<D: Dialect>(page: &mut Statement<D>, position: Position, limit: u32) {
    if let Position::After { cursor, .. } = position {
        page.number(
            " AND (m.received_at, m.seq) < (",
            cursor.received_at.as_millis(),
        )
        .number(", ", cursor.seq)
        .push(")");
    }
    page.number(
        " ORDER BY m.received_at DESC, m.seq DESC LIMIT ",
        i64::from(limit),
    );
    if let Position::Page(asked) = position {
        page.number(" OFFSET ", i64::from(asked.offset));
    }
}

/// Returns the statement for `columns` of the messages that the filter finds.
pub(crate) fn query<D: Dialect>(columns: &'static str, filter: &Filter) -> Statement<D> {
    let mut query = Statement::new("");
    write(&mut query, columns, filter);
    query
}

fn write<D: Dialect>(query: &mut Statement<D>, columns: &'static str, filter: &Filter) {
    query.push(columns);
    D::from_flow(query, filter);
    // The body is read only for its columns or for a search.
    if !matches!(columns, COUNT | SEQ) || filter.search.is_some() {
        query.push(D::BODIES);
    }
    let flow = filter.flow_id.as_str();
    query.text(" WHERE m.flow_id = ", flow);
    if columns == COUNT && filter.search.is_none() && filter.ids.is_empty() {
        // All messages of a flow are of one tenant. So one row is checked, and the index alone has
        // the others.
        let [begin, end] = D::ONE_OF_FLOW;
        query
            .text(
                " AND (SELECT f.account_id = ",
                filter.tenant.account_id.as_str(),
            )
            .text(
                " AND f.environment_id = ",
                filter.tenant.environment_id.as_str(),
            )
            .text(begin, flow)
            .push(end);
    } else {
        query.tenant(&filter.tenant);
    }
    match filter.statuses.as_slice() {
        [] => {}
        [status] => {
            query.text(" AND m.status = ", status.as_str());
        }
        several => {
            let several: Vec<&str> = several.iter().map(|status| status.as_str()).collect();
            query.push(" AND m.status");
            D::one_of(&mut query.0, &several);
        }
    }
    query.received(filter.since, filter.until);
    if let Some(version) = filter.max_version {
        query.number(" AND m.flow_version <= ", i64::from(version));
    }
    D::ids(query, filter);
    if let Some(text) = &filter.search {
        D::search(query, text);
    }
}
