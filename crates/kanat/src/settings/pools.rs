//! Settings of the pools of connections to PostgreSQL.

use kanat_message_log::postgres;
use serde::{Deserialize, Serialize};

use super::{Problems, value};

/// Most connections for one purpose.
const MAX_CONNECTIONS: u32 = 1_000;

/// Settings of connection pools, as the command line, the environment and the file give them; each
/// may be left out.
#[derive(Default, Clone, clap::Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default)]
pub struct Flags {
    /// Most connections to the configuration store [default: 8].
    #[arg(long, env = "KANAT_STORE_CONNECTIONS")]
    pub store_connections: Option<u32>,
    /// Connections that write groups of messages to PostgreSQL at the same time [default: 2].
    #[arg(long, env = "KANAT_LOG_WRITERS")]
    pub log_writers: Option<u32>,
    /// Most connections that read messages from PostgreSQL: lists, searches, live streams [default:
    /// 4].
    #[arg(long, env = "KANAT_LOG_READERS")]
    pub log_readers: Option<u32>,
    /// Most connections for what else is done with messages in PostgreSQL: claims, leases, retries
    /// [default: 4].
    #[arg(long, env = "KANAT_LOG_WORKERS")]
    pub log_workers: Option<u32>,
}

/// The sizes of the pools, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    store: u32,
    log_writers: u32,
    log_readers: u32,
    log_workers: u32,
}

impl Flags {
    pub(super) fn check(&mut self, problems: &mut Problems) -> Settings {
        let store = kanat_store::Options::default();
        let log = postgres::Options::default();
        let mut size = |setting, count: &mut Option<u32>, usual| {
            let count = *count.get_or_insert(usual);
            problems.take(setting, value::within(count, 1..=MAX_CONNECTIONS, " is"))
        };
        Settings {
            store: size(
                "store_connections",
                &mut self.store_connections,
                store.connections,
            ),
            log_writers: size("log_writers", &mut self.log_writers, log.writers),
            log_readers: size("log_readers", &mut self.log_readers, log.readers),
            log_workers: size("log_workers", &mut self.log_workers, log.workers),
        }
    }
}

impl Settings {
    /// For the configuration store.
    pub fn store(&self) -> kanat_store::Options {
        kanat_store::Options {
            connections: self.store,
            ..Default::default()
        }
    }

    /// For the message log.
    pub fn log(&self) -> postgres::Options {
        postgres::Options {
            writers: self.log_writers,
            readers: self.log_readers,
            workers: self.log_workers,
            ..postgres::Options::default()
        }
    }
}
