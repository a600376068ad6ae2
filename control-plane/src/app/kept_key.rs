//! Keys of the service itself. Each is random, is made once, and is kept in the store sealed under
//! the master key, whose rotation does not change it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kanat_auth::{Sealer, random_token};
use kanat_model::{Error, Result};
use kanat_store::{Db, meta};

/// Returns the key of this name, which is the context that it is sealed under, if there is one.
pub async fn find(db: &mut Db, sealer: &Sealer, name: &str) -> Result<Option<[u8; 32]>> {
    let Some(kept) = meta::get(db, name).await? else {
        return Ok(None);
    };
    let failed = || {
        tracing::error!(key = name, "a key of the service cannot be read");
        Error::internal()
    };
    let sealed = URL_SAFE_NO_PAD.decode(kept).map_err(|_| failed())?;
    let key = sealer.open(&sealed, name).map_err(|_| failed())?;
    let key = key.as_slice().try_into().map_err(|_| failed())?;
    Ok(Some(key))
}

/// Makes the key of this name.
pub async fn make(db: &mut Db, sealer: &Sealer, name: &str) -> Result<[u8; 32]> {
    let key: Vec<u8> = URL_SAFE_NO_PAD.decode(random_token()).unwrap_or_default();
    let key: [u8; 32] = key.as_slice().try_into().map_err(|_| Error::internal())?;
    let sealed = URL_SAFE_NO_PAD.encode(sealer.seal(&key, name));
    meta::set(db, name, &sealed).await?;
    Ok(key)
}

/// Seals the key of this name under the master key in use; returns whether it was under a former
/// one.
pub async fn renew(db: &mut Db, sealer: &Sealer, name: &str) -> Result<bool> {
    let Some(kept) = meta::get(db, name).await? else {
        return Ok(false);
    };
    let sealed = URL_SAFE_NO_PAD.decode(kept).unwrap_or_default();
    match sealer.renew(&sealed, name) {
        Ok(None) => Ok(false),
        Ok(Some(sealed)) => {
            meta::set(db, name, &URL_SAFE_NO_PAD.encode(sealed)).await?;
            Ok(true)
        }
        Err(error) => {
            tracing::error!(key = name, %error, "a key of the service cannot be read");
            Ok(false)
        }
    }
}
