//! Facts of the database itself, such as its epoch.

use kanat_model::id::EpochId;

use crate::{Db, Error, Result};

const EPOCH: &str = "epoch";

const GET: &str = "SELECT value FROM meta WHERE name = $1";

pub async fn get(db: &mut Db, name: &str) -> Result<Option<String>> {
    db.first(GET, &[&name]).await
}

const SET: &str = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE \
                   SET value = excluded.value";

pub async fn set(db: &mut Db, name: &str, value: &str) -> Result<()> {
    db.run(SET, &[&name, &value]).await
}

const REMOVE: &str = "DELETE FROM meta WHERE name = $1";

pub async fn remove(db: &mut Db, name: &str) -> Result<()> {
    db.run(REMOVE, &[&name]).await
}

const LOCK: &str = "UPDATE meta SET value = value WHERE name = $1";

/// Makes other first starts wait for the end of this transaction.
pub async fn lock(db: &mut Db) -> Result<()> {
    db.run(LOCK, &[&EPOCH]).await
}

/// The epoch: generations of another epoch cannot be compared with those of this database.
pub async fn epoch(db: &mut Db) -> Result<EpochId> {
    let epoch = db.first(GET, &[&EPOCH]).await?;
    epoch.ok_or_else(|| Error::corrupt("meta.epoch", String::new()))
}

const RENEW: &str = "UPDATE meta SET value = $3 WHERE name = $1 AND value = $2";

/// Puts another epoch in the place of `former`, because the database has gone back behind what was
/// read from it; `false` when somebody else did.
pub async fn renew_epoch(db: &mut Db, former: &EpochId) -> Result<bool> {
    db.changes(RENEW, &[&EPOCH, former, &former.successor()])
        .await
}

/// Gives a new database its epoch.
pub(crate) async fn ensure_epoch(db: &mut Db) -> Result<()> {
    if get(db, EPOCH).await?.is_some() {
        return Ok(());
    }
    set(db, EPOCH, EpochId::generate().as_str()).await
}
