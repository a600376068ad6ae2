//! What every function of this crate runs its statements on.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
pub(crate) use kanat_database::answered;
use sqlx::any::{AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::{Any, Either, Execute, Executor, SqlStr, Transaction};

use crate::Error;
use crate::dialect::Dialect;

/// A transaction's end of its connection; a transaction lends it.
///
/// A connection may fall silent without an end that anybody hears of: its database moved to another machine, a firewall forgot
/// it. So each answer is waited for as long as the store's patience lasts, and then fails as one of a lost connection does.
pub struct Db {
    tx: Transaction<'static, Any>,
    patience: Duration,
}

impl Db {
    pub(crate) fn new(tx: Transaction<'static, Any>, patience: Duration) -> Self {
        Self { tx, patience }
    }

    /// Whether the database is one that other processes may use at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.tx.backend_name() == "PostgreSQL"
    }

    pub(crate) fn dialect(&self) -> Dialect {
        if self.is_shared() { Dialect::Postgres } else { Dialect::Sqlite }
    }

    /// Returns once the changes are durable.
    pub(crate) async fn commit(self) -> Result<(), Error> {
        Ok(answered(self.patience, self.tx.commit()).await?)
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").finish_non_exhaustive()
    }
}

impl<'c> Executor<'c> for &'c mut Db {
    type Database = Any;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<AnyQueryResult, AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        let patience = self.patience;
        let rows = self.tx.fetch_many(query);
        let next = move |mut rows: BoxStream<'e, _>| async move {
            Ok(answered(patience, rows.try_next()).await?.map(|row| (row, rows)))
        };
        try_unfold(rows, next).boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        Box::pin(answered(self.patience, self.tx.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [AnyTypeInfo],
    ) -> BoxFuture<'e, Result<AnyStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(answered(self.patience, self.tx.prepare_with(sql, parameters)))
    }
}
