//! Sealing of what is secret at rest: AES-256-GCM under a master key, with the key's id in front so
//! that the key can be rotated, and bound to its place by a context. Where master keys come from is
//! in `seal/master.rs`.

mod master;

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::Error;
use crate::token::random_bytes;
pub use master::KeyFile;

const FORMAT: u8 = 1;
const KEY_ID_LEN: usize = 4;
const HEADER_LEN: usize = 1 + KEY_ID_LEN + NONCE_LEN;

type KeyId = [u8; KEY_ID_LEN];

/// The file of a data folder that holds the master key.
pub const MASTER_KEY: &str = "master.key";

/// Key ring that seals under its first key, and opens under any of its keys. The keys can be
/// exchanged while it is used.
pub struct Sealer {
    keys: RwLock<Arc<[Key]>>,
}

/// Master key in use. The cipher's own memory is wiped by AWS-LC when it is freed.
struct Key {
    id: KeyId,
    cipher: LessSafeKey,
}

impl Sealer {
    /// Takes the keys of `text` (`KANAT_MASTER_KEY`: the one in use, then former ones, separated by
    /// commas), else those of the file `master.key` in `data_dir`, which is made with mode 0600
    /// when it is missing.
    pub fn from_env_or_file(text: Option<&str>, data_dir: &Path) -> Result<Self, Error> {
        match text.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Self::from_text(text),
            None => KeyFile::of(data_dir).sealer(),
        }
    }

    /// Takes keys as text, each 32 bytes in base64 or 64 hexadecimal digits, separated by commas or
    /// lines.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        Self::from_keys(&master::parse(text)?)
    }

    /// Takes bare keys; the first one seals.
    pub fn from_keys(keys: &[[u8; 32]]) -> Result<Self, Error> {
        if keys.is_empty() {
            return Err(Error::MalformedMasterKey);
        }
        let keys = keys.iter().map(|key| {
            let unbound =
                UnboundKey::new(&AES_256_GCM, key).map_err(|_| Error::MalformedMasterKey)?;
            Ok(Key {
                id: key_id(key),
                cipher: LessSafeKey::new(unbound),
            })
        });
        let keys = keys.collect::<Result<Vec<_>, Error>>()?;
        Ok(Self {
            keys: RwLock::new(keys.into()),
        })
    }

    /// Takes the keys of another ring in the place of its own.
    pub fn replace(&self, other: &Self) {
        *self.keys.write() = other.keys();
    }

    /// Returns the ids of the keys in hexadecimal digits, that of the key in use first.
    pub fn key_ids(&self) -> Vec<String> {
        self.keys().iter().map(|key| hex::encode(key.id)).collect()
    }

    /// Returns the first bytes of all that is sealed under the key in use, and of nothing else that
    /// is sealed.
    pub fn header(&self) -> Vec<u8> {
        [&[FORMAT][..], &self.keys()[0].id].concat()
    }

    fn keys(&self) -> Arc<[Key]> {
        Arc::clone(&self.keys.read())
    }

    /// Seals `plain` for one place: `context` names it, such as `connector_instance/ci_1`, and is
    /// needed to open.
    pub fn seal(&self, plain: &[u8], context: &str) -> Vec<u8> {
        let keys = self.keys();
        let Key { id, cipher } = &keys[0];
        let nonce = random_bytes::<NONCE_LEN>();
        let mut sealed = Vec::with_capacity(HEADER_LEN + plain.len() + AES_256_GCM.tag_len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(id);
        sealed.extend_from_slice(&nonce);
        let mut body = plain.to_vec();
        cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context.as_bytes()),
                &mut body,
            )
            .expect("what fits in memory is shorter than the bound of AES-GCM");
        sealed.extend_from_slice(&body);
        sealed
    }

    /// Returns whether something was sealed under the key that seals now, and not under a former
    /// one.
    pub fn is_under_key_in_use(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.header())
    }

    /// Seals under the key in use what was sealed under a former one; `None` where it is under the
    /// key in use.
    ///
    /// # Errors
    ///
    /// As [`Sealer::open`].
    pub fn renew(&self, sealed: &[u8], context: &str) -> Result<Option<Vec<u8>>, Error> {
        if self.is_under_key_in_use(sealed) {
            return Ok(None);
        }
        let plain = Zeroizing::new(self.open(sealed, context)?);
        Ok(Some(self.seal(&plain, context)))
    }

    /// Errors when another key sealed it, when it was changed, and when it was sealed for another
    /// place.
    pub fn open(&self, sealed: &[u8], context: &str) -> Result<Vec<u8>, Error> {
        if sealed.len() < HEADER_LEN || sealed[0] != FORMAT {
            return Err(Error::Malformed);
        }
        let (header, body) = sealed.split_at(HEADER_LEN);
        let (id, nonce) = header[1..].split_at(KEY_ID_LEN);
        let keys = self.keys();
        let Some(key) = keys.iter().find(|key| key.id == id) else {
            return Err(Error::UnknownKey(hex::encode(id)));
        };
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Error::Malformed)?;
        let mut body = body.to_vec();
        let plain = key
            .cipher
            .open_in_place(nonce, Aad::from(context.as_bytes()), &mut body)
            .map_err(|_| Error::Forged)?;
        let length = plain.len();
        body.truncate(length);
        Ok(body)
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer")
            .field("key_ids", &self.key_ids())
            .finish()
    }
}

