//! A connection that receives notifications. It also checks the server, so that a failover is
//! noticed without other calls.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{Error, Executor};
use tokio::time::{Instant, timeout_at};

use crate::servers::ADMIT;
use crate::{Patience, Servers, moved, silent};

/// Time between two looks at whether the server still takes writes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks at whether another server of the list was promoted.
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(5);
/// Longest that the server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);

/// Receives the notifications of one channel from the primary.
pub struct Listener {
    servers: Servers,
    patience: Patience,
    inner: PgListener,
    look_at: Instant,
    look_around_at: Instant,
}

impl Listener {
    /// Connects to the primary, which is searched for, and listens to `channel`.
    ///
    /// # Errors
    /// No server takes writes, or it does not answer within 1.5 s.
    pub async fn connect(servers: &Servers, channel: &str) -> Result<Self, Error> {
        let patience = servers.connect(ANSWER_WITHIN).await?.patience;
        let primary = servers.list()[patience.place()].clone();
        // A pool of its own: a connection that fell silent keeps its place for long.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect_lazy_with(primary);
        let listen = async {
            let mut inner = PgListener::connect_with(&pool).await?;
            inner.eager_reconnect(false);
            inner.execute(ADMIT).await?;
            inner.listen(channel).await?;
            Ok(inner)
        };
        let inner = patience.answered(listen).await?;
        let now = Instant::now();
        let look_at = now + LOOK_EVERY;
        let look_around_at = now + LOOK_AROUND_EVERY;
        Ok(Self {
            servers: servers.clone(),
            patience,
            inner,
            look_at,
            look_around_at,
        })
    }

    /// Returns the next notification's text.
    ///
    /// # Errors
    /// The connection is lost, or its server is not the primary any more. Notifications may have
    /// been missed: connect anew.
    pub async fn next(&mut self) -> Result<String, Error> {
        loop {
            tokio::select! {
                heard = timeout_at(self.look_at, self.inner.try_recv()) => match heard {
                    Ok(Ok(Some(notification))) => return Ok(notification.payload().to_owned()),
                    Ok(Ok(None)) => return Err(silent()),
                    Ok(Err(error)) => return Err(error),
                    Err(_) => self.look().await?,
                },
                () = self.patience.ends() => return Err(moved()),
            }
        }
    }

    /// Looks whether the server still takes writes, and from time to time whether another one was
    /// promoted.
    async fn look(&mut self) -> Result<(), Error> {
        self.patience.answered(self.inner.execute(ADMIT)).await?;
        if self.servers.are_several() && Instant::now() >= self.look_around_at {
            drop(self.servers.connect(ANSWER_WITHIN).await?);
            self.look_around_at = Instant::now() + LOOK_AROUND_EVERY;
        }
        self.look_at = Instant::now() + LOOK_EVERY;
        Ok(())
    }
}
