//! Statements that are built for both databases, with what differs between the two.

use kanat_model::Timestamp;
use sqlx::{Database, Pool, QueryBuilder};

use crate::row::Columns;
use crate::{Filter, Tenant};

/// A database that holds a log.
pub(crate) trait Dialect: Database<Row: Columns> {
    /// Columns with the bytes of messages, which the database tells without reading large values.
    const SIZES: &'static str;
    /// Messages in the order of the log.
    const LOG: &'static str;
    /// Dead letters and retries of an environment in the order of the log.
    const FAILING: &'static str;
    /// Messages by their ids.
    const BY_ID: &'static str;
    /// Bodies of the messages before it.
    const BODIES: &'static str;
    /// Begin and end of a list of sequence numbers that a query finds.
    const FOUND: [&'static str; 2];
    /// One message of a flow, before and after the id of the flow.
    const ONE_OF_FLOW: [&'static str; 2];
    /// Condition on the flow that keeps the database from its index, which has another order.
    const FLOW: &'static str;
    /// Arrivals, and changes of state, after a sequence number: first their sizes.
    const ARRIVALS: [&'static str; 2];
    const TRANSITIONS: [&'static str; 2];

    /// Writes the messages of a flow, by the best index for the filter.
    fn from_flow(statement: &mut Statement<Self>, filter: &Filter);

    /// Writes the condition on ids where [`Self::from_flow`] has not.
    fn ids(_statement: &mut Statement<Self>, _filter: &Filter) {}

    /// Writes the condition that finds a text in a message.
    fn search(statement: &mut Statement<Self>, text: &str);

    fn bind_number(query: &mut QueryBuilder<Self>, number: i64);

    fn bind_text(query: &mut QueryBuilder<Self>, text: &str);

    /// Writes that a value is one of few.
    fn one_of(query: &mut QueryBuilder<Self>, texts: &[&str]);

    /// Writes that a value is one of many.
    fn one_of_set(query: &mut QueryBuilder<Self>, texts: &[&str]);

    /// Writes that a number is one of a page.
    fn one_of_numbers(query: &mut QueryBuilder<Self>, numbers: &[i64]);

    fn fetch_all(
        query: &mut QueryBuilder<Self>,
        conn: &mut Self::Connection,
    ) -> impl Future<Output = sqlx::Result<Vec<Self::Row>>> + Send;
}

/// Implements what is the same text for both drivers.
macro_rules! driver {
    () => {
        fn bind_number(query: &mut QueryBuilder<Self>, number: i64) {
            query.push_bind(number);
        }

        async fn fetch_all(
            query: &mut QueryBuilder<Self>,
            conn: &mut Self::Connection,
        ) -> sqlx::Result<Vec<Self::Row>> {
            query.build().fetch_all(conn).await
        }
    };
}

pub(crate) use driver;

/// A statement under construction.
pub(crate) struct Statement<D: Dialect>(pub QueryBuilder<D>);

impl<D: Dialect> Statement<D> {
    pub fn new(text: &'static str) -> Self {
        Self(QueryBuilder::new(text))
    }

    pub fn push(&mut self, text: &str) -> &mut Self {
        self.0.push(text);
        self
    }

    pub fn number(&mut self, text: &str, number: i64) -> &mut Self {
        self.0.push(text);
        D::bind_number(&mut self.0, number);
        self
    }

    pub fn text(&mut self, text: &str, value: &str) -> &mut Self {
        self.0.push(text);
        D::bind_text(&mut self.0, value);
        self
    }

    pub fn tenant(&mut self, tenant: &Tenant) -> &mut Self {
        self.text(" AND m.account_id = ", tenant.account_id.as_str())
            .text(" AND m.environment_id = ", tenant.environment_id.as_str())
    }

    /// Writes the conditions on the time of receipt.
    pub fn received(&mut self, since: Option<Timestamp>, until: Option<Timestamp>) {
        if let Some(since) = since {
            self.number(" AND m.received_at >= ", since.as_millis());
        }
        if let Some(until) = until {
            self.number(" AND m.received_at < ", until.as_millis());
        }
    }

    pub async fn rows(&mut self, conn: &mut D::Connection) -> sqlx::Result<Vec<D::Row>> {
        D::fetch_all(&mut self.0, conn).await
    }

    /// Returns the rows of the statement by a connection of its own.
    pub async fn read(&mut self, reader: &Pool<D>) -> sqlx::Result<Vec<D::Row>> {
        self.rows(&mut *reader.acquire().await?).await
    }

    /// Returns the one row of the statement.
    pub async fn row(&mut self, conn: &mut D::Connection) -> sqlx::Result<D::Row> {
        let rows = self.rows(conn).await?;
        rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)
    }

    /// Returns the text, for its query plan.
    #[cfg(test)]
    pub fn into_text(self) -> String {
        self.0.sql().as_str().to_owned()
    }
}
