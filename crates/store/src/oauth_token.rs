//! Tokens of the OAuth2 clients of connector instances, sealed. A control plane that asks a
//! provider for new tokens holds a lease meanwhile, which fences the write of the outcome.

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, InstanceId};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthToken {
    pub instance_id: InstanceId,
    pub environment_id: EnvironmentId,
    /// Sealed; absent until the provider gave some.
    pub tokens: Option<Vec<u8>>,
    pub expires_at: Option<Timestamp>,
    /// When new ones are due; absent when nothing is to be waited for.
    pub refresh_at: Option<Timestamp>,
    /// Attempts in a row that failed and may be made again.
    pub failures: u32,
    /// Why the provider will give no more; empty while it does.
    pub refused: String,
}

/// Lease of a token request: its holder, and its end.
#[derive(Debug, Clone, Copy)]
pub struct Lease<'a> {
    pub holder: &'a str,
    pub until: Timestamp,
}

/// Environments whose tokens are left alone for now, because enough of theirs are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftAlone {
    /// Environments of which no tokens are refreshed.
    pub all: Vec<EnvironmentId>,
    /// Environments of which tokens are left alone only where the last attempt failed.
    pub failing: Vec<EnvironmentId>,
}

impl LeftAlone {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.failing.is_empty()
    }
}

/// A list that queries find an id in: ids have no spaces.
fn listed(ids: &[EnvironmentId]) -> String {
    let mut list = " ".to_owned();
    for id in ids {
        list.push_str(id.as_str());
        list.push(' ');
    }
    list
}

/// Columns that make up a row.
const COLUMNS: &str = "instance_id, environment_id, tokens, expires_at, refresh_at, failures, \
                       refused";

fn read(row: &AnyRow) -> Result<OauthToken, Error> {
    Ok(OauthToken {
        instance_id: row.id("instance_id")?,
        environment_id: row.id("environment_id")?,
        tokens: row.optional_bytes("tokens")?,
        expires_at: row.optional_time("expires_at")?,
        refresh_at: row.optional_time("refresh_at")?,
        failures: row.whole("failures")?,
        refused: row.text("refused")?,
    })
}

const PUT: &str = "INSERT INTO oauth_token (instance_id, environment_id, tokens, expires_at, \
                   refresh_at, failures, refused, lease_holder, lease_until, updated_at) VALUES \
                   ($1, $2, $3, $4, $5, $6, $7, '', 0, $8) ON CONFLICT (instance_id) DO UPDATE \
                   SET tokens = excluded.tokens, expires_at = excluded.expires_at, refresh_at = \
                   excluded.refresh_at, failures = excluded.failures, refused = excluded.refused, \
                   lease_holder = '', lease_until = 0, updated_at = excluded.updated_at";

