//! Reads of messages and events.

use kanat_model::id::MessageId;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqlitePool};
use tokio::sync::watch;

use super::{SqliteLog, events, list, list_environment, search};
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
    " FROM messages AS m INDEXED BY messages_id JOIN bodies AS b ON b.seq = m.seq
     WHERE m.id = ? AND m.account_id = ? AND m.environment_id = ?"
);

pub(super) const CONTENT: &str = "
SELECT b.raw_body, b.payload, b.request FROM messages AS m INDEXED BY messages_id JOIN bodies AS b
    ON b.seq = m.seq
WHERE m.id = ? AND m.account_id = ? AND m.environment_id = ?";

pub(super) const TRACE: &str = "
SELECT m.received_at, m.trigger_kind, t.trace
FROM messages AS m INDEXED BY messages_id LEFT JOIN transitions AS t ON t.message = m.seq
WHERE m.id = ? AND m.account_id = ? AND m.environment_id = ? ORDER BY t.seq";

#[async_trait::async_trait]
impl MessageReader for SqliteLog {
    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage, Error> {
        let tables = self.tables().await?;
        if filter.search.is_some() {
            return search::list(&self.searcher, filter, position).await;
        }
        let mut connection = tables.acquire().await?;
        list::list(&mut connection, filter, position).await
    }

    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage, Error> {
        list_environment::list(self.tables().await?, filter, position).await
    }

    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>, Error> {
        get(self.tables().await?, tenant, id).await
    }

    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>, Error> {
        content(self.tables().await?, tenant, id).await
    }

    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>, Error> {
        trace(self.tables().await?, tenant, id).await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.state.changed()
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, Error> {
        events::events(self.tables().await?, query).await
    }

    async fn last_event(&self) -> Result<i64, Error> {
        Ok(self.state.last_event())
    }
}

async fn get(
    reader: &SqlitePool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Message>, Error> {
    let row = select(GET, tenant, id).fetch_optional(reader).await?;
    Ok(row.as_ref().map(row::message).transpose()?)
}

async fn content(
    reader: &SqlitePool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Content>, Error> {
    let row = select(CONTENT, tenant, id).fetch_optional(reader).await?;
    Ok(row.as_ref().map(row::content).transpose()?)
}

async fn trace(
    reader: &SqlitePool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Vec<TraceRecord>, Error> {
    let rows = select(TRACE, tenant, id).fetch_all(reader).await?;
    Ok(row::trace(&rows)?)
}

fn select<'q>(
    statement: &'static str,
    tenant: &'q Tenant,
    id: &'q MessageId,
) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statement)
        .bind(id.as_str())
        .bind(tenant.account_id.as_str())
        .bind(tenant.environment_id.as_str())
}

pub(super) async fn is_empty(reader: &SqlitePool) -> Result<bool, Error> {
    let any = sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT 1 FROM messages)");
    Ok(!any.fetch_one(reader).await?)
}

/// Checks that the file can be read.
pub(super) async fn ping(reader: &SqlitePool) -> Result<(), Error> {
    sqlx::query("SELECT 1 FROM counters")
        .fetch_optional(reader)
        .await?;
    Ok(())
}
