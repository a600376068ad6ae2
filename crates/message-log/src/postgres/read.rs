//! Reads of messages and events.

use kanat_model::id::MessageId;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgPool, Postgres};
use tokio::sync::watch;

use super::text::text;
use super::{PostgresLog, events, list, list_environment, sequence};
use crate::row::{self, fixed_columns, present_columns};
use crate::{
    Content, EnvironmentFilter, Error, EventPage, EventQuery, Filter, Message, MessagePage,
    MessageReader, Position, Tenant, TraceRecord,
};

pub(super) const GET: &str = concat!(
    "SELECT ",
    fixed_columns!(),
    ", ",
    present_columns!(),
    " FROM messages AS m JOIN bodies AS b ON b.seq = m.seq
     WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3"
);

pub(super) const CONTENT: &str = "
SELECT b.raw_body, b.payload, b.request FROM messages AS m JOIN bodies AS b ON b.seq = m.seq
WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3";

pub(super) const TRACE: &str = "
SELECT m.received_at, m.trigger_kind, t.trace
FROM messages AS m LEFT JOIN transitions AS t ON t.message = m.seq
WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3 ORDER BY t.seq";

const PING: &str = "SELECT last_value FROM events";

#[async_trait::async_trait]
impl MessageReader for PostgresLog {
    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage, Error> {
        self.ask(list::list(&self.readers.current(), filter, position))
            .await
    }

    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage, Error> {
        self.ask(list_environment::list(
            &self.readers.current(),
            filter,
            position,
        ))
        .await
    }

    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>, Error> {
        self.ask(get(&self.readers.current(), tenant, id)).await
    }

    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>, Error> {
        self.ask(content(&self.readers.current(), tenant, id)).await
    }

    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>, Error> {
        self.ask(trace(&self.readers.current(), tenant, id)).await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.context.shared.progress.changed()
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, Error> {
        self.ask(events::events(&self.readers.current(), self.space(), query))
            .await
    }

    async fn last_event(&self) -> Result<i64, Error> {
        let horizon = self
            .ask(sequence::horizon(&self.readers.current(), self.space()))
            .await?;
        Ok(horizon.readable)
    }
}

async fn get(
    reader: &PgPool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Message>, sqlx::Error> {
    let row = select(GET, tenant, id).fetch_optional(reader).await?;
    row.as_ref().map(row::message).transpose()
}

async fn content(
    reader: &PgPool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Content>, sqlx::Error> {
    let row = select(CONTENT, tenant, id).fetch_optional(reader).await?;
    row.as_ref().map(row::content).transpose()
}

async fn trace(
    reader: &PgPool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Vec<TraceRecord>, sqlx::Error> {
    row::trace(&select(TRACE, tenant, id).fetch_all(reader).await?)
}

pub(super) async fn is_empty(reader: &PgPool) -> Result<bool, sqlx::Error> {
    let any = sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT 1 FROM messages)");
    Ok(!any.fetch_one(reader).await?)
}

/// Checks that the database answers.
pub(super) async fn ping(reader: &PgPool) -> Result<(), sqlx::Error> {
    sqlx::query(PING).fetch_one(reader).await.map(drop)
}

fn select<'q>(
    statement: &'static str,
    tenant: &'q Tenant,
    id: &'q MessageId,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(statement)
        .bind(text(id.as_str()))
        .bind(text(tenant.account_id.as_str()))
        .bind(text(tenant.environment_id.as_str()))
}
