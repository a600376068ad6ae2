//! Reads of one message by its id.

use kanat_model::id::MessageId;
use sqlx::Pool;

use crate::dialect::{Dialect, Statement};
use crate::row::{self, Columns as _, PAGE};
use crate::{Content, Message, Tenant, TraceRecord};

pub(crate) const CONTENT: &str = "SELECT b.raw_body, b.payload, b.request";
pub(crate) const TRACE: &str = "SELECT m.received_at, m.trigger_kind, t.trace";
/// Changes of the state of the message before it.
pub(crate) const TRANSITIONS: &str = " LEFT JOIN transitions AS t ON t.message = m.seq";

pub(crate) async fn message<D: Dialect>(
    reader: &Pool<D>,
    tenant: &Tenant,
    id: &MessageId,
) -> sqlx::Result<Option<Message>> {
    let mut message = by_id::<D>(PAGE, D::BODIES, tenant, id);
    let rows = message.read(reader).await?;
    rows.first().map(row::message).transpose()
}

pub(crate) const HEAD: &str = "SELECT h.id";
/// The message that is before the others of its ordering key.
pub(crate) const HEADS: &str = " JOIN messages AS h ON h.flow_id = m.flow_id AND h.ordering_key = \
                                m.ordering_key AND h.completed_at IS NULL AND h.due_at >= 0";

pub(crate) async fn head_of_key<D: Dialect>(
    reader: &Pool<D>,
    tenant: &Tenant,
    id: &MessageId,
) -> sqlx::Result<Option<MessageId>> {
    let mut head = by_id::<D>(HEAD, HEADS, tenant, id);
    head.push(" AND m.completed_at IS NULL AND m.due_at IS NULL LIMIT 1");
    let rows = head.read(reader).await?;
    rows.first().map(|row| row.id("id")).transpose()
}

pub(crate) async fn content<D: Dialect>(
    reader: &Pool<D>,
    tenant: &Tenant,
    id: &MessageId,
) -> sqlx::Result<Option<Content>> {
    let mut content = by_id::<D>(CONTENT, D::BODIES, tenant, id);
    let rows = content.read(reader).await?;
    rows.first().map(row::content).transpose()
}

pub(crate) async fn trace<D: Dialect>(
    reader: &Pool<D>,
    tenant: &Tenant,
    id: &MessageId,
) -> sqlx::Result<Vec<TraceRecord>> {
    let mut trace = by_id::<D>(TRACE, TRANSITIONS, tenant, id);
    trace.push(" ORDER BY t.seq");
    row::trace(&trace.read(reader).await?)
}

/// Returns whether the log has no message.
pub(crate) async fn is_empty<D: Dialect>(reader: &Pool<D>) -> sqlx::Result<bool> {
    let mut any = Statement::<D>::new("SELECT 1 FROM messages LIMIT 1");
    Ok(any.read(reader).await?.is_empty())
}

/// Returns the statement for `columns` of a message and of what is joined to it.
pub(crate) fn by_id<D: Dialect>(
    columns: &'static str,
    joined: &str,
    tenant: &Tenant,
    id: &MessageId,
) -> Statement<D> {
    let mut message = Statement::new(columns);
    message
        .push(D::BY_ID)
        .push(joined)
        .text(" WHERE m.id = ", id.as_str())
        .tenant(tenant);
    message
}
