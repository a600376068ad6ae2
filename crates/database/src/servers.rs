//! The servers of a list of addresses, and which of them takes writes: the primary. Every
//! connection to PostgreSQL is made from here, or by a pool that follows what is found here.
//!
//! A server that is in recovery is a standby, and refused; so is one whose sessions are read-only.
//! Of two that take writes, the one on the later timeline was promoted later: the other one is a
//! former primary that came back.

use std::cmp::Reverse;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Error, Executor, PgConnection, Row};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::address::server_name;
use crate::{Addresses, Patience, silent, with_advice};

/// Longest that one server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longest wait for other servers once one has answered.
const OTHERS_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for other servers once one takes writes, since another one may be on a later
/// timeline.
const LATER_TIMELINE_TIMEOUT: Duration = Duration::from_millis(500);

/// Refuses a server that takes no writes, and turns off session timeouts that a server may set for
/// all clients: our connections are idle for long on purpose. Settings that the version of the
/// server does not know are left out.
pub(crate) const ADMIT: &str = "DO $$ BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'the server is in recovery: it is a standby' USING ERRCODE = '25006';
    END IF;
    IF current_setting('default_transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'the server is read-only (default_transaction_read_only)' \
            USING ERRCODE = '25006';
    END IF;
    PERFORM set_config(name, '0', false) FROM pg_settings \
        WHERE name IN ('idle_session_timeout', 'transaction_timeout');
END $$";

/// Asks a primary for its cluster and timeline. Not every hosted server reports them.
const TIMELINE: &str = "SELECT (SELECT system_identifier FROM pg_control_system()),
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint";

/// A cheap handle to the servers of one database.
#[derive(Clone)]
pub struct Servers(Arc<Inner>);

struct Inner {
    list: Vec<PgConnectOptions>,
    primary: watch::Sender<Option<Primary>>,
}

/// A connection to the primary, and how long its answers are waited for.
#[derive(Debug)]
pub struct Session {
    /// The connection.
    pub connection: PgConnection,
    /// Ends when another server becomes the primary.
    pub patience: Patience,
}

/// The server of the list that takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Primary {
    /// Place in the list, from 0.
    pub(crate) place: usize,
    timeline: Option<Timeline>,
}

/// Place of a server in the history of its cluster: each promotion begins a timeline with a higher
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timeline {
    cluster: i64,
    number: i64,
}

impl Servers {
    /// Creates a handle; `adapt` gives each connection its settings. Nothing is connected.
    pub fn new(
        addresses: &Addresses,
        adapt: impl Fn(PgConnectOptions) -> PgConnectOptions,
    ) -> Self {
        let list = addresses.options().cloned().map(adapt).collect();
        Self(Arc::new(Inner {
            list,
            primary: watch::Sender::new(None),
        }))
    }

    /// Connects to the primary, for a session whose answers have a time limit. All servers are
    /// asked at once, so that a silent one delays no call for long, and a former primary is
    /// recognized. Pools and waiting calls move to the primary that is found.
    ///
    /// # Errors
    /// No server of the list takes writes within 5 s. The error says of each why not; of a single
    /// server, or where all refuse for good, it is that server's own.
    pub async fn connect(&self, within: Duration) -> Result<Session, Error> {
        let mut attempts: FuturesUnordered<_> = (0..self.0.list.len())
            .map(|place| self.attempt(place))
            .collect();
        let mut found = Vec::new();
        let mut failures = Vec::new();
        let mut until = Instant::now() + CONNECT_WITHIN;
        loop {
            tokio::select! {
                attempt = attempts.next() => match attempt {
                    Some((_, Ok(server))) => {
                        found.push(server);
                        until = until.min(Instant::now() + LATER_TIMELINE_TIMEOUT);
                    }
                    Some((place, Err(error))) => {
                        failures.push((place, error));
                        until = until.min(Instant::now() + OTHERS_TIMEOUT);
                    }
                    None => break,
                },
                () = sleep_until(until) => break,
            }
        }
        if found.is_empty() {
            return Err(self.no_primary(failures));
        }
        let (primary, connection) = self.follow(found)?;
        Ok(Session {
            connection,
            patience: Patience::new(within, Some(primary), self.changes()),
        })
    }

