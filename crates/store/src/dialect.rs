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

/// Index of words in the shared text of the schema.
const WORD_INDEX: &str = "CREATE WORD INDEX search_index";

/// Index of words. Its tokens are words that are split already: ASCII tokens end at spaces, and
/// other characters are never touched. Beginnings of words are completed from the vocabulary.
const SQLITE_WORD_INDEX: &str = "CREATE VIRTUAL TABLE search_index USING fts5 (terms, \
    content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
    CREATE VIRTUAL TABLE search_vocabulary USING fts5vocab (search_index, row)";

/// Index of words. It has no list of pending entries, which every search would go through.
const POSTGRES_WORD_INDEX: &str = "CREATE TABLE search_index ( \
    rowid BIGINT NOT NULL PRIMARY KEY, terms TSVECTOR NOT NULL);
    CREATE INDEX search_index_terms ON search_index USING GIN (terms) WITH (fastupdate = off)";

/// Join of the entry of a number that was found.
const ENTRY_OF_FOUND: &str =
    "JOIN LATERAL (SELECT * FROM search_entry WHERE number = found LIMIT 1) entry ON TRUE";

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

    /// The clock of the database's server, in milliseconds since 1970.
    pub(crate) fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS BIGINT)",
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
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

    /// The comparison with a search pattern, and the position of a text in another one, in the
    /// words of this database.
    pub(crate) fn search_text(self, shared: &str) -> String {
        match self {
            Self::Sqlite => shared.to_owned(),
            Self::Postgres => shared.replace(" GLOB ", " ~ ").replace("instr(", "strpos("),
        }
    }

    /// A statement about the index of words. `search_index MATCH $1` compares with a query of
    /// [`Self::term`] and [`Self::beginning`], and `TERMS($2)` has terms between spaces.
    pub(crate) fn word_index_text(self, shared: &str) -> String {
        match self {
            Self::Sqlite => shared.replace("TERMS($2)", "$2"),
            Self::Postgres => shared
                .replace("search_index MATCH $1", "terms @@ CAST($1 AS TSQUERY)")
                // The order of the primary key leads through entries without the words.
                .replace("ORDER BY rowid DESC", "ORDER BY rowid + 0 DESC")
                // Entries are looked up one by one; a join would read all of them.
                .replace("JOIN search_entry ON number = found", ENTRY_OF_FOUND)
                .replace("TERMS($2)", "array_to_tsvector(string_to_array($2, ' '))"),
        }
    }

    /// Query of the index of words that finds a term.
    pub(crate) fn term(self, term: &str) -> String {
        match self {
            Self::Sqlite => format!("\"{term}\""),
            Self::Postgres => format!("'{term}'"),
        }
    }

    /// Query of the index of words that finds the terms that begin with a text.
    pub(crate) fn beginning(self, text: &str) -> String {
        match self {
            Self::Sqlite => format!("\"{text}\" *"),
            Self::Postgres => format!("'{text}':*"),
        }
    }

    /// Query of the index of words that finds what all of `queries` find.
    pub(crate) fn all_of(self, queries: &[String]) -> String {
        match self {
            Self::Sqlite => queries.join(" AND "),
            Self::Postgres => queries.join(" & "),
        }
    }

    /// Query of the index of words that finds what one of `queries` finds.
    pub(crate) fn any_of(self, queries: &[String]) -> String {
        match self {
            Self::Sqlite => format!("({})", queries.join(" OR ")),
            Self::Postgres => format!("({})", queries.join(" | ")),
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
            Self::Sqlite => shared.replace(WORD_INDEX, SQLITE_WORD_INDEX),
            Self::Postgres => shared
                .replace(WORD_INDEX, POSTGRES_WORD_INDEX)
                .replace(" WITHOUT ROWID", "")
                .replace(" INTEGER", " BIGINT GENERATED ALWAYS AS IDENTITY")
                .replace(" BLOB", " BYTEA")
                .replace(" DOUBLE", " DOUBLE PRECISION")
                .replace(" TEXT", " TEXT COLLATE \"C\""),
        }
    }
}
