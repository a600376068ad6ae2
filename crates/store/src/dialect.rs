//! Differences between SQLite and PostgreSQL; everything else is one text.

/// The database behind a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// Bounds of a session, whatever the server or the role sets for everybody. A statement ends before
/// a store has no more patience. A process that was stopped in a transaction does not keep the
/// others from its rows for long.
const POSTGRES_SETUP: &str = "SET synchronous_commit = on;
    SET statement_timeout = '25s';
    SET lock_timeout = 0;
    SET idle_in_transaction_session_timeout = '60s'";

impl Dialect {
    /// Begins a transaction that writes. On SQLite it takes the write lock at once: one that took
    /// it later could fail halfway because another wrote in between.
    pub(crate) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Begins a transaction that reads one state of the database throughout.
    pub(crate) fn begin_read(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Run on every new connection. An answer of success means that the change is on disk.
    pub(crate) fn connection_setup(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &[
                "PRAGMA busy_timeout = 10000",
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA foreign_keys = ON",
            ],
            Self::Postgres => &[POSTGRES_SETUP],
        }
    }

    /// Makes migrations run one at a time, also when several processes start at once.
    pub(crate) fn migration_lock(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some("SELECT CAST(pg_advisory_xact_lock(4912673304) AS TEXT)"),
        }
    }

    /// The comparison with a search pattern in the words of this database.
    pub(crate) fn search_text(self, shared: &str) -> String {
        match self {
            Self::Sqlite => shared.to_owned(),
            Self::Postgres => shared.replace(" GLOB ", " ~ "),
        }
    }

    /// A statement that shows bytes in hexadecimal digits, in the words of this database. Digits
    /// are upper case.
    pub(crate) fn hex_text(self, shared: &str) -> String {
        match self {
            Self::Sqlite => shared.to_owned(),
            Self::Postgres => {
                shared.replace("hex(state_sha256)", "upper(encode(state_sha256, 'hex'))")
            }
        }
    }

    /// The types of the shared text in the words of this database. Texts are ordered by their bytes
    /// and told apart without regard to language, as SQLite does, whatever the locale of the server
    /// is.
    pub(crate) fn schema_text(self, shared: &str) -> String {
        match self {
            Self::Sqlite => shared.to_owned(),
            Self::Postgres => shared
                .replace(" BLOB", " BYTEA")
                .replace(" DOUBLE", " DOUBLE PRECISION")
                .replace(" TEXT", " TEXT COLLATE \"C\""),
        }
    }
}
