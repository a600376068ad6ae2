//! Account API keys, `kanat_ak_<random>`: shown once, kept as SHA-256.

use kanat_model::Secret;
use sha2::{Digest, Sha256};

use crate::{Error, random_token};

/// What every API key begins with.
pub const PREFIX: &str = "kanat_ak_";

/// How many characters of a key are kept in the clear, to tell it by.
const SHOWN: usize = PREFIX.len() + 6;

/// A key as it is handed out, and what is kept of it.
#[derive(Debug)]
pub struct NewKey {
    /// The whole key: goes to its owner and nowhere else.
    pub text: Secret<String>,
    pub sha256: [u8; 32],
    /// Its first characters.
    pub prefix: String,
}

/// A new key of 256 random bits.
pub fn generate() -> NewKey {
    describe(format!("{PREFIX}{}", random_token()))
}

/// Takes a key that an operator chose; errors when it does not look like one.
pub fn adopt(text: &str) -> Result<NewKey, Error> {
    let random = text.strip_prefix(PREFIX).ok_or(Error::MalformedApiKey)?;
    let printable = random.bytes().all(|b| b.is_ascii_graphic());
    if random.is_empty() || !printable {
        return Err(Error::MalformedApiKey);
    }
    Ok(describe(text.to_owned()))
}

/// What a presented key is looked up by.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn describe(text: String) -> NewKey {
    // A short key of an operator's choice shows less, so that what is hidden stays the most of it.
    let shown = SHOWN.min(PREFIX.len() + (text.len() - PREFIX.len()) / 4);
    NewKey { sha256: sha256(&text), prefix: text[..shown].to_owned(), text: Secret::new(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_known_by_its_hash_and_shows_its_beginning() {
        let key = generate();
        assert!(key.text.expose().starts_with(&key.prefix));
        assert_eq!(key.prefix.len(), SHOWN);
        assert_eq!(sha256(key.text.expose()), key.sha256);
        assert!(!format!("{key:?}").contains(key.text.expose().as_str()));
    }

    #[test]
    fn takes_a_chosen_key_only_with_the_prefix() {
        assert_eq!(adopt("kanat_ak_0123456789abcdef").unwrap().prefix, "kanat_ak_0123");
        for wrong in ["", "kanat_ak_", "secret", "kanat_ak_with space", "kanat_ak_ä"] {
            assert!(adopt(wrong).is_err(), "{wrong}");
        }
    }
}
