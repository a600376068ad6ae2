//! The transaction that every function of this crate runs its statements on.

use std::fmt;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use kanat_database::Patience;
use sqlx::any::{AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::{Any, Either, Execute, Executor, SqlStr, Transaction};

use crate::Error;
use crate::dialect::Dialect;

/// A transaction's end of its connection; a transaction lends it.
///
/// A connection may fall silent without an end that anybody hears of: its database moved to another
/// machine, a firewall forgot it. So each answer is waited for as long as the store's patience
/// lasts, and then fails as one of a lost connection does.
pub struct Db {
    tx: Transaction<'static, Any>,
    patience: Patience,
}

impl Db {
    pub(crate) fn new(tx: Transaction<'static, Any>, patience: Patience) -> Self {
        Self { tx, patience }
    }

    /// Returns whether other processes may use the database at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.tx.backend_name() == "PostgreSQL"
    }

    pub(crate) fn dialect(&self) -> Dialect {
        if self.is_shared() {
            Dialect::Postgres
        } else {
            Dialect::Sqlite
        }
    }

    /// Returns once the changes are durable.
    pub(crate) async fn commit(self) -> Result<(), Error> {
        Ok(self.patience.answered(self.tx.commit()).await?)
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").finish_non_exhaustive()
    }
}

impl<'c> Executor<'c> for &'c mut Db {
    type Database = Any;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<AnyQueryResult, AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        let Db { tx, patience } = self;
        let patience = &*patience;
        let rows = tx.fetch_many(query);
        let next = move |mut rows: BoxStream<'e, _>| async move {
            Ok(patience
                .answered(rows.try_next())
                .await?
                .map(|row| (row, rows)))
        };
        try_unfold(rows, next).boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        Box::pin(self.patience.answered(self.tx.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [AnyTypeInfo],
    ) -> BoxFuture<'e, Result<AnyStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(
            self.patience
                .answered(self.tx.prepare_with(sql, parameters)),
        )
    }
}