/// Writes what an instance holds, whatever it held before; whoever holds a lease loses it.
pub async fn put(db: &mut Db, token: &OauthToken, now: Timestamp) -> Result<(), Error> {
    sqlx::query(PUT)
        .bind(token.instance_id.as_str())
        .bind(token.environment_id.as_str())
        .bind(token.tokens.as_deref())
        .bind(token.expires_at.map(Timestamp::as_millis))
        .bind(token.refresh_at.map(Timestamp::as_millis))
        .bind(i64::from(token.failures))
        .bind(token.refused.as_str())
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = sql!("SELECT {COLUMNS} FROM oauth_token WHERE instance_id = $1");

/// Returns the tokens of an instance.
pub async fn get(db: &mut Db, instance: &InstanceId) -> Result<Option<OauthToken>, Error> {
    let row = sqlx::query(GET)
        .bind(instance.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

/// First time at which a refresh is due. A row under a lease counts from the end of the lease.
const FIRST: &str = "SELECT min(due) AS due FROM (SELECT refresh_at AS due FROM (SELECT \
                     refresh_at FROM oauth_token WHERE refresh_at IS NOT NULL AND lease_until <= \
                     $1 AND $2 NOT LIKE '% ' || environment_id || ' %' AND (failures = 0 OR $3 \
                     NOT LIKE '% ' || environment_id || ' %') ORDER BY refresh_at LIMIT 1) AS \
                     free UNION ALL SELECT min(lease_until) FROM oauth_token WHERE refresh_at <= \
                     $1 AND lease_until > $1) AS first";

/// When the first new tokens are due that nobody asks for by then, but for those that are left
/// alone; it may be long ago.
pub async fn first(
    db: &mut Db,
    now: Timestamp,
    left_alone: &LeftAlone,
) -> Result<Option<Timestamp>, Error> {
    sqlx::query(FIRST)
        .bind(now.as_millis())
        .bind(listed(&left_alone.all))
        .bind(listed(&left_alone.failing))
        .fetch_one(db)
        .await?
        .optional_time("due")
}

// The outer conditions are looked at again where another transaction was first.
const CLAIM: &str = sql!(
    "UPDATE oauth_token SET lease_holder = $1, lease_until = $2 WHERE instance_id = (SELECT \
     instance_id FROM oauth_token WHERE refresh_at <= $3 AND lease_until <= $3 AND $4 NOT \
     LIKE '% ' || environment_id || ' %' AND (failures = 0 OR $5 NOT LIKE '% ' || \
     environment_id || ' %') ORDER BY refresh_at, instance_id LIMIT 1) AND refresh_at <= $3 \
     AND lease_until <= $3 RETURNING {COLUMNS}"
);

/// Takes the lease of one whose new tokens are due, that nobody has and that is not left alone;
/// none when there is none, or when somebody was faster.
pub async fn claim(
    db: &mut Db,
    lease: Lease<'_>,
    now: Timestamp,
    left_alone: &LeftAlone,
) -> Result<Option<OauthToken>, Error> {
    let row = sqlx::query(CLAIM)
        .bind(lease.holder)
        .bind(lease.until.as_millis())
        .bind(now.as_millis())
        .bind(listed(&left_alone.all))
        .bind(listed(&left_alone.failing))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const EXPEDITE: &str = "UPDATE oauth_token SET refresh_at = $3 WHERE instance_id = $1 AND tokens \
                        = $2 AND refused = '' AND failures = 0 AND (refresh_at IS NULL OR \
                        refresh_at > $3)";

/// Makes new tokens due at once, as long as `tokens`, sealed, are what the instance holds and
/// asking for others has not failed; `false` when that is not so, or they are due.
pub async fn expedite(
    db: &mut Db,
    instance: &InstanceId,
    tokens: &[u8],
    now: Timestamp,
) -> Result<bool, Error> {
    let done = sqlx::query(EXPEDITE)
        .bind(instance.as_str())
        .bind(tokens)
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}

const SETTLE: &str = "UPDATE oauth_token SET tokens = $3, expires_at = $4, refresh_at = $5, \
                      failures = $6, refused = $7, lease_holder = '', lease_until = 0, updated_at \
                      = $8 WHERE instance_id = $1 AND lease_holder = $2";

/// Writes the outcome and gives the lease back; `false` when the lease is another's by now, and
/// nothing is written.
pub async fn settle(
    db: &mut Db,
    holder: &str,
    token: &OauthToken,
    now: Timestamp,
) -> Result<bool, Error> {
    let done = sqlx::query(SETTLE)
        .bind(token.instance_id.as_str())
        .bind(holder)
        .bind(token.tokens.as_deref())
        .bind(token.expires_at.map(Timestamp::as_millis))
        .bind(token.refresh_at.map(Timestamp::as_millis))
        .bind(i64::from(token.failures))
        .bind(token.refused.as_str())
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}

const DELETE: &str = "DELETE FROM oauth_token WHERE instance_id = $1";

pub async fn delete(db: &mut Db, instance: &InstanceId) -> Result<(), Error> {
    sqlx::query(DELETE)
        .bind(instance.as_str())
        .execute(db)
        .await?;
    Ok(())
}
