//! API keys of an account: their hashes, never their texts.

use kanat_model::Timestamp;
use kanat_model::audit::PrincipalType;
use kanat_model::id::{AccountId, ApiKeyId, EnvironmentId};

use crate::record::record;
use crate::statement::{lists, statements};

record! {
    pub struct ApiKey in "api_key" {
        pub id: ApiKeyId,
        pub account_id: AccountId,
        pub name: String,
        /// A role's text.
        pub role: String,
        /// The environment that the key is bound to.
        pub environment_id: Option<EnvironmentId>,
        pub sha256: [u8; 32],
        /// The first characters of the key.
        pub prefix: String,
        pub created_at: Timestamp,
        pub expires_at: Option<Timestamp>,
        pub last_used_at: Option<Timestamp>,
        /// Maker of the key: kind, id and name. Keys of earlier builds have none.
        pub created_by_type: Option<PrincipalType>,
        pub created_by_id: Option<String>,
        pub created_by_name: Option<String>,
    }
}

statements! {
    fn insert(..key: &ApiKey);

    /// The key of that hash, unless it was revoked; whether it has expired is the caller's to see.
    fn by_hash(sha256: &[u8; 32]) -> Option<ApiKey> =
        "SELECT {COLUMNS} FROM api_key WHERE sha256 = $1 AND deleted_at IS NULL";

    /// Returns the hashes of all keys that were not revoked.
    fn hashes() -> Vec<[u8; 32]> = "SELECT sha256 FROM api_key WHERE deleted_at IS NULL";

    fn get(account: &AccountId, id: &ApiKeyId) -> Option<ApiKey> =
        "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL";

    /// Returns the oldest key of this name that opens the whole account.
    fn oldest_owner(account: &AccountId, name: &str) -> Option<ApiKey> =
        "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND name = $2 AND role = 'owner' AND \
         environment_id IS NULL AND deleted_at IS NULL ORDER BY id LIMIT 1";

    /// How many other keys still open the whole account.
    fn other_owners(account: &AccountId, id: &ApiKeyId, now: Timestamp) -> u64 =
        "SELECT COUNT(*) AS total FROM api_key WHERE account_id = $1 AND id <> $2 AND role = \
         'owner' AND environment_id IS NULL AND deleted_at IS NULL AND (expires_at IS NULL OR \
         expires_at > $3)";

    /// Revokes a key; returns whether it existed.
    fn delete(account: &AccountId, id: &ApiKeyId, at: Timestamp) -> bool =
        "UPDATE api_key SET deleted_at = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS \
         NULL";

    fn used(id: &ApiKeyId, at: Timestamp) = "UPDATE api_key SET last_used_at = $2 WHERE id = $1";
}

lists! {
    /// The account's keys, newest first; of them those that are bound to an environment, unless it
    /// is empty.
    fn list(account: &AccountId, environment: &str) -> ApiKey =
        "FROM api_key WHERE account_id = $1 AND deleted_at IS NULL AND ($2 = '' OR environment_id \
         = $2)",
        "ORDER BY id DESC LIMIT $3 OFFSET $4";
}
