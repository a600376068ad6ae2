//! Settings of the pools of connections to PostgreSQL.

use kanat_message_log::postgres;

use super::{Problems, flags, value};

/// Most connections for one purpose.
const MAX_CONNECTIONS: u32 = 1_000;

flags! {
    /// Settings of connection pools, as the command line, the environment and the file give them;
    /// each may be left out.
    pub struct Flags {
        /// Most connections to the configuration store [default: 8].
        "KANAT_STORE_CONNECTIONS" => store_connections: Option<u32>,
        /// Connections that write groups of messages to PostgreSQL at the same time [default: 2].
        "KANAT_LOG_WRITERS" => log_writers: Option<u32>,
        /// Most connections that read messages from PostgreSQL: lists, searches, live streams
        /// [default: 4].
        "KANAT_LOG_READERS" => log_readers: Option<u32>,
        /// Most connections for what else is done with messages in PostgreSQL: claims, leases,
        /// retries [default: 4].
        "KANAT_LOG_WORKERS" => log_workers: Option<u32>,
    }
}

/// The pools, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    pub store: kanat_store::Options,
    pub log: postgres::Options,
}

impl Flags {
    pub(super) fn check(&mut self, problems: &mut Problems) -> Settings {
        let mut store = kanat_store::Options::default();
        let mut log = postgres::Options::default();
        for (setting, asked, size) in [
            (
                "store_connections",
                &mut self.store_connections,
                &mut store.connections,
            ),
            ("log_writers", &mut self.log_writers, &mut log.writers),
            ("log_readers", &mut self.log_readers, &mut log.readers),
            ("log_workers", &mut self.log_workers, &mut log.workers),
        ] {
            let asked = *asked.get_or_insert(*size);
            *size = problems.take(setting, value::within(asked, 1..=MAX_CONNECTIONS, " is"));
        }
        Settings { store, log }
    }
}
