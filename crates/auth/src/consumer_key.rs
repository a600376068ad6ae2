//! Consumer keys, `kanat_ck_<consumer>_<random>`: what opens a published API; shown once, kept as
//! SHA-256.

use kanat_model::Secret;

use crate::key::{NewKey, sha256};
use crate::random_token;

/// Prefix of every consumer key.
pub const PREFIX: &str = "kanat_ck_";

/// A new key of 256 random bits for the consumer of this label; all before those bits is its
/// prefix.
pub fn generate(consumer: &str) -> NewKey {
    let prefix = prefix(consumer);
    let text = format!("{prefix}{}", random_token());
    NewKey {
        sha256: sha256(&text),
        prefix,
        text: Secret::new(text),
    }
}

/// Returns the prefix of that consumer's keys. Characters that cannot stand in a header, and those
/// that end a word, become `-`.
pub fn prefix(consumer: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    format!(
        "{PREFIX}{}_",
        consumer.chars().map(plain).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_consumer_and_hides_the_rest() {
        let key = generate("acme");
        let other = generate("acme");
        assert_eq!(key.prefix, "kanat_ck_acme_");
        let random = key.text.expose().strip_prefix("kanat_ck_acme_").unwrap();
        assert_eq!(random.len(), 43);
        assert_eq!(sha256(key.text.expose()), key.sha256);
        assert_ne!(key.sha256, other.sha256);
    }

    #[test]
    fn a_prefix_can_stand_in_a_header() {
        assert_eq!(prefix("mobile_app.ios"), "kanat_ck_mobile_app.ios_");
        assert_eq!(prefix("Müller & Söhne"), "kanat_ck_M-ller---S-hne_");
    }
}
