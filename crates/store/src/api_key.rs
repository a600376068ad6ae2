//! API keys of an account: their hashes, never their texts.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, ApiKeyId, EnvironmentId};
use kanat_model::page::{ListPage, Page};

use crate::record::record;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
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
}

record! {
    ApiKey in "api_key" {
        id, account_id, name, role, environment_id, sha256, prefix, created_at, expires_at,
        last_used_at
    }
}

pub async fn insert(db: &mut Db, key: &ApiKey) -> Result<(), Error> {
    db.insert(key).await
}

const BY_HASH: &str = sql!(
    ApiKey,
    "SELECT {COLUMNS} FROM api_key WHERE sha256 = $1 AND deleted_at IS NULL"
);

/// The key of that hash, unless it was revoked; whether it has expired is the caller's to see.
pub async fn by_hash(db: &mut Db, sha256: &[u8; 32]) -> Result<Option<ApiKey>, Error> {
    db.first(BY_HASH, &[sha256]).await
}

const HASHES: &str = "SELECT sha256 FROM api_key WHERE deleted_at IS NULL";

/// Returns the hashes of all keys that were not revoked.
pub async fn hashes(db: &mut Db) -> Result<Vec<[u8; 32]>, Error> {
    db.all(HASHES, &[]).await
}

const COUNT: &str =
    "SELECT COUNT(*) AS total FROM api_key WHERE account_id = $1 AND deleted_at IS NULL";
const LIST: &str = sql!(
    ApiKey,
    "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND deleted_at IS NULL ORDER BY id DESC \
     LIMIT $2 OFFSET $3"
);

/// The account's keys, newest first.
pub async fn list(db: &mut Db, account: &AccountId, page: Page) -> Result<ListPage<ApiKey>, Error> {
    db.page(COUNT, LIST, &[account], page).await
}

const GET: &str = sql!(
    ApiKey,
    "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL"
);

pub async fn get(db: &mut Db, account: &AccountId, id: &ApiKeyId) -> Result<Option<ApiKey>, Error> {
    db.first(GET, &[account, id]).await
}

const OLDEST_OWNER: &str = sql!(
    ApiKey,
    "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND name = $2 AND role = 'owner' AND \
     environment_id IS NULL AND deleted_at IS NULL ORDER BY id LIMIT 1"
);

/// Returns the oldest key of this name that opens the whole account.
pub async fn oldest_owner(
    db: &mut Db,
    account: &AccountId,
    name: &str,
) -> Result<Option<ApiKey>, Error> {
    db.first(OLDEST_OWNER, &[account, &name]).await
}

const OTHER_OWNERS: &str = "SELECT COUNT(*) AS total FROM api_key WHERE account_id = $1 AND id <> \
                            $2 AND role = 'owner' AND environment_id IS NULL AND deleted_at IS \
                            NULL AND (expires_at IS NULL OR expires_at > $3)";

/// How many other keys still open the whole account.
pub async fn other_owners(
    db: &mut Db,
    account: &AccountId,
    id: &ApiKeyId,
    now: Timestamp,
) -> Result<u64, Error> {
    db.one(OTHER_OWNERS, &[account, id, &now]).await
}

const DELETE: &str =
    "UPDATE api_key SET deleted_at = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Revokes a key; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    account: &AccountId,
    id: &ApiKeyId,
    at: Timestamp,
) -> Result<bool, Error> {
    db.changes(DELETE, &[account, id, &at]).await
}

const USED: &str = "UPDATE api_key SET last_used_at = $2 WHERE id = $1";

pub async fn used(db: &mut Db, id: &ApiKeyId, at: Timestamp) -> Result<(), Error> {
    db.run(USED, &[id, &at]).await
}
