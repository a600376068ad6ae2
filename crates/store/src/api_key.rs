//! API keys of an account: their hashes, never their texts.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, ApiKeyId, EnvironmentId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
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

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, name, role, environment_id, sha256, prefix, created_at, \
                       expires_at, last_used_at";

fn read(row: &AnyRow) -> Result<ApiKey, Error> {
    Ok(ApiKey {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        name: row.text("name")?,
        role: row.text("role")?,
        environment_id: row
            .optional_text("environment_id")?
            .map(EnvironmentId::from),
        sha256: row.hash("sha256")?,
        prefix: row.text("prefix")?,
        created_at: row.time("created_at")?,
        expires_at: row.optional_time("expires_at")?,
        last_used_at: row.optional_time("last_used_at")?,
    })
}

const INSERT: &str =
    sql!("INSERT INTO api_key ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");

pub async fn insert(db: &mut Db, key: &ApiKey) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(key.id.as_str())
        .bind(key.account_id.as_str())
        .bind(key.name.as_str())
        .bind(key.role.as_str())
        .bind(key.environment_id.as_ref().map(|id| id.as_str().to_owned()))
        .bind(key.sha256.as_slice())
        .bind(key.prefix.as_str())
        .bind(key.created_at.as_millis())
        .bind(key.expires_at.map(Timestamp::as_millis))
        .bind(key.last_used_at.map(Timestamp::as_millis))
        .execute(db)
        .await?;
    Ok(())
}

const BY_HASH: &str =
    sql!("SELECT {COLUMNS} FROM api_key WHERE sha256 = $1 AND deleted_at IS NULL");

/// The key of that hash, unless it was revoked; whether it has expired is the caller's to see.
pub async fn by_hash(db: &mut Db, sha256: &[u8; 32]) -> Result<Option<ApiKey>, Error> {
    let row = sqlx::query(BY_HASH)
        .bind(sha256.as_slice())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const HASHES: &str = "SELECT sha256 FROM api_key WHERE deleted_at IS NULL";

/// Returns the hashes of all keys that were not revoked.
pub async fn hashes(db: &mut Db) -> Result<Vec<[u8; 32]>, Error> {
    let rows = sqlx::query(HASHES).fetch_all(db).await?;
    rows.iter().map(|row| row.hash("sha256")).collect()
}

const COUNT: &str =
    "SELECT COUNT(*) AS total FROM api_key WHERE account_id = $1 AND deleted_at IS NULL";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND deleted_at IS NULL ORDER BY id \
     DESC LIMIT $2 OFFSET $3"
);

/// The account's keys, newest first.
pub async fn list(db: &mut Db, account: &AccountId, page: Page) -> Result<ListPage<ApiKey>, Error> {
    let total = sqlx::query(COUNT)
        .bind(account.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST)
        .bind(account.as_str())
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    Ok(ListPage {
        items: rows.iter().map(read).collect::<Result<_, _>>()?,
        total,
        page,
    })
}

const GET: &str =
    sql!("SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL");

pub async fn get(db: &mut Db, account: &AccountId, id: &ApiKeyId) -> Result<Option<ApiKey>, Error> {
    let row = sqlx::query(GET)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const OLDEST_OWNER: &str = sql!(
    "SELECT {COLUMNS} FROM api_key WHERE account_id = $1 AND name = $2 AND role = 'owner' AND \
     environment_id IS NULL AND deleted_at IS NULL ORDER BY id LIMIT 1"
);

/// Returns the oldest key of this name that opens the whole account.
pub async fn oldest_owner(
    db: &mut Db,
    account: &AccountId,
    name: &str,
) -> Result<Option<ApiKey>, Error> {
    let row = sqlx::query(OLDEST_OWNER)
        .bind(account.as_str())
        .bind(name)
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
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
    sqlx::query(OTHER_OWNERS)
        .bind(account.as_str())
        .bind(id.as_str())
        .bind(now.as_millis())
        .fetch_one(db)
        .await?
        .whole("total")
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
    let done = sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}

const USED: &str = "UPDATE api_key SET last_used_at = $2 WHERE id = $1";

pub async fn used(db: &mut Db, id: &ApiKeyId, at: Timestamp) -> Result<(), Error> {
    sqlx::query(USED)
        .bind(id.as_str())
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}
