//! Message authentication: proves that who has the key has written something.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};

/// Key of HMAC-SHA-256.
pub struct MacKey(Key);

impl MacKey {
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Key::new(HMAC_SHA256, key))
    }

    /// Returns the authentication code of a text.
    pub fn code(&self, text: &[u8]) -> [u8; 32] {
        let mut code = [0; 32];
        code.copy_from_slice(sign(&self.0, text).as_ref());
        code
    }

    /// Returns whether it is the code of a text, in a time that does not depend on the code.
    pub fn is_code(&self, text: &[u8], code: &[u8]) -> bool {
        verify(&self.0, text, code).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_of_one_key_and_one_text() {
        let key = MacKey::new(&[1; 32]);
        let code = key.code(b"text");
        assert!(key.is_code(b"text", &code));
        assert!(!key.is_code(b"other", &code));
        assert!(!MacKey::new(&[2; 32]).is_code(b"text", &code));
    }
}
