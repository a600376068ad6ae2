//! A transaction, and how one begins so that its connection is of use afterwards, whatever becomes of the caller.

use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use sqlx::pool::PoolConnection;
use sqlx::{Any, SqlSafeStr, Transaction};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::TaskTracker;

use crate::{Db, Error};

/// A transaction: undone unless it is committed.
pub struct Tx {
    inner: Transaction<'static, Any>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Tx {
    /// Begins by `statement`, in the background when the caller stops waiting.
    pub(crate) async fn begin(
        connection: PoolConnection<Any>,
        statement: &'static str,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, Error> {
        let begun = async move {
            let inner = Transaction::begin(connection, Some(statement.into_sql_str())).await?;
            Ok(Self { inner, _turn: turn })
        };
        Begin(Some(Box::pin(begun))).await
    }

    /// Returns once the changes are durable.
    pub async fn commit(self) -> Result<(), Error> {
        Ok(self.inner.commit().await?)
    }
}

impl Deref for Tx {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.inner
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Db {
        &mut self.inner
    }
}

/// The driver for PostgreSQL undoes only a transaction of which it has heard that it began: a connection that was asked to
/// begin, and whose answer nobody waits for, would go back to the pool inside of one. Its next user would read an old
/// state, or could not write. So the answer is always waited for, and the transaction is undone then.
struct Begin(Option<Begun>);

type Begun = Pin<Box<dyn Future<Output = Result<Tx, Error>> + Send>>;

impl Future for Begin {
    type Output = Result<Tx, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(begun) = &mut self.0 else { return Poll::Pending };
        let answer = begun.as_mut().poll(cx);
        if answer.is_ready() {
            self.0 = None;
        }
        answer
    }
}

impl Drop for Begin {
    fn drop(&mut self) {
        if let Some(begun) = self.0.take() {
            // Who closes the pool waits for its connection.
            TaskTracker::new().spawn(async move { drop(begun.await) });
        }
    }
}
