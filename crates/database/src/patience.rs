//! How long an answer of a database is waited for.

use std::time::Duration;

use sqlx::Error;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::servers::Primary;
use crate::{moved, silent, with_advice};

/// The bound of waiting for what a connection is asked. Each connection, or call that takes one,
/// has its own: it ends the waiting also when another server has become the primary.
#[derive(Debug, Clone)]
pub struct Patience {
    within: Duration,
    /// The server that is asked.
    primary: Option<Primary>,
    known: watch::Receiver<Option<Primary>>,
}

impl Patience {
    /// Creates one for a database that is always in the same place.
    pub fn in_place(within: Duration) -> Self {
        let (_, known) = watch::channel(None);
        Self {
            within,
            primary: None,
            known,
        }
    }

    pub(crate) fn new(
        within: Duration,
        primary: Option<Primary>,
        known: watch::Receiver<Option<Primary>>,
    ) -> Self {
        Self {
            within,
            primary,
            known,
        }
    }

    /// Returns the place of the server that is asked in its list, from 0.
    pub(crate) fn place(&self) -> usize {
        self.primary.map_or(0, |primary| primary.place)
    }

    /// Returns whether the server that is asked is still the primary, as far as this process knows.
    pub fn is_in_place(&self) -> bool {
        *self.known.borrow() == self.primary
    }

    /// Returns the outcome of `call`.
    ///
    /// # Errors
    /// Errors of `call`; [`silent`] when it has none in time; [`moved`] when another server is the
    /// primary.
    pub async fn answered<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let answered = async {
            timeout(self.within, call)
                .await
                .unwrap_or_else(|_| Err(silent()))
        };
        self.acquired(answered).await
    }

    /// Returns the outcome of `call`, which has a bound of its own, as that of taking a connection
    /// from a pool.
    ///
    /// # Errors
    /// Errors of `call`; [`moved`] when another server is the primary.
    pub async fn acquired<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.ends() => Err(moved()),
            answer = call => answer.map_err(with_advice),
        }
    }

    /// Waits until another server is the primary.
    pub async fn ends(&self) {
        let mut known = self.known.clone();
        if known
            .wait_for(|known| *known != self.primary)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }
}
