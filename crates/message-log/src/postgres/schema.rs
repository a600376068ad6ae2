//! The tables, and the steps that bring older ones up to them. A step is never edited once landed.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::failure::outward;
use super::options::Connections;
use crate::Error;

const MIGRATIONS: &[&str] = &[FIRST, POLLS, QUOTAS, POLL_ENDS, FAILING, PAST, BACKLOG];

/// `completed_at IS NULL` says that a message is unfinished. Of an unfinished one, `due_at IS NULL`
/// says that it waits for another message of its ordering key.
///
/// `seq` is the number of a message's first event, from the one sequence of all events. The
/// sequence jumps ahead at the begin of each day, so that the days are ranges of `seq`, which
/// leads to the partition of the day: see `day.rs`. What belongs to a message is in the partitions
/// of the message's day, so that a day is dropped as a whole.
///
/// `token` is the `seq` of the message's last event, so that it is another one after every change
/// of state. Bodies stand apart because every change of state writes the row of `messages` anew.
///
/// `accepted_as` is the status at arrival. `granted_attempts` is the number of attempts that a
/// retry of a dead letter adds.
const FIRST: &str = r#"
CREATE SEQUENCE events AS BIGINT;

CREATE TABLE days (
    day BIGINT NOT NULL PRIMARY KEY,
    suffix TEXT NOT NULL
);

CREATE TABLE messages (
    seq BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    environment_id TEXT COLLATE "C" NOT NULL,
    flow_id TEXT COLLATE "C" NOT NULL,
    flow_name TEXT NOT NULL,
    flow_version BIGINT NOT NULL,
    trigger_kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    accepted_as TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    token BIGINT NOT NULL,
    due_at BIGINT,
    ordering_key TEXT COLLATE "C",
    attempts BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL,
    granted_attempts BIGINT NOT NULL,
    error_kind TEXT COLLATE "C",
    error_message TEXT,
    error_field TEXT,
    error_expression TEXT,
    received_at BIGINT NOT NULL,
    completed_at BIGINT,
    replay_of TEXT COLLATE "C",
    batch_id TEXT COLLATE "C",
    traceparent TEXT,
    PRIMARY KEY (seq)
) PARTITION BY RANGE (seq);
CREATE INDEX messages_flow ON messages (flow_id, received_at, seq) INCLUDE (flow_version);
CREATE INDEX messages_flow_status ON messages (flow_id, status, received_at, seq);
CREATE INDEX messages_open ON messages (owner, flow_id, due_at, seq) WHERE completed_at IS NULL;
CREATE INDEX messages_order ON messages (flow_id, ordering_key, due_at, seq)
    WHERE completed_at IS NULL AND ordering_key IS NOT NULL;

CREATE TABLE bodies (
    seq BIGINT NOT NULL,
    raw_body BYTEA NOT NULL,
    payload BYTEA,
    request BYTEA NOT NULL,
    PRIMARY KEY (seq)
) PARTITION BY RANGE (seq);

CREATE TABLE transitions (
    message BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT,
    error_kind TEXT COLLATE "C",
    error_message TEXT,
    error_field TEXT,
    error_expression TEXT,
    output BYTEA,
    trace TEXT,
    PRIMARY KEY (message, seq)
) PARTITION BY RANGE (message);
CREATE INDEX transitions_seq ON transitions (seq);

CREATE TABLE steps (
    message BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    status BIGINT NOT NULL,
    output BYTEA NOT NULL,
    PRIMARY KEY (message, name)
) PARTITION BY RANGE (message);

CREATE TABLE dedupe (
    flow_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, key)
);
CREATE INDEX dedupe_expires ON dedupe (expires_at);

CREATE TABLE leases (
    owner TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node_id TEXT COLLATE "C" NOT NULL,
    ttl_ms BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX leases_node ON leases (node_id);

CREATE TABLE saved_plans (
    flow_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    body BYTEA NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, version)
);
CREATE INDEX saved_plans_saved ON saved_plans (saved_at);
"#;

/// `state` is the state of the last poll, opaque to the log.
const POLLS: &str = r#"
CREATE TABLE polls (
    flow_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,
    token BIGINT NOT NULL,
    version BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    held_until BIGINT NOT NULL,
    state BYTEA NOT NULL
);

CREATE TABLE seen_records (
    flow_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, id)
);
CREATE INDEX seen_records_age ON seen_records (flow_id, seen_at);
"#;

