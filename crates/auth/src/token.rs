//! Random texts that cannot be guessed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

/// 256 random bits as 43 characters that need no escaping in a URL.
pub fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(Zeroizing::new(random_bytes::<32>()).as_slice())
}

/// Returns whether a byte is of the alphabet of [`random_token`]: letters, digits, `-` and `_`.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Bytes of the system's generator.
///
/// # Panics
/// When the system has no randomness to give: no key made without it would be one.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system's random generator works");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_url_safe_and_different() {
        let first = random_token();
        let second = random_token();
        assert_eq!(first.len(), 43);
        assert_ne!(first, second);
        assert!(first.bytes().all(is_token_byte), "{first}");
    }
}
