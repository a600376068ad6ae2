//! A signed token (JWS, compact form) and what it says. Only RS256, ES256 and EdDSA with Ed25519
//! are known: what is signed otherwise, or not at all, is no token here.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// What a signature is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Algorithm {
    RS256,
    ES256,
    EdDSA,
}

/// A public key, which is for one algorithm.
#[derive(Debug)]
pub(super) enum Key {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A token that nobody has proved yet.
#[derive(Debug)]
pub(super) struct Token<'t> {
    pub header: Header,
    signed: &'t [u8],
    signature: Vec<u8>,
    claims: Vec<u8>,
}

/// What a token says of its signature.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub alg: Algorithm,
    pub kid: Option<String>,
    /// What a reader would have to know, of which we know nothing.
    crit: Option<serde_json::Value>,
}

/// What is said in a token whose signature was right.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub iss: String,
    pub aud: Texts,
    /// Seconds since 1970.
    pub exp: f64,
    pub nbf: Option<f64>,
    /// Scopes, separated by spaces.
    pub scope: Option<Texts>,
    pub scp: Option<Texts>,
    pub client_id: Option<String>,
    pub azp: Option<String>,
    pub sub: Option<String>,
}

/// One text, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl<'t> Token<'t> {
    /// `None` when it is no token, or signed by what is not known here.
    pub fn read(token: &'t [u8]) -> Option<Self> {
        let (signed, signature) = halves(token)?;
        let (header, claims) = halves(signed)?;
        if header.contains(&b'.') {
            return None;
        }
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        let signature = decode(signature)?;
        let claims = decode(claims)?;
        header.crit.is_none().then_some(Self {
            header,
            signed,
            signature,
            claims,
        })
    }

    /// What it says, when `key` has signed it.
    pub fn prove(&self, key: &Key) -> Option<Claims> {
        let Self {
            signed, signature, ..
        } = self;
        let proved = match (self.header.alg, key) {
            (Algorithm::RS256, Key::Rsa(key)) => {
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            (Algorithm::ES256, Key::P256(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Algorithm::EdDSA, Key::Ed25519(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(signed, signature)
            }
            (Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA, _) => return None,
        };
        proved.ok()?;
        serde_json::from_slice(&self.claims).ok()
    }
}

impl Key {
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(_) => Algorithm::RS256,
            Self::P256(_) => Algorithm::ES256,
            Self::Ed25519(_) => Algorithm::EdDSA,
        }
    }
}

impl Texts {
    pub fn contains(&self, wanted: &str) -> bool {
        match self {
            Self::One(text) => text == wanted,
            Self::Many(list) => list.iter().any(|text| text == wanted),
        }
    }

    /// Returns whether it is among words that spaces separate.
    pub fn has_word(&self, wanted: &str) -> bool {
        match self {
            Self::One(text) => text.split_whitespace().any(|word| word == wanted),
            Self::Many(_) => self.contains(wanted),
        }
    }
}

/// Bytes of base64 as tokens and key sets have it.
pub(super) fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// What is before the last dot, and what is after it.
fn halves(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = text.iter().rposition(|byte| *byte == b'.')?;
    Some((&text[..dot], &text[dot + 1..]))
}
