//! Lists of one flow's messages, newest first.

use kanat_model::id::MessageId;
use kanat_model::search::{glob, globs_in_json};
use sqlx::{Connection, QueryBuilder, Row, Sqlite, SqliteConnection};

use crate::row::{self, fixed_columns, present_columns};
use crate::{Error, Filter, MessagePage, Position};

pub(super) const COUNT: &str = "SELECT count(*)";

/// Sizes of messages, which SQLite finds without reading large values.
pub(super) const SIZES: &str = "SELECT length(CAST(coalesce(b.payload, b.raw_body) AS BLOB)) + \
                                coalesce((SELECT length(CAST(t.output AS BLOB)) FROM transitions \
                                AS t WHERE t.message = m.seq AND t.output IS NOT NULL ORDER BY \
                                t.seq DESC LIMIT 1), 0) AS bytes";

/// Sequence number of a message, which every index has.
const SEQ: &str = "SELECT m.seq";

pub(super) const PAGE: &str = concat!("SELECT ", fixed_columns!(), ", ", present_columns!());

pub(super) async fn list(
    reader: &mut SqliteConnection,
    filter: &Filter,
    position: Position,
) -> Result<MessagePage, Error> {
    filter.check()?;
    let mut snapshot = reader.begin().await?;
    let mut count = query(COUNT, filter);
    let total: i64 = count.build().fetch_one(&mut *snapshot).await?.try_get(0)?;
    let limit = match position {
        Position::Page(page) => page.limit,
        Position::After { limit, .. } => limit,
    };
    // One more row than asked for shows that there is a next page.
    let sizes = page(SIZES, filter, position, limit.saturating_add(1))
        .build()
        .fetch_all(&mut *snapshot)
        .await?;
    let sizes = row::all(&sizes, row::size)?;
    let mut page = page(PAGE, filter, position, MessagePage::fitting(&sizes, limit));
    let rows = page.build().fetch_all(&mut *snapshot).await?;
    let messages = row::all(&rows, row::message)?;
    Ok(MessagePage::of_flow(messages, sizes.len(), total))
}

/// Returns the statement for `columns` of at most `limit` messages from `position` on.
///
/// The index has the messages of one status in the order of the list. Several statuses have to be
/// sorted: then the page is found in the index alone, and the other columns are read for it.
fn page(
    columns: &'static str,
    filter: &Filter,
    position: Position,
    limit: u32,
) -> QueryBuilder<Sqlite> {
    let mut page = QueryBuilder::new("");
    if filter.statuses.len() > 1 {
        page.push(columns)
            .push(" FROM messages AS m NOT INDEXED CROSS JOIN bodies AS b ON b.seq = m.seq");
        page.push(" WHERE m.seq IN (");
        write_page(&mut page, SEQ, filter, position, limit);
        page.push(") ORDER BY m.received_at DESC, m.seq DESC");
    } else {
        write_page(&mut page, columns, filter, position, limit);
    }
    page
}

fn write_page(
    page: &mut QueryBuilder<Sqlite>,
    columns: &'static str,
    filter: &Filter,
    position: Position,
    limit: u32,
) {
    write(page, columns, filter);
    if let Position::After { cursor, .. } = position {
        page.push(" AND (m.received_at, m.seq) < (")
            .push_bind(cursor.received_at.as_millis());
        page.push(", ").push_bind(cursor.seq).push(")");
    }
    page.push(" ORDER BY m.received_at DESC, m.seq DESC LIMIT ")
        .push_bind(i64::from(limit));
    if let Position::Page(page_asked) = position {
        page.push(" OFFSET ")
            .push_bind(i64::from(page_asked.offset));
    }
}

/// Returns the statement for `columns` of the messages that the filter finds.
pub(super) fn query(columns: &'static str, filter: &Filter) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new("");
    write(&mut query, columns, filter);
    query
}

fn write(query: &mut QueryBuilder<Sqlite>, columns: &'static str, filter: &Filter) {
    let index = match (filter.statuses.is_empty(), filter.ids.is_empty()) {
        (_, false) => "messages_id",
        (false, true) => "messages_flow_status",
        (true, true) => "messages_flow",
    };
    query
        .push(columns)
        .push(" FROM messages AS m INDEXED BY ")
        .push(index);
    // The body is read only for its columns or for a search.
    if !matches!(columns, COUNT | SEQ) || filter.search.is_some() {
        query.push(" CROSS JOIN bodies AS b ON b.seq = m.seq");
    }
    query
        .push(" WHERE m.flow_id = ")
        .push_bind(filter.flow_id.as_str().to_owned());
    if columns == COUNT && filter.search.is_none() && filter.ids.is_empty() {
        // All messages of a flow are of one tenant. So one row is checked, and the index alone has
        // the others.
        query
            .push(" AND (SELECT f.account_id = ")
            .push_bind(filter.tenant.account_id.as_str().to_owned());
        query
            .push(" AND f.environment_id = ")
            .push_bind(filter.tenant.environment_id.as_str().to_owned());
        query.push(" FROM messages AS f INDEXED BY messages_flow WHERE f.flow_id = ");
        query
            .push_bind(filter.flow_id.as_str().to_owned())
            .push(" LIMIT 1)");
    } else {
        query
            .push(" AND m.account_id = ")
            .push_bind(filter.tenant.account_id.as_str().to_owned());
        query
            .push(" AND m.environment_id = ")
            .push_bind(filter.tenant.environment_id.as_str().to_owned());
    }
    match filter.statuses.as_slice() {
        [] => {}
        [status] => {
            query.push(" AND m.status = ").push_bind(status.as_str());
        }
        several => {
            query.push(" AND m.status IN (");
            let mut list = query.separated(", ");
            for status in several {
                list.push_bind(status.as_str());
            }
            query.push(")");
        }
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
    if !filter.ids.is_empty() {
        ids(query, &filter.ids);
    }
    if let Some(text) = &filter.search {
        search(query, text);
    }
}

fn ids(query: &mut QueryBuilder<Sqlite>, ids: &[MessageId]) {
    query.push(" AND m.id IN (");
    let mut list = query.separated(", ");
    for id in ids {
        list.push_bind(id.as_str().to_owned());
    }
    query.push(")");
}

pub(super) fn search(query: &mut QueryBuilder<Sqlite>, text: &str) {
    let pattern = glob(text);
    query.push(" AND (m.id GLOB ").push_bind(pattern.clone());
    query
        .push(" OR m.error_message GLOB ")
        .push_bind(pattern.clone());
    query.push(" OR m.error_field GLOB ").push_bind(pattern);
    for pattern in globs_in_json(text) {
        query
            .push(" OR CAST(coalesce(b.payload, b.raw_body) AS TEXT) GLOB ")
            .push_bind(pattern);
    }
    query.push(")");
}

/// Returns the statement of a list, for its query plan.
#[cfg(test)]
pub(super) fn statement(filter: &Filter) -> String {
    let cursor = crate::Cursor {
        received_at: kanat_model::Timestamp::from_millis(0),
        seq: 0,
    };
    page(PAGE, filter, Position::After { cursor, limit: 50 }, 51)
        .sql()
        .as_str()
        .to_owned()
}
