//! Environments of an account, and the generation of what their nodes run.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    pub id: EnvironmentId,
    pub account_id: AccountId,
    pub name: String,
    /// Requests that name no environment go to this one.
    pub is_default: bool,
    /// Grows with every change of what the environment's nodes run.
    pub generation: u64,
    /// Scheme, host and port under which consumers call; unique in the account.
    pub base_url: Option<String>,
    /// Grows with every change of the row.
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, name, is_default, generation, base_url, revision, \
                       created_at, updated_at";

fn read(row: &AnyRow) -> Result<Environment, Error> {
    Ok(Environment {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        name: row.text("name")?,
        is_default: row.flag("is_default")?,
        generation: row.whole("generation")?,
        base_url: row.optional_text("base_url")?,
        revision: row.whole("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

const INSERT: &str =
    sql!("INSERT INTO environment ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");

/// Errors when the account has an environment of that name. Whether another one has its base URL is
/// the caller's to see.
pub async fn insert(db: &mut Db, environment: &Environment) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(environment.id.as_str())
        .bind(environment.account_id.as_str())
        .bind(environment.name.as_str())
        .bind(i64::from(environment.is_default))
        .bind(environment.generation.cast_signed())
        .bind(environment.base_url.clone())
        .bind(environment.revision.cast_signed())
        .bind(environment.created_at.as_millis())
        .bind(environment.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "environment", &environment.name))?;
    Ok(())
}

const FIND: &str =
    sql!("SELECT {COLUMNS} FROM environment WHERE account_id = $1 AND (id = $2 OR name = $2)");

/// The account's environment of that id or name.
pub async fn find(
    db: &mut Db,
    account: &AccountId,
    id_or_name: &str,
) -> Result<Option<Environment>, Error> {
    let row = sqlx::query(FIND)
        .bind(account.as_str())
        .bind(id_or_name)
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const DEFAULT: &str =
    sql!("SELECT {COLUMNS} FROM environment WHERE account_id = $1 AND is_default = 1");

/// The environment of requests that name none.
pub async fn default(db: &mut Db, account: &AccountId) -> Result<Option<Environment>, Error> {
    let row = sqlx::query(DEFAULT)
        .bind(account.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const ALL: &str = sql!("SELECT {COLUMNS} FROM environment ORDER BY id");

/// The environments of all accounts, oldest first: what the control plane serves to nodes.
pub async fn all(db: &mut Db) -> Result<Vec<Environment>, Error> {
    let rows = sqlx::query(ALL).fetch_all(db).await?;
    rows.iter().map(read).collect()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM environment WHERE account_id = $1";
const LIST: &str =
    sql!("SELECT {COLUMNS} FROM environment WHERE account_id = $1 ORDER BY id LIMIT $2 OFFSET $3");

/// The account's environments, oldest first.
pub async fn list(
    db: &mut Db,
    account: &AccountId,
    page: Page,
) -> Result<ListPage<Environment>, Error> {
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

const UPDATE: &str = "UPDATE environment SET name = $2, base_url = $3, revision = revision + 1, \
                      updated_at = $4 WHERE id = $1";

/// Writes name and base URL, as the next revision. Errors when another environment of the account
/// has the name.
pub async fn update(db: &mut Db, environment: &mut Environment) -> Result<(), Error> {
    sqlx::query(UPDATE)
        .bind(environment.id.as_str())
        .bind(environment.name.as_str())
        .bind(environment.base_url.clone())
        .bind(environment.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "environment", &environment.name))?;
    environment.revision += 1;
    Ok(())
}

const LOCK: &str = "UPDATE environment SET generation = generation WHERE id = $1";

/// Makes other changes of the environment wait for the end of this transaction.
pub async fn lock(db: &mut Db, environment: &EnvironmentId) -> Result<(), Error> {
    sqlx::query(LOCK)
        .bind(environment.as_str())
        .execute(db)
        .await?;
    Ok(())
}
