//! Account API keys, `kanat_ak_<random>`: shown once, kept as SHA-256.

use kanat_model::Secret;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::token::is_token_byte;
use crate::{Error, random_token};

/// Prefix of every API key.
pub const PREFIX: &str = "kanat_ak_";

/// Least number of characters after the prefix of a key that an operator chose.
pub const MIN_CHOSEN: usize = 32;

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
    describe(format!(
        "{PREFIX}{}",
        Zeroizing::new(random_token()).as_str()
    ))
}

/// Takes a key that an operator chose.
///
/// # Errors
///
/// A text that does not begin with [`PREFIX`], that goes on with fewer than [`MIN_CHOSEN`]
/// characters, or that has other characters than a generated key.
pub fn adopt(text: &str) -> Result<NewKey, Error> {
    let random = text.strip_prefix(PREFIX).ok_or(Error::MalformedApiKey)?;
    if random.len() < MIN_CHOSEN || !random.bytes().all(is_token_byte) {
        return Err(Error::MalformedApiKey);
    }
    Ok(describe(text.to_owned()))
}

/// Returns the hash that a presented key is looked up by.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn describe(text: String) -> NewKey {
    NewKey {
        sha256: sha256(&text),
        prefix: text[..SHOWN].to_owned(),
        text: Secret::new(text),
    }
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
    fn takes_a_chosen_key_with_the_prefix_and_32_characters_of_the_alphabet() {
        let chosen = "kanat_ak_0123456789-abcdefghij_ABCDEFGHIJ";
        assert_eq!(chosen.len(), PREFIX.len() + MIN_CHOSEN);
        assert_eq!(adopt(chosen).unwrap().prefix, "kanat_ak_012345");
        assert!(adopt(generate().text.expose()).is_ok());
    }

    #[test]
    fn refuses_a_chosen_key_that_is_short_or_has_other_characters() {
        let short = "kanat_ak_0123456789-abcdefghij_ABCDEFGHI";
        let no_prefix = "kanat_ck_0123456789-abcdefghij_ABCDEFGHIJ";
        let dollar = "kanat_ak_0123456789-abcdefghij_ABCDEFGHI$";
        let space = "kanat_ak_0123456789 abcdefghij_ABCDEFGHIJ";
        let umlaut = "kanat_ak_0123456789-abcdefghij_ABCDEFGHä";
        for wrong in [
            "",
            "kanat_ak_",
            "secret",
            short,
            no_prefix,
            dollar,
            space,
            umlaut,
        ] {
            assert!(adopt(wrong).is_err(), "{wrong}");
        }
    }
}
