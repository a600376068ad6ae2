//! Verification of JSON Web Tokens (RFC 7519) by the public keys of their issuer. Fetching the
//! keys is the business of `kanat_net::jwks`.

mod distinct;
mod key_set;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
pub use jsonwebtoken::Algorithm;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use kanat_model::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use key_set::{KeySet, KeySetError, PublicKey};

/// Algorithms that are accepted unless a setting names fewer. A key set has keys for no other.
pub const DEFAULT_ALGORITHMS: &[Algorithm] =
    &[Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// Longest token that is read, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// Seconds by which the clock of an issuer may be ahead of ours (`nbf`). An expired token (`exp`)
/// gets no extra time.
const MAX_CLOCK_SKEW_SECONDS: f64 = 60.0;

/// Claims without which no token is accepted. The library accepts their absence by default.
const REQUIRED_CLAIMS: [&str; 4] = ["iss", "sub", "aud", "exp"];

/// Requirements that a token has to meet. Nothing in a token changes them.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'p> {
    pub issuer: &'p str,
    pub audience: &'p str,
    pub algorithms: &'p [Algorithm],
    /// Requirement on the name of the key (`kid`).
    pub key_id: KeyId,
}

/// Requirement on tokens to name the key that they are signed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyId {
    Required,
    /// Without one, the token is signed by the only key of its algorithm.
    Optional,
}

/// A token whose header has been read and whose signature has not been checked.
#[derive(Debug)]
pub struct UnverifiedToken<'t> {
    text: &'t [u8],
    header: Header,
    key_id: KeyId,
}

/// Claims of a token whose signature, issuer, audience and times have been checked.
#[derive(Debug, Deserialize)]
pub struct Claims {
    /// A single issuer: the library would accept a list of them too.
    pub iss: String,
    pub sub: String,
    pub azp: Option<String>,
    pub client_id: Option<String>,
    /// Seconds since 1970, as is `nbf`.
    exp: f64,
    #[serde(default, deserialize_with = "number")]
    nbf: Option<f64>,
    scope: Option<Scopes>,
    scp: Option<Scopes>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Scopes as a text that spaces separate, or as a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scopes {
    Text(String),
    List(Vec<String>),
}

impl Scopes {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::List(_) => None,
        }
    }
}

/// Reads a number that may be left out, and is not null.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

/// Reason why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the access token is too long")]
    TooLong,
    #[error("the access token is no JWT that is taken")]
    Unsupported,
    #[error("the access token does not name the key that it is signed by")]
    NoKeyId,
    #[error("the access token is signed by no key of the issuer")]
    UnknownKey,
    #[error("the access token is not what the issuer signed")]
    Forged,
    #[error("the access token has no iss, sub, aud or exp, or a malformed claim")]
    Claims,
    #[error("the access token is of another issuer")]
    Issuer,
    #[error("the access token is for another audience")]
    Audience,
    #[error("the access token has expired")]
    Expired,
    #[error("the access token is not valid yet")]
    NotYetValid,
}

