//! Accounts: what everything else belongs to.

use kanat_model::Timestamp;
use kanat_model::id::AccountId;

use crate::row::RowExt;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub created_at: Timestamp,
}

const INSERT: &str = "INSERT INTO account (id, name, created_at) VALUES ($1, $2, $3)";

pub async fn insert(db: &mut Db, account: &Account) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(account.id.as_str())
        .bind(account.name.as_str())
        .bind(account.created_at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = "SELECT id, name, created_at FROM account WHERE id = $1";

/// The account with this id.
pub async fn get(db: &mut Db, id: &AccountId) -> Result<Option<Account>, Error> {
    let row = sqlx::query(GET)
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const FIRST: &str = "SELECT id, name, created_at FROM account ORDER BY id LIMIT 1";

/// The oldest account; none before the first start.
pub async fn first(db: &mut Db) -> Result<Option<Account>, Error> {
    let row = sqlx::query(FIRST).fetch_optional(db).await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &sqlx::any::AnyRow) -> Result<Account, Error> {
    Ok(Account {
        id: row.id("id")?,
        name: row.text("name")?,
        created_at: row.time("created_at")?,
    })
}
