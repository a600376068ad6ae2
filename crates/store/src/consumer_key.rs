//! Keys of the consumers of published APIs: their hashes, never their texts. Revoked ones stay.

use kanat_model::Timestamp;
use kanat_model::consumer_key::Standing;
use kanat_model::id::{ConsumerKeyId, EnvironmentId, PublishedApiId};

use crate::record::record;
use crate::statement::{lists, statements};

record! {
    pub struct ConsumerKey in "consumer_key" {
        pub id: ConsumerKeyId,
        pub api_id: PublishedApiId,
        pub consumer: String,
        /// First characters of the key's text.
        pub prefix: String,
        pub sha256: [u8; 32],
        /// None for no limit, here and below.
        pub rate_limit_per_second: Option<u32>,
        pub daily_limit: Option<u32>,
        pub standing: Standing { suspended, expires_at, revoked_at },
        /// The key that it was made in the place of.
        pub rotated_from: Option<ConsumerKeyId>,
        pub created_at: Timestamp,
    }
}

statements! {
    fn insert(..key: &ConsumerKey);

    /// Makes other changes of the key wait for the end of this transaction.
    fn lock(api: &PublishedApiId, id: &ConsumerKeyId) =
        "UPDATE consumer_key SET suspended = suspended WHERE api_id = $1 AND id = $2";

    fn get(api: &PublishedApiId, id: &ConsumerKeyId) -> Option<ConsumerKey> =
        "SELECT {COLUMNS} FROM consumer_key WHERE api_id = $1 AND id = $2";

    /// Ends the API's keys whose grace is over, and gives their ids.
    fn end_expired(api: &PublishedApiId, now: Timestamp) -> Vec<ConsumerKeyId> =
        "UPDATE consumer_key SET revoked_at = expires_at WHERE api_id = $1 AND expires_at <= $2 \
         AND revoked_at IS NULL RETURNING id";

    /// The APIs with keys whose grace is over and that have not ended, with their environments.
    fn with_expired(now: Timestamp) -> Vec<(EnvironmentId, PublishedApiId)> =
        "SELECT DISTINCT a.environment_id AS environment_id, a.id AS id FROM consumer_key k JOIN \
         published_api a ON a.id = k.api_id WHERE k.expires_at <= $1 AND k.revoked_at IS NULL \
         ORDER BY a.id";

    /// Ends all keys of the API, and gives the ids of those that had not ended.
    fn end_all(api: &PublishedApiId, now: Timestamp) -> Vec<ConsumerKeyId> =
        "UPDATE consumer_key SET revoked_at = $2 WHERE api_id = $1 AND revoked_at IS NULL \
         RETURNING id";

    /// Writes limits and standing.
    fn update(..key: &ConsumerKey) =
        "UPDATE consumer_key SET rate_limit_per_second = {rate_limit_per_second}, daily_limit = \
         {daily_limit}, suspended = {suspended}, expires_at = {expires_at}, revoked_at = \
         {revoked_at} WHERE api_id = {api_id} AND id = {id}";
}

lists! {
    /// The API's keys, newest first; an empty `consumer` is any.
    fn list(api: &PublishedApiId, consumer: &str) -> ConsumerKey =
        "FROM consumer_key WHERE api_id = $1 AND ($2 = '' OR consumer = $2)",
        "ORDER BY id DESC LIMIT $3 OFFSET $4";
}
