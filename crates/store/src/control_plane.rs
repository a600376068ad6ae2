//! Control planes on a database that several share: each keeps a lease while it lives.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::BootId;
use sqlx::AssertSqlSafe;

use crate::statement::statements;
use crate::{Db, Result};

/// Renews the lease of the control plane, which ends `duration` from now by the clock of the
/// database's server, and tells the master key that it seals under. Leases that ended a day ago are
/// forgotten.
pub async fn renew(db: &mut Db, own: &BootId, key_id: &str, duration: Duration) -> Result<()> {
    let now = db.dialect().now();
    let duration = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let renew = format!(
        "INSERT INTO control_plane (boot_id, lease_until, key_id) VALUES ($1, {now} + $2, $3) ON \
         CONFLICT (boot_id) DO UPDATE SET lease_until = excluded.lease_until, key_id = \
         excluded.key_id"
    );
    db.run(AssertSqlSafe(renew), &[own, &duration, &key_id])
        .await?;
    let forget = format!("DELETE FROM control_plane WHERE lease_until < {now} - 86400000");
    db.run(AssertSqlSafe(forget), &[]).await
}

/// Returns whether the lease of the control plane has not ended yet.
pub async fn is_alive(db: &mut Db, boot: &BootId) -> Result<bool> {
    let now = db.dialect().now();
    let alive = format!("SELECT 1 FROM control_plane WHERE boot_id = $1 AND lease_until > {now}");
    let found: Option<i64> = db.first(AssertSqlSafe(alive), &[boot]).await?;
    Ok(found.is_some())
}

/// Returns how many control planes live that seal under another master key than this one.
pub async fn under_other_keys(db: &mut Db, key_id: &str) -> Result<u64> {
    let now = db.dialect().now();
    let others = format!(
        "SELECT count(*) AS planes FROM control_plane WHERE key_id <> $1 AND lease_until > {now}"
    );
    db.one(AssertSqlSafe(others), &[&key_id]).await
}

/// Returns the time by the clock of the database's server, which all control planes share.
pub async fn server_time(db: &mut Db) -> Result<Timestamp> {
    let now = db.dialect().now();
    let now: i64 = db
        .one(AssertSqlSafe(format!("SELECT {now} AS now")), &[])
        .await?;
    Ok(Timestamp::from_millis(now))
}

statements! {
    /// Ends the lease of the control plane at once.
    fn end(own: &BootId) = "DELETE FROM control_plane WHERE boot_id = $1";
}

#[cfg(test)]
mod tests {
    use kanat_testing_postgres::Database;

    use super::*;
    use crate::Store;

    async fn a_lease_ends(store: &Store) {
        let own = BootId::generate();
        let other = BootId::generate();
        let mut tx = store.begin().await.unwrap();
        renew(&mut tx, &own, "key_1", Duration::from_secs(60))
            .await
            .unwrap();
        renew(&mut tx, &other, "key_2", Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(under_other_keys(&mut tx, "key_1").await.unwrap(), 0);
        assert_eq!(under_other_keys(&mut tx, "key_2").await.unwrap(), 1);
        assert!(is_alive(&mut tx, &own).await.unwrap());
        assert!(
            !is_alive(&mut tx, &other).await.unwrap(),
            "its time is over"
        );
        assert!(
            !is_alive(&mut tx, &BootId::generate()).await.unwrap(),
            "it never had one"
        );
        renew(&mut tx, &other, "key_2", Duration::from_secs(60))
            .await
            .unwrap();
        assert_eq!(under_other_keys(&mut tx, "key_1").await.unwrap(), 1);
        assert!(is_alive(&mut tx, &other).await.unwrap());
        end(&mut tx, &own).await.unwrap();
        assert!(!is_alive(&mut tx, &own).await.unwrap());
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_lease_lasts_until_its_time_is_over_or_it_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        a_lease_ends(
            &Store::open_file(&folder.path().join("kanat.db"))
                .await
                .unwrap(),
        )
        .await;
        let database = Database::fresh();
        a_lease_ends(&Store::open(database.url()).await.unwrap()).await;
    }
}
