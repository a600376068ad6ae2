//! Facts of the database itself, such as its epoch.

use kanat_model::id::EpochId;

use crate::statement::statements;
use crate::{Db, Error, Result};

const EPOCH: &str = "epoch";

statements! {
    fn get(name: &str) -> Option<String> = "SELECT value FROM meta WHERE name = $1";

    fn set(name: &str, value: &str) =
        "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = \
         excluded.value";

    fn remove(name: &str) = "DELETE FROM meta WHERE name = $1";
}

const LOCK: &str = "UPDATE meta SET value = value WHERE name = $1";

/// Makes other first starts wait for the end of this transaction.
pub async fn lock(db: &mut Db) -> Result<()> {
    db.run(LOCK, &[&EPOCH]).await
}

/// The epoch: generations of another epoch cannot be compared with those of this database.
pub async fn epoch(db: &mut Db) -> Result<EpochId> {
    let epoch = get(db, EPOCH).await?.map(EpochId::from);
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
