//! Facts of the database itself, such as its epoch.

use kanat_model::id::EpochId;

use crate::row::RowExt;
use crate::{Db, Error};

const EPOCH: &str = "epoch";

const GET: &str = "SELECT value FROM meta WHERE name = $1";

pub async fn get(db: &mut Db, name: &str) -> Result<Option<String>, Error> {
    let row = sqlx::query(GET).bind(name).fetch_optional(db).await?;
    row.map(|row| row.text("value")).transpose()
}

const SET: &str = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE \
                   SET value = excluded.value";

pub async fn set(db: &mut Db, name: &str, value: &str) -> Result<(), Error> {
    sqlx::query(SET).bind(name).bind(value).execute(db).await?;
    Ok(())
}

const LOCK: &str = "UPDATE meta SET value = value WHERE name = $1";

/// Makes other first starts wait for the end of this transaction.
pub async fn lock(db: &mut Db) -> Result<(), Error> {
    sqlx::query(LOCK).bind(EPOCH).execute(db).await?;
    Ok(())
}

/// The epoch: generations of another epoch cannot be compared with those of this database.
pub async fn epoch(db: &mut Db) -> Result<EpochId, Error> {
    let text = get(db, EPOCH).await?;
    text.map(EpochId::from).ok_or(Error::Corrupt {
        column: "meta.epoch",
        value: String::new(),
    })
}

const RENEW: &str = "UPDATE meta SET value = $3 WHERE name = $1 AND value = $2";

/// Puts another epoch in the place of `former`, because the database has gone back behind what was
/// read from it; `false` when somebody else did.
pub async fn renew_epoch(db: &mut Db, former: &EpochId) -> Result<bool, Error> {
    let renew = sqlx::query(RENEW)
        .bind(EPOCH)
        .bind(former.as_str())
        .bind(former.successor().as_str());
    Ok(renew.execute(db).await?.rows_affected() > 0)
}

/// Gives a new database its epoch.
pub(crate) async fn ensure_epoch(db: &mut Db) -> Result<(), Error> {
    if get(db, EPOCH).await?.is_some() {
        return Ok(());
    }
    set(db, EPOCH, EpochId::generate().as_str()).await
}
