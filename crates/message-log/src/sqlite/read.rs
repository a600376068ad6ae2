//! Reads of messages and events.

use kanat_model::id::MessageId;
use sqlx::{Sqlite, SqlitePool};
use tokio::sync::watch;

use super::{SqliteLog, events, search};
use crate::list::{check_search, environment, flow};
use crate::message::read;
use crate::{
    Content, EnvironmentFilter, EventPage, EventQuery, Filter, Message, MessagePage, MessageReader,
    Position, Result, Tenant, TraceRecord,
};

#[async_trait::async_trait]
impl MessageReader for SqliteLog {
    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage> {
        filter.check()?;
        let reader = self.flushed_reader().await?;
        if filter.search.is_some() {
            return search::list(&self.searcher, filter, position).await;
        }
        let mut tx = reader.begin().await?;
        Ok(flow::page::<Sqlite>(&mut tx, filter, position).await?)
    }

    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage> {
        check_search(filter.search.as_deref())?;
        let mut tx = self.flushed_reader().await?.begin().await?;
        let page = environment::page::<Sqlite>(&mut tx, filter, position).await?;
        tx.commit().await?;
        Ok(page)
    }

    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>> {
        Ok(read::message(self.flushed_reader().await?, tenant, id).await?)
    }

    async fn head_of_key(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<MessageId>> {
        Ok(read::head_of_key(self.flushed_reader().await?, tenant, id).await?)
    }

    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>> {
        Ok(read::content(self.flushed_reader().await?, tenant, id).await?)
    }

    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>> {
        Ok(read::trace(self.flushed_reader().await?, tenant, id).await?)
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.state.changed()
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        events::events(self.flushed_reader().await?, query).await
    }

    async fn last_event(&self) -> Result<i64> {
        Ok(self.state.last_seq())
    }
}

/// Checks that the file can be read.
pub(super) async fn ping(reader: &SqlitePool) -> Result<()> {
    sqlx::query("SELECT 1 FROM counters")
        .fetch_optional(reader)
        .await?;
    Ok(())
}
