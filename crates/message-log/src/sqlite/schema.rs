//! Tables of the file, and the migrations of older files. A migration is never edited once landed.

use rusqlite::{Connection, TransactionBehavior};

use crate::{Error, Result};

const MIGRATIONS: &[&str] = &[
    FIRST, POLLS, QUOTAS, POLL_ENDS, JOURNAL, FAILING, PROBE, BACKLOG,
];

/// `completed_at IS NULL` marks an unfinished message. `due_at IS NULL` marks an unfinished message
/// that waits for another one of its ordering key.
///
/// `token` is the `seq` of the message's last event, so that every change of state changes it. The
/// arrival of a message counts as an event: its sequence number is that of the message, and it has
/// no row in `transitions`.
///
/// `accepted_as` is the status at arrival. `granted_attempts` is the number of attempts that a
/// retry of a dead letter adds.
///
/// Bodies have a table of their own because every change of state rewrites the row of `messages`.
const FIRST: &str = "
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    environment_id TEXT NOT NULL,
    flow_id TEXT NOT NULL,
    flow_name TEXT NOT NULL,
    flow_version BIGINT NOT NULL,
    trigger_kind TEXT NOT NULL,
    status TEXT NOT NULL,
    accepted_as TEXT NOT NULL,
    owner TEXT NOT NULL,
    token BIGINT NOT NULL,
    due_at BIGINT,
    ordering_key TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL,
    granted_attempts BIGINT NOT NULL,
    error_kind TEXT,
    error_message TEXT,
    error_field TEXT,
    error_expression TEXT,
    received_at BIGINT NOT NULL,
    completed_at BIGINT,
    replay_of TEXT,
    batch_id TEXT,
    traceparent TEXT
);
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_flow ON messages (flow_id, received_at);
CREATE INDEX messages_flow_status ON messages (flow_id, status, received_at);
CREATE INDEX messages_open ON messages (owner, flow_id, due_at) WHERE completed_at IS NULL;
CREATE INDEX messages_order ON messages (flow_id, ordering_key, due_at)
    WHERE completed_at IS NULL AND ordering_key IS NOT NULL;

CREATE TABLE bodies (
    seq INTEGER PRIMARY KEY,
    raw_body BLOB NOT NULL,
    payload BLOB,
    request BLOB NOT NULL
);

CREATE TABLE transitions (
    seq INTEGER PRIMARY KEY,
    message BIGINT NOT NULL,
    at BIGINT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT,
    error_kind TEXT,
    error_message TEXT,
    error_field TEXT,
    error_expression TEXT,
    output BLOB,
    trace TEXT
);
CREATE INDEX transitions_message ON transitions (message);

CREATE TABLE steps (
    message BIGINT NOT NULL,
    name TEXT NOT NULL,
    status BIGINT NOT NULL,
    output BLOB NOT NULL,
    PRIMARY KEY (message, name)
) WITHOUT ROWID;

CREATE TABLE dedupe (
    flow_id TEXT NOT NULL,
    key TEXT NOT NULL,
    message_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, key)
) WITHOUT ROWID;
CREATE INDEX dedupe_expires ON dedupe (expires_at);

CREATE TABLE leases (
    owner TEXT NOT NULL PRIMARY KEY,
    node_id TEXT NOT NULL,
    ttl_ms BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE saved_plans (
    flow_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    body BLOB NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, version)
) WITHOUT ROWID;

CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('last_seq', 0);
";

/// `state` is the result of the last poll, which only nodes can read.
const POLLS: &str = "
CREATE TABLE polls (
    flow_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    token BIGINT NOT NULL,
    version BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    held_until BIGINT NOT NULL,
    state BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE seen_records (
    flow_id TEXT NOT NULL,
    id TEXT NOT NULL,
    hash TEXT NOT NULL,
    count BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, id)
) WITHOUT ROWID;
CREATE INDEX seen_records_age ON seen_records (flow_id, seen_at);
";

/// `ledger` is the state of a key's limits; empty when it has none. `turn` (historic name) is the
/// number of the last exchange of a node's boot.
const QUOTAS: &str = "
CREATE TABLE quotas (
    key_id TEXT NOT NULL PRIMARY KEY,
    ledger TEXT NOT NULL,
    request_count BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE quota_turns (
    owner TEXT NOT NULL PRIMARY KEY,
    turn BIGINT NOT NULL,
    at BIGINT NOT NULL
) WITHOUT ROWID;
";

/// End of the last cycle of a poll; `error` is null after a success.
const POLL_ENDS: &str = "
ALTER TABLE polls ADD COLUMN ended_at BIGINT;
ALTER TABLE polls ADD COLUMN error TEXT;
";

/// `folded_lots` (historic name: applied records) is the number of the last journal record that the
/// tables have. `journal_salt` is the salt of their journal.
const JOURNAL: &str = "
INSERT INTO counters (name, value) VALUES ('folded_lots', 0), ('journal_salt', 0);
";

/// Index of the dead letters and retries of an environment, in the order of the log.
const FAILING: &str = "
CREATE INDEX messages_failing ON messages (environment_id) \
    WHERE status IN ('dead_letter', 'retrying');
";

/// Table that is written while messages are refused, to detect that there is room again.
const PROBE: &str = "
CREATE TABLE probe (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    body BLOB NOT NULL
);
";

/// Index on which alone the backlog is counted. SQLite needs `completed_at` among its columns for
/// that, although it is always null there.
const BACKLOG: &str = "
ALTER TABLE messages ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0;
DROP INDEX messages_open;
CREATE INDEX messages_open ON messages (owner, flow_id, due_at, seq, completed_at, size_bytes)
    WHERE completed_at IS NULL;
";

/// Largest sequence number of a message or an event in the tables. It is smaller than
/// [`MAX_SEQ_EVER`] once retention has dropped the last events.
pub(super) const MAX_SEQ_IN_TABLES: &str = "
SELECT max((SELECT coalesce(max(seq), 0) FROM messages), (SELECT coalesce(max(seq), 0)
    FROM transitions))";

/// Largest sequence number that was ever taken, also of an event that retention dropped.
pub(super) const MAX_SEQ_EVER: &str = "
SELECT max((SELECT value FROM counters WHERE name = 'last_seq'),
           (SELECT coalesce(max(seq), 0) FROM messages),
           (SELECT coalesce(max(seq), 0) FROM transitions))";

/// Migrates the file to the current schema.
pub(super) fn migrate(conn: &mut Connection) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // Two processes may open a new file at once, because the lock of the folder is the caller's.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = tx.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if found > known {
        return Err(Error::NewerSchema { found, known });
    }
    for (done, migration) in MIGRATIONS
        .iter()
        .enumerate()
        .skip(usize::try_from(found).unwrap_or(0))
    {
        tx.execute_batch(migration)?;
        tx.execute_batch(&format!("PRAGMA user_version = {}", done + 1))?;
    }
    tx.commit()?;
    Ok(())
}

/// Returns the last sequence number that was ever taken, also of an event that retention dropped.
pub(super) fn last_seq(conn: &Connection) -> Result<i64> {
    Ok(conn.query_row(MAX_SEQ_EVER, (), |row| row.get(0))?)
}
