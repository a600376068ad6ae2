//! Options of the log, and the connections to its database.

use std::time::Duration;

use kanat_database::pool::Settings;
use kanat_database::{Addresses, Patience, Servers, Session};
use sha2::{Digest, Sha256};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

pub use crate::sqlite::Durability;

use super::pool::Pool;
use crate::Error;

/// Time after which a call without a free connection fails.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest time for an answer, which is beyond the statement timeout of the database.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
const STATEMENTS: usize = 200;

/// Settings of every connection. Transactions of the log are short. An idle one belongs to a
/// process that was stopped, and must not keep other processes from its keys and rows, so the
/// database ends it first.
const SETTINGS: &[(&str, &str)] = &[
    ("idle_in_transaction_session_timeout", "5s"),
    ("lock_timeout", "10s"),
    ("statement_timeout", "30s"),
    // All our statements find their rows by an index, one by one, and are planned once: a table
    // that was empty when the database last counted its rows must not be read as a whole later. So
    // what is cheap for few rows and dear for many is off, and a page is no dearer than the rows in
    // it.
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_material", "off"),
    ("random_page_cost", "0.01"),
    ("seq_page_cost", "0.01"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
    ("client_min_messages", "warning"),
    // Whatever the server's own default is.
    ("default_transaction_isolation", "read committed"),
];

/// Options of the log.
#[derive(Debug, Clone)]
pub struct Options {
    /// The schema that the tables stand in, so that the database may hold other things: a letter,
    /// then at most 40 letters, digits and `_`, all in lower case.
    pub schema: String,
    pub durability: Durability,
    /// Number of operations that may wait in each of the two queues. Beyond it, an append is
    /// refused as full, and any other operation waits for a place.
    pub max_queued_operations: usize,
    /// Bytes of waiting operations beyond which an append is refused as full. They do not bound
    /// other operations.
    pub max_queued_bytes: usize,
    /// Connections that write groups at the same time; what has an ordering key or is checked for
    /// repeats has one more to itself.
    pub writers: u32,
    /// Most connections for reading: lists, searches, streams.
    pub readers: u32,
    /// Most connections for claims, leases and everything else that writes outside of groups.
    pub workers: u32,
    /// Longest that the database may take to answer a call. Its connection is given up then.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "kanat_log".to_owned(),
            durability: Durability::Full,
            max_queued_operations: 8_192,
            max_queued_bytes: 64 * 1024 * 1024,
            writers: 2,
            readers: 4,
            workers: 4,
            patience: ANSWER_TIMEOUT,
        }
    }
}

impl Options {
    /// Returns the most connections of an open log: one more than the writers for what has keys,
    /// and one that listens.
    pub(super) fn connections(&self) -> u32 {
        self.writers.max(1) + self.readers.max(1) + self.workers.max(1) + 2
    }
}

/// Access to the database: its servers, schema and locks.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pub schema: String,
    /// For the advisory locks of this schema alone.
    pub space: LockSpace,
    pub servers: Servers,
    patience: Duration,
}

/// Advisory locks belong to the whole database, so those of each schema have numbers of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockSpace {
    /// The first of two numbers.
    pub keys: i32,
    /// The upper ten bits of one number, never zero.
    pub groups: i64,
}

impl Connections {
    /// Errors when an address or the schema's name cannot be used. No address is repeated, for the
    /// password's sake.
    pub fn new(address: &str, options: &Options) -> Result<Self, Error> {
        if !is_schema_name(&options.schema) {
            return Err(Error::Other(format!(
                "{:?} is no name for a schema",
                options.schema
            )));
        }
        let addresses =
            Addresses::parse(address).map_err(|error| Error::Other(error.to_string()))?;
        let servers = Servers::new(&addresses, |server| adapt(server, options));
        let space = LockSpace::new(&options.schema);
        Ok(Self {
            schema: options.schema.clone(),
            space,
            servers,
            patience: options.patience,
        })
    }

    /// Opens a connection outside of the pools.
    pub async fn session(&self) -> sqlx::Result<Session> {
        self.servers.connect(self.patience).await
    }

    /// Returns the time limit for a call that takes a connection from a pool now.
    pub fn patience(&self) -> Patience {
        self.servers.patience(self.patience)
    }

    /// Returns a pool for tests.
    #[cfg(test)]
    pub fn pool(&self, connections: u32) -> sqlx::PgPool {
        self.calls(connections).current()
    }

    /// Returns a pool of connections for calls.
    pub fn calls(&self, connections: u32) -> Pool {
        let settings = Settings {
            of: "the message log",
            connections,
            acquire_within: ACQUIRE_TIMEOUT,
            patience: Some(self.patience),
            setup: &[],
        };
        Pool::at(&self.servers, self.servers.options().cloned(), settings)
    }
}

/// Adds the settings of the log to the connections to a server.
fn adapt(server: PgConnectOptions, options: &Options) -> PgConnectOptions {
    let synchronous_commit = match options.durability {
        Durability::Full => "on",
        Durability::RelaxedMayLoseAckedMessages => "off",
    };
    server
        .application_name("kanat message log")
        .statement_cache_capacity(STATEMENTS)
        .options(SETTINGS.iter().copied())
        .options([
            ("search_path", options.schema.as_str()),
            ("synchronous_commit", synchronous_commit),
        ])
        .disable_statement_logging()
}

impl LockSpace {
    fn new(schema: &str) -> Self {
        let hash = Sha256::digest(format!("kanat message log {schema}"));
        let keys = i32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        let groups = i64::from(u16::from_be_bytes([hash[4], hash[5]]) % 1_023) + 1;
        Self { keys, groups }
    }
}

fn is_schema_name(text: &str) -> bool {
    let mut letters = text.bytes();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && text.len() <= 41
        && letters
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_names_that_need_no_quotes() {
        for good in ["kanat_log", "a", "log2"] {
            assert!(is_schema_name(good), "{good}");
        }
        for bad in [
            "",
            "2log",
            "_log",
            "Kanat",
            "a-b",
            "a; drop table x",
            "ü",
            &"a".repeat(42),
        ] {
            assert!(!is_schema_name(bad), "{bad}");
        }
    }

    #[test]
    fn says_nothing_of_a_password() {
        let options = Options::default();
        let error = Connections::new("postgres://me:hunter2@host:no_port/x", &options).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
