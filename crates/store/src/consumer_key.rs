//! Keys of the consumers of published APIs: their hashes, never their texts. Revoked ones stay.

use kanat_model::Timestamp;
use kanat_model::consumer_key::Standing;
use kanat_model::id::{ConsumerKeyId, EnvironmentId, PublishedApiId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerKey {
    pub id: ConsumerKeyId,
    pub api_id: PublishedApiId,
    pub consumer: String,
    /// First characters of the key's text.
    pub prefix: String,
    pub sha256: [u8; 32],
    /// None for no limit, here and below.
    pub rate_limit_per_second: Option<u32>,
    pub daily_limit: Option<u32>,
    pub standing: Standing,
    /// The key that it was made in the place of.
    pub rotated_from: Option<ConsumerKeyId>,
    pub created_at: Timestamp,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, api_id, consumer, prefix, sha256, rate_limit_per_second, \
                       daily_limit, suspended, rotated_from, created_at, expires_at, \
                       revoked_at";

fn read(row: &AnyRow) -> Result<ConsumerKey, Error> {
    let limit = |column| {
        let Some(number) = row.optional_number(column)? else {
            return Ok(None);
        };
        u32::try_from(number).map(Some).map_err(|_| Error::Corrupt {
            column,
            value: number.to_string(),
        })
    };
    Ok(ConsumerKey {
        id: row.id("id")?,
        api_id: row.id("api_id")?,
        consumer: row.text("consumer")?,
        prefix: row.text("prefix")?,
        sha256: row.hash("sha256")?,
        rate_limit_per_second: limit("rate_limit_per_second")?,
        daily_limit: limit("daily_limit")?,
        standing: Standing {
            suspended: row.flag("suspended")?,
            expires_at: row.optional_time("expires_at")?,
            revoked_at: row.optional_time("revoked_at")?,
        },
        rotated_from: row.optional_text("rotated_from")?.map(ConsumerKeyId::from),
        created_at: row.time("created_at")?,
    })
}

const INSERT: &str = sql!(
    "INSERT INTO consumer_key ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
     $11, $12)"
);

pub async fn insert(db: &mut Db, key: &ConsumerKey) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(key.id.as_str())
        .bind(key.api_id.as_str())
        .bind(key.consumer.as_str())
        .bind(key.prefix.as_str())
        .bind(key.sha256.as_slice())
        .bind(key.rate_limit_per_second.map(i64::from))
        .bind(key.daily_limit.map(i64::from))
        .bind(i64::from(key.standing.suspended))
        .bind(key.rotated_from.as_ref().map(|id| id.as_str().to_owned()))
        .bind(key.created_at.as_millis())
        .bind(key.standing.expires_at.map(Timestamp::as_millis))
        .bind(key.standing.revoked_at.map(Timestamp::as_millis))
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = sql!("SELECT {COLUMNS} FROM consumer_key WHERE api_id = $1 AND id = $2");

pub async fn get(
    db: &mut Db,
    api: &PublishedApiId,
    id: &ConsumerKeyId,
) -> Result<Option<ConsumerKey>, Error> {
    let row = sqlx::query(GET)
        .bind(api.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str =
    "SELECT COUNT(*) AS total FROM consumer_key WHERE api_id = $1 AND ($2 = '' OR consumer = $2)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM consumer_key WHERE api_id = $1 AND ($2 = '' OR consumer = $2) \
     ORDER BY id DESC LIMIT $3 OFFSET $4"
);

/// The API's keys, newest first; an empty `consumer` is any.
pub async fn list(
    db: &mut Db,
    api: &PublishedApiId,
    consumer: &str,
    page: Page,
) -> Result<ListPage<ConsumerKey>, Error> {
    let total = sqlx::query(COUNT)
        .bind(api.as_str())
        .bind(consumer)
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST)
        .bind(api.as_str())
        .bind(consumer)
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

const UPDATE: &str = "UPDATE consumer_key SET rate_limit_per_second = $3, daily_limit = $4, \
                      suspended = $5, expires_at = $6, revoked_at = $7 WHERE api_id = $1 AND id = \
                      $2";

/// Writes limits and standing.
pub async fn update(db: &mut Db, key: &ConsumerKey) -> Result<(), Error> {
    sqlx::query(UPDATE)
        .bind(key.api_id.as_str())
        .bind(key.id.as_str())
        .bind(key.rate_limit_per_second.map(i64::from))
        .bind(key.daily_limit.map(i64::from))
        .bind(i64::from(key.standing.suspended))
        .bind(key.standing.expires_at.map(Timestamp::as_millis))
        .bind(key.standing.revoked_at.map(Timestamp::as_millis))
        .execute(db)
        .await?;
    Ok(())
}

const END_EXPIRED: &str = "UPDATE consumer_key SET revoked_at = expires_at \
    WHERE api_id = $1 AND expires_at <= $2 AND revoked_at IS NULL RETURNING id";

/// Ends the API's keys whose grace is over, and gives their ids.
pub async fn end_expired(
    db: &mut Db,
    api: &PublishedApiId,
    now: Timestamp,
) -> Result<Vec<ConsumerKeyId>, Error> {
    let rows = sqlx::query(END_EXPIRED)
        .bind(api.as_str())
        .bind(now.as_millis())
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.id("id")).collect()
}

const WITH_EXPIRED: &str = "SELECT DISTINCT a.environment_id AS environment_id, a.id AS id FROM \
                            consumer_key k JOIN published_api a ON a.id = k.api_id WHERE \
                            k.expires_at <= $1 AND k.revoked_at IS NULL ORDER BY a.id";

/// The APIs with keys whose grace is over and that have not ended, with their environments.
pub async fn with_expired(
    db: &mut Db,
    now: Timestamp,
) -> Result<Vec<(EnvironmentId, PublishedApiId)>, Error> {
    let rows = sqlx::query(WITH_EXPIRED)
        .bind(now.as_millis())
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| Ok((row.id("environment_id")?, row.id("id")?)))
        .collect()
}

const END_ALL: &str =
    "UPDATE consumer_key SET revoked_at = $2 WHERE api_id = $1 AND revoked_at IS NULL RETURNING id";

/// Ends all keys of the API, and gives the ids of those that had not ended.
pub async fn end_all(
    db: &mut Db,
    api: &PublishedApiId,
    now: Timestamp,
) -> Result<Vec<ConsumerKeyId>, Error> {
    let rows = sqlx::query(END_ALL)
        .bind(api.as_str())
        .bind(now.as_millis())
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.id("id")).collect()
}
