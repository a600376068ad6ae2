//! All control planes of a database seal what is secret under the same master key: one that has
//! another is found out at its start, before it writes what the others cannot read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kanat_auth::Sealer;
use kanat_store::{Db, Store, meta};

use crate::Error;

const NAME: &str = "master_key_check";

/// Errors when the database was sealed under a key that is not among ours.
pub async fn check(store: &Store, sealer: &Sealer) -> Result<(), Error> {
    // Most starts find their own key, and need no room on the disk.
    if is_known(&mut *store.read().await?, sealer).await? {
        return Ok(());
    }
    write(store, sealer).await
}

/// Has the database know the key in use, under which everything is sealed by now.
pub async fn renew(store: &Store, sealer: &Sealer) -> Result<(), kanat_model::Error> {
    write(store, sealer).await.map_err(|error| match error {
        Error::Store(error) => error.into(),
        other => {
            tracing::error!(error = %other, "the master key of the database cannot be told");
            kanat_model::Error::internal()
        }
    })
}

async fn write(store: &Store, sealer: &Sealer) -> Result<(), Error> {
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    // Another process may have started meanwhile.
    if is_known(&mut tx, sealer).await? {
        return Ok(());
    }
    // Anew under the key in use: a former one may be dropped one day.
    meta::set(
        &mut tx,
        NAME,
        &STANDARD.encode(sealer.seal(NAME.as_bytes(), NAME)),
    )
    .await?;
    Ok(tx.commit().await?)
}

/// Returns whether the database knows the key in use. Errors when it knows another one that is not
/// among ours.
async fn is_known(db: &mut Db, sealer: &Sealer) -> Result<bool, Error> {
    let Some(sealed) = meta::get(db, NAME).await? else {
        return Ok(false);
    };
    let sealed = STANDARD.decode(sealed).map_err(|_| Error::MasterKey)?;
    sealer.open(&sealed, NAME).map_err(|_| Error::MasterKey)?;
    Ok(sealer.is_under_key_in_use(&sealed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_control_plane_with_another_key_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        let keys = |keys: &[[u8; 32]]| Sealer::from_keys(keys).unwrap();
        check(&store, &keys(&[[1; 32]])).await.unwrap();
        check(&store, &keys(&[[1; 32]])).await.unwrap();
        assert!(matches!(
            check(&store, &keys(&[[2; 32]])).await,
            Err(Error::MasterKey)
        ));
        check(&store, &keys(&[[2; 32], [1; 32]])).await.unwrap();
        check(&store, &keys(&[[2; 32]])).await.unwrap();
    }
}
