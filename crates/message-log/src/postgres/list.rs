//! Lists of one flow's messages, newest first.

use std::borrow::Cow;

use kanat_model::search::{regex, regex_in_encoded_json};
use sqlx::{PgPool, Postgres, QueryBuilder, Row};

use super::append::each;
use super::begin;
use super::failure::outward;
use super::text::text;
use crate::row::{self, fixed_columns, present_columns};
use crate::{Error, Filter, MessagePage, Position};

pub(super) const COUNT: &str = "SELECT count(*)";

/// Told from the rows' heads: what is large is not read for it.
pub(super) const SIZES: &str = "SELECT CAST(octet_length(coalesce(b.payload, b.raw_body)) + \
                                coalesce((SELECT octet_length(t.output) FROM transitions AS t \
                                WHERE t.message = m.seq AND t.output IS NOT NULL ORDER BY t.seq \
                                DESC LIMIT 1), 0) AS BIGINT) AS bytes";

/// The place of a message in the log, which every index has.
const PLACE: &str = "SELECT m.seq";

pub(super) const PAGE: &str = concat!("SELECT ", fixed_columns!(), ", ", present_columns!());

pub(super) async fn list(
    reader: &PgPool,
    filter: &Filter,
    position: Position,
) -> Result<MessagePage, Error> {
    filter.check()?;
    read(reader, filter, position).await.map_err(outward)
}

async fn read(
    reader: &PgPool,
    filter: &Filter,
    position: Position,
) -> Result<MessagePage, sqlx::Error> {
    let mut snapshot = begin::snapshot(reader).await?;
    let total: i64 = query(COUNT, filter)
        .build()
        .fetch_one(&mut *snapshot)
        .await?
        .try_get(0)?;
    let limit = match position {
        Position::Page(page) => page.limit,
        Position::After { limit, .. } => limit,
    };
    // One more than asked for says whether there is a next page.
    let sizes = page(SIZES, filter, position, limit.saturating_add(1))
        .build()
        .fetch_all(&mut *snapshot)
        .await?;
    let sizes = row::all(&sizes, row::size)?;
    let mut page = page(PAGE, filter, position, MessagePage::fitting(&sizes, limit));
    let rows = page.build().fetch_all(&mut *snapshot).await?;
    snapshot.commit().await?;
    let messages = row::all(&rows, row::message)?;
    Ok(MessagePage::of_flow(messages, sizes.len(), total))
}

/// Returns the statement for `columns` of at most `limit` messages from `position` on.
///
/// The index has each status in the order of the list, and several statuses have to be sorted: then
/// the page is found in the index alone, and the rest is read for it.
pub(super) fn page(
    columns: &'static str,
    filter: &Filter,
    position: Position,
    limit: u32,
) -> QueryBuilder<Postgres> {
    let mut page = QueryBuilder::new("");
    if filter.statuses.len() > 1 {
        page.push(columns)
            .push(" FROM messages AS m JOIN bodies AS b ON b.seq = m.seq");
        page.push(" WHERE m.seq = ANY(ARRAY(");
        write_page(&mut page, PLACE, filter, position, limit);
        page.push(")) ORDER BY m.received_at DESC, m.seq DESC");
    } else {
        write_page(&mut page, columns, filter, position, limit);
    }
    page
}

fn write_page(
    page: &mut QueryBuilder<Postgres>,
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
pub(super) fn query(columns: &'static str, filter: &Filter) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("");
    write(&mut query, columns, filter);
    query
}

fn write(query: &mut QueryBuilder<Postgres>, columns: &'static str, filter: &Filter) {
    query.push(columns);
    if filter.ids.is_empty() {
        query.push(" FROM messages AS m");
    } else {
        // Apart from the rest, or all of the flow's messages would be read in the order of the list
        // to find them.
        query.push(" FROM (SELECT * FROM messages WHERE id = ANY(");
        query
            .push_bind(each(&filter.ids, |id| owned(id.as_str())))
            .push(") OFFSET 0) AS m");
    }
    // Without columns or a search of it, the body is not read.
    if !matches!(columns, COUNT | PLACE) || filter.search.is_some() {
        query.push(" JOIN bodies AS b ON b.seq = m.seq");
    }
    query
        .push(" WHERE m.flow_id = ")
        .push_bind(owned(filter.flow_id.as_str()));
    if columns == COUNT && filter.search.is_none() && filter.ids.is_empty() {
        // All messages of a flow have one tenant, so one row is enough, and the index has the rest.
        query
            .push(" AND (SELECT f.account_id = ")
            .push_bind(owned(filter.tenant.account_id.as_str()));
        query
            .push(" AND f.environment_id = ")
            .push_bind(owned(filter.tenant.environment_id.as_str()));
        query
            .push(" FROM messages AS f WHERE f.flow_id = ")
            .push_bind(owned(filter.flow_id.as_str()));
        query.push(" ORDER BY f.received_at DESC, f.seq DESC LIMIT 1)");
    } else {
        query
            .push(" AND m.account_id = ")
            .push_bind(owned(filter.tenant.account_id.as_str()));
        query
            .push(" AND m.environment_id = ")
            .push_bind(owned(filter.tenant.environment_id.as_str()));
    }
    match filter.statuses.as_slice() {
        [] => {}
        [status] => {
            query.push(" AND m.status = ").push_bind(status.as_str());
        }
        several => {
            let several = each(several, |status| status.as_str());
            query
                .push(" AND m.status = ANY(")
                .push_bind(several)
                .push(")");
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
    if let Some(text) = &filter.search {
        search(query, text);
    }
}

/// Bodies may be any bytes, so they are searched in a form that every one has.
pub(super) fn search(query: &mut QueryBuilder<Postgres>, wanted: &str) {
    let plain = regex(&text(wanted));
    query.push(" AND (m.id ~ ").push_bind(plain.clone());
    query
        .push(" OR m.error_message ~ ")
        .push_bind(plain.clone());
    query.push(" OR m.error_field ~ ").push_bind(plain);
    query.push(" OR encode(coalesce(b.payload, b.raw_body), 'escape') ~ ");
    query.push_bind(regex_in_encoded_json(wanted)).push(")");
}

pub(super) fn owned(text: &str) -> String {
    Cow::into_owned(self::text(text))
}