/// `ledger` is what is known of a key's limits; empty when it has none. `turn` (historic name) is
/// the number of the last exchange of a node's boot. Rows of keys in use are written every second,
/// and stay on their pages.
const QUOTAS: &str = r#"
CREATE TABLE quotas (
    key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    ledger TEXT NOT NULL,
    request_count BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE quota_turns (
    owner TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    turn BIGINT NOT NULL,
    at BIGINT NOT NULL
) WITH (fillfactor = 50);
"#;

/// How the last cycle of a poll ended; `error` is null when it went well.
const POLL_ENDS: &str = "
ALTER TABLE polls ADD COLUMN ended_at BIGINT;
ALTER TABLE polls ADD COLUMN error TEXT;
";

/// Dead letters and retries of an environment, in the order of the log. All other messages have no
/// entry in it.
const FAILING: &str = "
CREATE INDEX messages_failing ON messages (environment_id, seq) \
    WHERE status IN ('dead_letter', 'retrying');
";

/// By `renewals` and the one row of `epoch`, nodes find that the log went back to an earlier copy:
/// see `lease`. Of two epochs the greater one is later.
const PAST: &str = r#"
ALTER TABLE leases ADD COLUMN renewals BIGINT NOT NULL DEFAULT 0;

CREATE TABLE epoch (
    only_row BOOLEAN NOT NULL PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch TEXT COLLATE "C" NOT NULL
);
INSERT INTO epoch (epoch) VALUES ('epoch_' || replace(gen_random_uuid()::text, '-', ''));
"#;

/// The backlog is counted on the index alone, as far as the visibility map goes. A planner without
/// statistics takes the youngest of several indexes, so that `messages_order` is made anew too.
const BACKLOG: &str = "
ALTER TABLE messages ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0;
DROP INDEX messages_open;
CREATE INDEX messages_open ON messages (owner, flow_id, due_at, seq) INCLUDE (size_bytes)
    WHERE completed_at IS NULL;
DROP INDEX messages_order;
CREATE INDEX messages_order ON messages (flow_id, ordering_key, due_at, seq)
    WHERE completed_at IS NULL AND ordering_key IS NOT NULL;
";

/// The second number of the lock under which tables are made and dropped.
pub(super) const TABLES_LOCK: i32 = 0;

const LOCK: &str = "SELECT pg_advisory_xact_lock($1, $2)";
const EXISTS: &str = "SELECT to_regnamespace($1) IS NOT NULL";
const VERSIONS: &str =
    "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)";
const CURRENT: &str = "SELECT coalesce(max(version), 0) FROM schema_version";
const RECORD: &str = "INSERT INTO schema_version (version) VALUES ($1)";

/// A statement about all days locks a partition of each, in a table that the whole server shares.
const LOCKS: &str = "SELECT current_setting('max_locks_per_transaction')::bigint";
const LOCKS_ADVISED: i64 = 256;

/// Warns of a server that may run out of locks when there are many days and many connections.
pub(super) async fn check_locks(conn: &mut PgConnection) -> sqlx::Result<()> {
    let locks: i64 = sqlx::query(LOCKS).fetch_one(conn).await?.try_get(0)?;
    if locks < LOCKS_ADVISED {
        tracing::warn!(
            max_locks_per_transaction = locks,
            advised = LOCKS_ADVISED,
            "this PostgreSQL server may run out of locks with weeks of messages and many nodes"
        );
    }
    Ok(())
}

/// The most connections that the server, the database and the role allow.
const CONNECTIONS: &str = "SELECT least(
    current_setting('max_connections')::bigint \
        - current_setting('superuser_reserved_connections')::bigint,
    (SELECT nullif(rolconnlimit, -1)::bigint FROM pg_roles WHERE rolname = current_user),
    (SELECT nullif(datconnlimit, -1)::bigint FROM pg_database WHERE datname = current_database()))";

/// Warns of a server that allows fewer connections than this process may want for its messages.
pub(super) async fn check_connections(conn: &mut PgConnection, wanted: u32) -> sqlx::Result<()> {
    let allowed: i64 = sqlx::query(CONNECTIONS).fetch_one(conn).await?.try_get(0)?;
    if allowed < i64::from(wanted) {
        tracing::warn!(
            allowed,
            wanted,
            "this PostgreSQL server allows fewer connections than this process may open for \
             messages alone: lower --log-readers, --log-workers and --log-writers",
        );
    }
    Ok(())
}

/// Brings the schema up to this build's, one process at a time.
pub(super) async fn migrate(
    conn: &mut PgConnection,
    connecting: &Connections,
) -> Result<(), Error> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    match run(conn, connecting, known).await.map_err(outward)? {
        found if found > known => Err(Error::NewerSchema { found, known }),
        _ => Ok(()),
    }
}

/// Gives the version found; changes nothing when that is newer.
async fn run(conn: &mut PgConnection, connecting: &Connections, known: i64) -> sqlx::Result<i64> {
    let mut tx = conn.begin().await?;
    sqlx::query(LOCK)
        .bind(connecting.space.keys)
        .bind(TABLES_LOCK)
        .execute(&mut *tx)
        .await?;
    let schema = connecting.schema.as_str();
    // Whoever may not make schemas can be given one.
    if !sqlx::query(EXISTS)
        .bind(schema)
        .fetch_one(&mut *tx)
        .await?
        .try_get::<bool, _>(0)?
    {
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(&mut *tx)
            .await?;
    }
    sqlx::raw_sql(VERSIONS).execute(&mut *tx).await?;
    let found: i64 = sqlx::query(CURRENT).fetch_one(&mut *tx).await?.try_get(0)?;
    for (version, migration) in (1..=known)
        .zip(MIGRATIONS)
        .skip_while(|(version, _)| *version <= found)
    {
        sqlx::raw_sql(*migration).execute(&mut *tx).await?;
        sqlx::query(RECORD).bind(version).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(found)
}