    /// Creates the patience of a call that takes a connection from a pool now.
    pub fn patience(&self, within: Duration) -> Patience {
        let known = self.changes();
        let primary = *known.borrow();
        Patience::new(within, primary, known)
    }

    /// Returns whether the list has more than one server.
    pub(crate) fn are_several(&self) -> bool {
        self.0.list.len() > 1
    }

    /// Returns what the driver needs to connect to each server, in the order of the list.
    pub fn options(&self) -> impl Iterator<Item = &PgConnectOptions> {
        self.0.list.iter()
    }

    pub(crate) fn list(&self) -> &[PgConnectOptions] {
        &self.0.list
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Option<Primary>> {
        self.0.primary.subscribe()
    }

    async fn attempt(&self, place: usize) -> (usize, Result<(Primary, PgConnection), Error>) {
        let options = &self.0.list[place];
        let connect = async {
            let mut connection = options.connect().await.map_err(with_advice)?;
            connection.execute(ADMIT).await.map_err(refusal)?;
            let timeline = timeline(&mut connection).await?;
            Ok((Primary { place, timeline }, connection))
        };
        (
            place,
            timeout(CONNECT_WITHIN, connect)
                .await
                .unwrap_or_else(|_| Err(silent())),
        )
    }

    /// Makes the latest of the primaries found the one in use.
    fn follow(
        &self,
        found: Vec<(Primary, PgConnection)>,
    ) -> Result<(Primary, PgConnection), Error> {
        let candidates: Vec<Primary> = found.iter().map(|(primary, _)| *primary).collect();
        let mut chosen = None;
        let changed = self.0.primary.send_if_modified(|known| {
            chosen = latest(*known, &candidates).filter(|chosen| !self.is_former(*chosen, *known));
            let changes = chosen.is_some() && chosen != *known;
            if changes {
                *known = chosen;
            }
            changes
        });
        let chosen = chosen.ok_or_else(former)?;
        if changed && self.are_several() {
            let server = server_name(&self.0.list[chosen.place]);
            tracing::info!(
                server,
                timeline = chosen.timeline.map(|timeline| timeline.number),
                "the database is at this server"
            );
        }
        found
            .into_iter()
            .find(|(primary, _)| *primary == chosen)
            .ok_or_else(silent)
    }

    /// Returns whether a server has an earlier timeline than was seen. With one server there is
    /// nothing to choose: it may have been restored.
    fn is_former(&self, server: Primary, known: Option<Primary>) -> bool {
        let known = known.and_then(|known| known.timeline);
        let is_earlier = |(now, known): (Timeline, Timeline)| {
            now.cluster == known.cluster && now.number < known.number
        };
        self.are_several() && server.timeline.zip(known).is_some_and(is_earlier)
    }

    fn no_primary(&self, mut failures: Vec<(usize, Error)>) -> Error {
        if failures.is_empty() {
            return silent();
        }
        if !self.are_several() || failures.iter().all(|(_, error)| !may_pass(error)) {
            return failures.swap_remove(0).1;
        }
        failures.sort_by_key(|(place, _)| *place);
        let reasons = failures.iter().map(|(place, error)| {
            let server = server_name(&self.0.list[*place]);
            format!("{} ({server}): {error}", place + 1)
        });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        Error::Io(io::Error::new(
            io::ErrorKind::NotConnected,
            format!("no server of the list takes writes: {reasons}"),
        ))
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.list.iter().map(server_name))
            .finish()
    }
}

