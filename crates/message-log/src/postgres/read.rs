//! Reads of messages and events.

use kanat_model::id::MessageId;
use sqlx::{PgPool, Postgres};
use tokio::sync::watch;

use super::{PostgresLog, begin, events, sequence};
use crate::list::{check_search, environment, flow};
use crate::message::read;
use crate::{
    Content, EnvironmentFilter, EventPage, EventQuery, Filter, Message, MessagePage, MessageReader,
    Position, Result, Tenant, TraceRecord,
};

const PING: &str = "SELECT last_value FROM events";

#[async_trait::async_trait]
impl MessageReader for PostgresLog {
    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage> {
        filter.check()?;
        self.ask(async {
            let mut snapshot = begin::snapshot(&self.readers.current()).await?;
            let page = flow::page::<Postgres>(&mut snapshot, filter, position).await?;
            snapshot.commit().await.map(|()| page)
        })
        .await
    }

    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage> {
        check_search(filter.search.as_deref())?;
        self.ask(async {
            let mut snapshot = begin::snapshot(&self.readers.current()).await?;
            let page = environment::page::<Postgres>(&mut snapshot, filter, position).await?;
            snapshot.commit().await.map(|()| page)
        })
        .await
    }

    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>> {
        self.ask(read::message(&self.readers.current(), tenant, id))
            .await
    }

    async fn head_of_key(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<MessageId>> {
        self.ask(read::head_of_key(&self.readers.current(), tenant, id))
            .await
    }

    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>> {
        self.ask(read::content(&self.readers.current(), tenant, id))
            .await
    }

    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>> {
        self.ask(read::trace(&self.readers.current(), tenant, id))
            .await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.context.shared.progress.changed()
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        self.ask(events::events(&self.readers.current(), self.space(), query))
            .await
    }

    async fn last_event(&self) -> Result<i64> {
        let horizon = self
            .ask(sequence::horizon(&self.readers.current(), self.space()))
            .await?;
        Ok(horizon.readable)
    }
}

/// Checks that the database answers.
pub(super) async fn ping(reader: &PgPool) -> sqlx::Result<()> {
    sqlx::query(PING).fetch_one(reader).await.map(drop)
}
