//! Tokens of the OAuth2 clients of connector instances, sealed. A control plane that asks a
//! provider for new tokens holds a lease meanwhile, which fences the write of the outcome.

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, InstanceId};

use crate::record::record;
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Result};

record! {
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
    let ids: Vec<&str> = ids.iter().map(EnvironmentId::as_str).collect();
    format!(" {} ", ids.join(" "))
}

statements! {
    /// Writes what an instance holds, whatever it held before; whoever holds a lease loses it.
    fn put(..token: &OauthToken, now: Timestamp) =
        "INSERT INTO oauth_token ({COLUMNS}, lease_holder, lease_until, updated_at) VALUES \
         ({VALUES}, '', 0, $8) ON CONFLICT (instance_id) DO UPDATE SET tokens = excluded.tokens, \
         expires_at = excluded.expires_at, refresh_at = excluded.refresh_at, failures = \
         excluded.failures, refused = excluded.refused, lease_holder = '', lease_until = 0, \
         updated_at = excluded.updated_at";

    /// Returns the tokens of an instance.
    fn get(instance: &InstanceId) -> Option<OauthToken> =
        "SELECT {COLUMNS} FROM oauth_token WHERE instance_id = $1";

    /// Makes new tokens due at once, as long as `tokens`, sealed, are what the instance holds and
    /// asking for others has not failed; `false` when that is not so, or they are due.
    fn expedite(instance: &InstanceId, tokens: &[u8], now: Timestamp) -> bool =
        "UPDATE oauth_token SET refresh_at = $3 WHERE instance_id = $1 AND tokens = $2 AND \
         refused = '' AND failures = 0 AND (refresh_at IS NULL OR refresh_at > $3)";

    /// Writes the outcome and gives the lease back; `false` when the lease is another's by now, and
    /// nothing is written.
    fn settle(..token: &OauthToken, now: Timestamp, holder: &str) -> bool =
        "UPDATE oauth_token SET tokens = {tokens}, expires_at = {expires_at}, refresh_at = \
         {refresh_at}, failures = {failures}, refused = {refused}, lease_holder = '', lease_until \
         = 0, updated_at = $8 WHERE instance_id = {instance_id} AND lease_holder = $9";

    fn delete(instance: &InstanceId) = "DELETE FROM oauth_token WHERE instance_id = $1";
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
) -> Result<Option<Timestamp>> {
    db.one(
        FIRST,
        &[&now, &listed(&left_alone.all), &listed(&left_alone.failing)],
    )
    .await
}

// The outer conditions are looked at again where another transaction was first.
const CLAIM: &str = sql!(
    OauthToken,
    "UPDATE oauth_token SET lease_holder = $1, lease_until = $2 WHERE instance_id = (SELECT \
     instance_id FROM oauth_token WHERE refresh_at <= $3 AND lease_until <= $3 AND $4 NOT LIKE '% \
     ' || environment_id || ' %' AND (failures = 0 OR $5 NOT LIKE '% ' || environment_id || ' %') \
     ORDER BY refresh_at, instance_id LIMIT 1) AND refresh_at <= $3 AND lease_until <= $3 \
     RETURNING {COLUMNS}"
);

/// Takes the lease of one whose new tokens are due, that nobody has and that is not left alone;
/// none when there is none, or when somebody was faster.
pub async fn claim(
    db: &mut Db,
    lease: Lease<'_>,
    now: Timestamp,
    left_alone: &LeftAlone,
) -> Result<Option<OauthToken>> {
    db.first(
        CLAIM,
        &[
            &lease.holder,
            &lease.until,
            &now,
            &listed(&left_alone.all),
            &listed(&left_alone.failing),
        ],
    )
    .await
}
