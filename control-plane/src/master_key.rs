//! All control planes of a database seal what is secret under the same master key: one that has another is found out at
//! its start, before it writes what the others cannot read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kanat_auth::Sealer;
use kanat_store::{Store, meta};

use crate::Error;

const NAME: &str = "master_key_check";

/// Errors when the database was sealed under a key that is not among ours.
pub async fn check(store: &Store, sealer: &Sealer) -> Result<(), Error> {
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    if let Some(sealed) = meta::get(&mut tx, NAME).await? {
        let opened = STANDARD.decode(sealed).ok().and_then(|sealed| sealer.open(&sealed, NAME).ok());
        opened.ok_or(Error::MasterKey)?;
    }
    // Anew at each start, under the key in use: a former one may be dropped one day.
    meta::set(&mut tx, NAME, &STANDARD.encode(sealer.seal(NAME.as_bytes(), NAME))).await?;
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_control_plane_with_another_key_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db")).await.unwrap();
        let keys = |keys: &[[u8; 32]]| Sealer::from_keys(keys).unwrap();
        check(&store, &keys(&[[1; 32]])).await.unwrap();
        check(&store, &keys(&[[1; 32]])).await.unwrap();
        assert!(matches!(check(&store, &keys(&[[2; 32]])).await, Err(Error::MasterKey)));
        check(&store, &keys(&[[2; 32], [1; 32]])).await.unwrap();
        check(&store, &keys(&[[2; 32]])).await.unwrap();
    }
}
