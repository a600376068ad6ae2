//! Keyed digests and their comparison in constant time.

use ::hmac::{EagerHash, Hmac, KeyInit, Mac};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use kanat_model::Secret;
use subtle::{Choice, ConstantTimeEq};

use super::{Refusal, SignedRequest};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns whether one of `signatures` is the digest of the concatenated `parts` under one of
/// `keys`.
pub(super) fn matches<'k, D: EagerHash>(
    keys: impl Iterator<Item = &'k [u8]>,
    parts: &[&[u8]],
    signatures: &[Vec<u8>],
) -> Result<(), Refusal> {
    let mut found = Choice::from(0);
    for key in keys {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = <Hmac<D> as KeyInit>::new_from_slice(key) else {
            continue;
        };
        for part in parts {
            mac.update(part);
        }
        let digest = mac.finalize().into_bytes();
        for signature in signatures {
            found |= digest.as_slice().ct_eq(signature);
        }
    }
    if found.into() {
        Ok(())
    } else {
        Err(Refusal::Wrong)
    }
}

impl SignedRequest<'_> {
    /// Checks that one of `signatures` is the digest of the concatenated `parts` under one of the
    /// secrets.
    pub(super) fn matches<D: EagerHash>(
        &self,
        parts: &[&[u8]],
        signatures: &[Vec<u8>],
    ) -> Result<(), Refusal> {
        let keys = self.secrets.iter();
        let keys = keys.map(|secret| secret.expose().as_bytes());
        matches::<D>(keys, parts, signatures)
    }
}

/// Returns whether `given` is one of the secrets.
pub(super) fn is_one_of(given: &[u8], secrets: &[Secret<String>]) -> Choice {
    let mut found = Choice::from(0);
    for secret in secrets {
        found |= secret.expose().as_bytes().ct_eq(given);
    }
    found
}

pub(super) fn from_hex(text: &str) -> Result<Vec<u8>, Refusal> {
    hex::decode(text).map_err(|_| Refusal::Malformed("the signature".to_owned()))
}

pub(super) fn from_base64(text: &str) -> Result<Vec<u8>, Refusal> {
    BASE64
        .decode(text)
        .map_err(|_| Refusal::Malformed("the signature".to_owned()))
}