impl<'t> UnverifiedToken<'t> {
    /// Reads the header of `token`. Members that point to keys (`jku`, `jwk`, `x5u`, `x5c`) are
    /// never used.
    ///
    /// # Errors
    /// The token is too long, is no JWT, names a member twice, lacks a key id that `policy` wants,
    /// is signed by an algorithm that `policy` does not list, or has a critical extension (`crit`):
    /// none is known here.
    pub fn parse(token: &'t [u8], policy: &Policy<'_>) -> Result<Self, Error> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Error::TooLong);
        }
        let header = decode_header(token).map_err(|_| Error::Unsupported)?;
        if !policy.algorithms.contains(&header.alg) {
            return Err(Error::Unsupported);
        }
        if policy.key_id == KeyId::Required && header.kid.is_none() {
            return Err(Error::NoKeyId);
        }
        let mut parts = token.splitn(3, |byte| *byte == b'.');
        if has_extensions(token) || !parts.by_ref().take(2).all(is_unambiguous) {
            return Err(Error::Unsupported);
        }
        Ok(Self {
            text: token,
            header,
            key_id: policy.key_id,
        })
    }

    /// Returns the key of `keys` that the header names.
    pub fn find_key<'k>(&self, keys: &'k KeySet) -> Option<&'k PublicKey> {
        keys.find(self.header.kid.as_deref(), self.header.alg, self.key_id)
    }

    /// Returns the issuer that the token names, which is a claim like any other until the token is
    /// verified.
    pub fn claimed_issuer(token: &[u8]) -> Option<String> {
        #[derive(Deserialize)]
        struct Payload {
            iss: String,
        }
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let part = token.split(|byte| *byte == b'.').nth(1)?;
        let json = URL_SAFE_NO_PAD.decode(part).ok()?;
        serde_json::from_slice(&json)
            .ok()
            .map(|Payload { iss }| iss)
    }

    /// Checks the signature by `key`, and the claims by `policy` at the time `now`.
    ///
    /// # Errors
    /// The signature is wrong, a claim is missing or malformed or occurs twice, or the token is
    /// for another audience, of another issuer, expired or not valid yet.
    pub fn verify(
        &self,
        key: &PublicKey,
        policy: &Policy<'_>,
        now: Timestamp,
    ) -> Result<Claims, Error> {
        // The list has this one algorithm because the library refuses a list of several families.
        let mut validation = Validation::new(self.header.alg);
        validation.set_required_spec_claims(&REQUIRED_CLAIMS);
        validation.set_issuer(&[policy.issuer]);
        validation.set_audience(&[policy.audience]);
        // The library rounds times, lets an expired token in for the leeway, and reads a clock of
        // its own.
        validation.validate_exp = false;
        let token =
            decode::<Claims>(self.text, key.decoding_key(), &validation).map_err(|error| {
                match error.kind() {
                    ErrorKind::InvalidIssuer => Error::Issuer,
                    ErrorKind::InvalidAudience => Error::Audience,
                    // The signature is checked before.
                    ErrorKind::Json(_)
                    | ErrorKind::MissingRequiredClaim(_)
                    | ErrorKind::InvalidClaimFormat(_) => Error::Claims,
                    _ => Error::Forged,
                }
            })?;
        token.claims.check_times(now)?;
        Ok(token.claims)
    }
}

impl Claims {
    /// Returns whether `scope` or `scp` grants `wanted`.
    pub fn has_scope(&self, wanted: &str) -> bool {
        [&self.scope, &self.scp]
            .into_iter()
            .flatten()
            .any(|scopes| match scopes {
                Scopes::Text(text) => text.split_whitespace().any(|scope| scope == wanted),
                Scopes::List(list) => list.iter().any(|scope| scope == wanted),
            })
    }

    /// Returns the time at which the token expires.
    pub fn expires_at(&self) -> Timestamp {
        // The cast saturates: a token that outlives every calendar ends with the last one.
        Timestamp::from_millis((self.exp * 1_000.0) as i64)
    }

    /// Returns the claim of this name, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match name {
            "sub" => Some(&self.sub),
            "iss" => Some(&self.iss),
            "azp" => self.azp.as_deref(),
            "client_id" => self.client_id.as_deref(),
            "scope" => self.scope.as_ref()?.text(),
            "scp" => self.scp.as_ref()?.text(),
            name => self.others.get(name)?.as_str(),
        }
    }

    /// Returns whether there is a claim of this name that is not null, beside those that every
    /// token has.
    pub fn has(&self, name: &str) -> bool {
        self.others.get(name).is_some_and(|claim| !claim.is_null())
    }

    /// Returns whether the claim of this name is `true`; the text `"true"` is not.
    pub fn is_true(&self, name: &str) -> bool {
        self.others.get(name) == Some(&Value::Bool(true))
    }

    fn check_times(&self, now: Timestamp) -> Result<(), Error> {
        // A double holds the milliseconds of every time that a JWT can have.
        let now = now.as_millis() as f64 / 1_000.0;
        if now >= self.exp {
            return Err(Error::Expired);
        }
        if self
            .nbf
            .is_some_and(|nbf| now + MAX_CLOCK_SKEW_SECONDS < nbf)
        {
            return Err(Error::NotYetValid);
        }
        Ok(())
    }
}

/// Returns whether the header has `crit` in any form. The library takes null for none.
fn has_extensions(token: &[u8]) -> bool {
    let header = token.split(|byte| *byte == b'.').next().unwrap_or_default();
    let json = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let header = serde_json::from_slice::<Map<String, Value>>(&json);
    header.is_ok_and(|header| header.contains_key("crit"))
}

/// Returns whether a part of a token is JSON whose objects name no member twice: of two members of
/// one name, readers take different ones.
fn is_unambiguous(part: &[u8]) -> bool {
    let json = URL_SAFE_NO_PAD.decode(part);
    json.is_ok_and(|json| serde_json::from_slice::<distinct::Members>(&json).is_ok())
}