/// Returns why a server was not admitted, in its words alone.
fn refusal(error: Error) -> Error {
    match error {
        Error::Database(cause) if cause.code().is_some_and(|code| code == "25006") => Error::Io(
            io::Error::new(io::ErrorKind::NotConnected, cause.message().to_owned()),
        ),
        error => error,
    }
}

async fn timeline(connection: &mut PgConnection) -> Result<Option<Timeline>, Error> {
    match sqlx::query(TIMELINE).fetch_one(connection).await {
        Ok(row) => Ok(Some(Timeline {
            cluster: row.try_get(0)?,
            number: row.try_get(1)?,
        })),
        Err(Error::Database(error)) => {
            tracing::debug!(%error, "the server does not tell its timeline");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the server of the known cluster that was promoted last. Without a difference
/// the known one stays, or else the first of the list is taken.
fn latest(known: Option<Primary>, found: &[Primary]) -> Option<Primary> {
    let cluster = known
        .and_then(|known| known.timeline)
        .map(|timeline| timeline.cluster);
    found.iter().copied().max_by_key(|server| {
        let is_of_cluster = server
            .timeline
            .is_some_and(|timeline| Some(timeline.cluster) == cluster);
        let number = server.timeline.map_or(0, |timeline| timeline.number);
        let is_known = known.is_some_and(|known| known.place == server.place);
        (is_of_cluster, number, is_known, Reverse(server.place))
    })
}

fn former() -> Error {
    let text =
        "the only server that takes writes is a former primary: another one was promoted after it";
    Error::Io(io::Error::new(io::ErrorKind::NotConnected, text))
}

/// Returns whether waiting may help: no server answers, or it starts or stops, has no free
/// connection, or is a standby.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Database(cause) => cause.code().is_some_and(|code| {
            ["08", "53", "57"]
                .iter()
                .any(|class| code.starts_with(class))
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(place: usize, cluster: i64, number: i64) -> Primary {
        Primary {
            place,
            timeline: Some(Timeline { cluster, number }),
        }
    }

    #[test]
    fn of_two_primaries_the_one_that_was_promoted_last_is_taken() {
        let [old, new] = [server(0, 7, 1), server(1, 7, 2)];
        assert_eq!(latest(None, &[old, new]), Some(new));
        assert_eq!(latest(Some(old), &[old, new]), Some(new));
        assert_eq!(latest(Some(new), &[new, old]), Some(new));
    }

    #[test]
    fn a_primary_of_another_cluster_is_taken_when_the_known_cluster_has_none() {
        let [known, other] = [server(0, 7, 1), server(1, 8, 5)];
        assert_eq!(latest(Some(known), &[other, known]), Some(known));
        assert_eq!(latest(Some(known), &[other]), Some(other));
    }

    #[test]
    fn where_timelines_are_hidden_the_known_primary_stays() {
        let hidden = |place| Primary {
            place,
            timeline: None,
        };
        assert_eq!(latest(None, &[hidden(1), hidden(0)]), Some(hidden(0)));
        assert_eq!(
            latest(Some(hidden(1)), &[hidden(0), hidden(1)]),
            Some(hidden(1))
        );
        assert_eq!(latest(Some(hidden(1)), &[hidden(0)]), Some(hidden(0)));
        assert_eq!(latest(None, &[]), None);
    }

    #[test]
    fn a_former_primary_is_refused_unless_it_is_the_only_server() {
        let list = |text: &str| Servers::new(&Addresses::parse(text).unwrap(), |options| options);
        let [one, two] = [
            list("postgres://a/x"),
            list("postgres://a/x,postgres://b/x"),
        ];
        assert!(two.is_former(server(0, 7, 1), Some(server(1, 7, 2))));
        assert!(
            !two.is_former(server(0, 8, 1), Some(server(1, 7, 2))),
            "another cluster has other numbers"
        );
        assert!(!two.is_former(server(0, 7, 3), Some(server(1, 7, 2))));
        assert!(
            !one.is_former(server(0, 7, 1), Some(server(0, 7, 2))),
            "it was restored"
        );
    }
}
