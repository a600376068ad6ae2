//! Accounts: what everything else belongs to.

use kanat_model::Timestamp;
use kanat_model::id::AccountId;

use crate::record::record;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub created_at: Timestamp,
}

record!(Account in "account" {
    id,
    name,
    created_at
});

pub async fn insert(db: &mut Db, account: &Account) -> Result<(), Error> {
    db.insert(account).await
}

const GET: &str = sql!(Account, "SELECT {COLUMNS} FROM account WHERE id = $1");

/// The account with this id.
pub async fn get(db: &mut Db, id: &AccountId) -> Result<Option<Account>, Error> {
    db.first(GET, &[id]).await
}

const FIRST: &str = sql!(Account, "SELECT {COLUMNS} FROM account ORDER BY id LIMIT 1");

/// The oldest account; none before the first start.
pub async fn first(db: &mut Db) -> Result<Option<Account>, Error> {
    db.first(FIRST, &[]).await
}
