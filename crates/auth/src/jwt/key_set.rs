//! Public keys of an issuer, read from a JSON Web Key Set (RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::KeyId;

/// Signature keys of an issuer; at least one.
#[derive(Debug)]
pub struct KeySet(Vec<PublicKey>);

/// One key, and the algorithm whose signatures it verifies.
#[derive(Debug)]
pub struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// Reason why a document is no usable key set.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    #[error("no key set: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("no key for RS256, ES256 or EdDSA")]
    NoKeys,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a key set. Keys of other kinds or uses are left out.
    ///
    /// # Errors
    /// `json` is no key set, or none of its keys is usable.
    pub fn parse(json: &[u8]) -> Result<Self, KeySetError> {
        let document: Document = serde_json::from_slice(json)?;
        let keys: Vec<_> = document
            .keys
            .into_iter()
            .filter_map(PublicKey::from_json)
            .collect();
        if keys.is_empty() {
            return Err(KeySetError::NoKeys);
        }
        Ok(Self(keys))
    }

    /// Returns the key of `id` for `algorithm`; without an id, the only key for the algorithm. A
    /// key without an id has any id, unless ids are required.
    pub(super) fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        requirement: KeyId,
    ) -> Option<&PublicKey> {
        let has_any_id = requirement == KeyId::Optional;
        let mut matching = self.0.iter().filter(|key| {
            key.algorithm == algorithm
                && id.is_none_or(|id| key.id.as_deref().map_or(has_any_id, |own| own == id))
        });
        let first = matching.next()?;
        let ambiguous = id.is_none() && matching.next().is_some();
        (!ambiguous).then_some(first)
    }
}

impl PublicKey {
    /// Returns `None` for a key that verifies no signatures of a known algorithm. A shared secret
    /// is none of them: the keys of a set are public.
    fn from_json(key: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(key).ok()?;
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            _ => return None,
        };
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let common = jwk.common;
        let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
            && common
                .key_algorithm
                .is_none_or(|declared| declared == algorithm.into());
        signs.then_some(Self {
            id: common.key_id,
            algorithm,
            key,
        })
    }

    pub(super) fn decoding_key(&self) -> &DecodingKey {
        &self.key
    }
}
