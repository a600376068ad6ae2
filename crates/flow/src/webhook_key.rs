//! The secrets of Standard Webhooks (standardwebhooks.com): `whsec_` and the key in base64.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Text before the key.
pub(crate) const PREFIX: &str = "whsec_";

/// Senders leave the padding out, and the reference libraries take keys whose last bits are stray.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns the key of a secret in base64, with or without `whsec_` before it. `None` when it is
/// empty or no base64, as the public keys are that begin with `whpk_`.
pub fn webhook_key(secret: &str) -> Option<Vec<u8>> {
    let key = BASE64
        .decode(secret.strip_prefix(PREFIX).unwrap_or(secret))
        .ok()?;
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_base64_and_never_empty() {
        let length = |secret| webhook_key(secret).map(|key| key.len());
        assert_eq!(length("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Some(24));
        assert_eq!(length("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Some(24));
        assert_eq!(length("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"), Some(23));
        assert_eq!(length("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS="), Some(23));
        for none in [
            "",
            "whsec_",
            "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "no base64",
            "whsec_%%%",
        ] {
            assert_eq!(webhook_key(none), None, "{none}");
        }
    }
}
