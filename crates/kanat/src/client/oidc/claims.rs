//! Claims of a token, read without its keys: whether a token is good is the service's to say.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Claims of a JWT.
pub struct Claims(Value);

impl Claims {
    /// Reads the claims of a token; none when it is no JWT.
    pub fn read(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let header = parts.next()?;
        let claims = parts.next()?;
        let _signature = parts.next()?;
        if parts.next().is_some() {
            return None;
        }
        object(header)?;
        object(claims).map(Self)
    }

    /// Returns the claim of this name where it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0[name].as_str()
    }

    /// Returns the instant at which the token ends, in seconds since 1970.
    pub fn expires_at(&self) -> Option<i64> {
        let exp = &self.0["exp"];
        // A fraction of a second is cut off.
        exp.as_i64().or_else(|| exp.as_f64().map(|exp| exp as i64))
    }

    /// Returns whether the token is for `audience`.
    pub fn is_for(&self, audience: &str) -> bool {
        match &self.0["aud"] {
            Value::String(one) => one == audience,
            Value::Array(several) => several.iter().any(|one| one == audience),
            _ => false,
        }
    }
}

/// Reads a part of a token that is an object.
fn object(part: &str) -> Option<Value> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    value.is_object().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        let parts = [r#"{"alg":"EdDSA"}"#, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{}.c2ln", parts.join("."))
    }

    #[test]
    fn claims_are_read_without_keys() {
        let token = token(r#"{"iss":"https://id.example","exp":1900000000,"aud":["a","b"]}"#);
        let claims = Claims::read(&token).unwrap();
        assert_eq!(claims.text("iss"), Some("https://id.example"));
        assert_eq!(claims.expires_at(), Some(1_900_000_000));
        assert!(claims.is_for("b"));
        assert!(!claims.is_for("c"));
        let other = Claims::read(&self::token(r#"{"exp":1.5,"aud":"a"}"#)).unwrap();
        assert_eq!(other.expires_at(), Some(1));
        assert!(other.is_for("a"));
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "access-1", "a.b.c", "..", "kanat_ak_x"] {
            assert!(Claims::read(text).is_none(), "{text}");
        }
        let short = token("{}");
        let (signed, _) = short.rsplit_once('.').unwrap();
        assert!(Claims::read(signed).is_none());
        assert!(Claims::read(&format!("{short}.x")).is_none());
        assert!(Claims::read(&token("[]")).is_none());
    }
}