/// Tells keys apart without saying anything of them.
fn key_id(key: &[u8; 32]) -> KeyId {
    let digest = Sha256::new()
        .chain_update(b"kanat master key id")
        .chain_update(key)
        .finalize();
    let mut id = KeyId::default();
    id.copy_from_slice(&digest[..KEY_ID_LEN]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_in_its_place_only() {
        let sealer = Sealer::from_keys(&[[7; 32]]).unwrap();
        let sealed = sealer.seal(b"secret", "connector_instance/ci_1");
        assert_eq!(
            sealer.open(&sealed, "connector_instance/ci_1").unwrap(),
            b"secret"
        );
        assert!(matches!(
            sealer.open(&sealed, "connector_instance/ci_2"),
            Err(Error::Forged)
        ));
        assert_ne!(
            sealed,
            sealer.seal(b"secret", "connector_instance/ci_1"),
            "each seal has its own nonce"
        );
    }

    #[test]
    fn refuses_what_was_changed_or_cut() {
        let sealer = Sealer::from_keys(&[[7; 32]]).unwrap();
        let sealed = sealer.seal(b"secret", "place");
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(sealer.open(&changed, "place").is_err(), "byte {index}");
            assert!(
                sealer.open(&sealed[..index], "place").is_err(),
                "cut at {index}"
            );
        }
    }

    #[test]
    fn a_rotated_key_still_opens_and_no_longer_seals() {
        let before = Sealer::from_keys(&[[1; 32]]).unwrap();
        let after = Sealer::from_keys(&[[2; 32], [1; 32]]).unwrap();
        assert_eq!(after.open(&before.seal(b"x", ""), "").unwrap(), b"x");
        assert!(matches!(
            before.open(&after.seal(b"x", ""), ""),
            Err(Error::UnknownKey(_))
        ));
    }
    #[test]
    fn what_a_former_key_sealed_is_sealed_anew_once() {
        let former = Sealer::from_keys(&[[1; 32]]).unwrap();
        let sealed = former.seal(b"secret", "place");
        let ring = Sealer::from_keys(&[[2; 32], [1; 32]]).unwrap();
        let renewed = ring.renew(&sealed, "place").unwrap().unwrap();
        assert_eq!(ring.renew(&renewed, "place").unwrap(), None);
        assert!(ring.renew(&sealed, "elsewhere").is_err());
        ring.replace(&Sealer::from_keys(&[[2; 32]]).unwrap());
        assert_eq!(ring.open(&renewed, "place").unwrap(), b"secret");
        assert!(matches!(
            ring.open(&sealed, "place"),
            Err(Error::UnknownKey(_))
        ));
    }
}
