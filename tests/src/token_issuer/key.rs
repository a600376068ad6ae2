//! A signing key of the issuer: its public part as a JWK, and signatures in the form of a JWS.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, SignatureAlgorithm, SigningKey,
};
use serde_json::{Value, json};

use super::unsigned;

/// Signature algorithms of issuers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    EdDsa,
    Es256,
    Rs256,
}

impl Algorithm {
    /// Name in the header of a token.
    pub fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }

    fn pairs(self) -> &'static SignatureAlgorithm {
        match self {
            Self::EdDsa => &PKCS_ED25519,
            Self::Es256 => &PKCS_ECDSA_P256_SHA256,
            Self::Rs256 => &PKCS_RSA_SHA256,
        }
    }
}

/// A key under its id.
pub struct IssuerKey {
    pub id: String,
    pub is_published: bool,
    algorithm: Algorithm,
    pair: KeyPair,
}

impl IssuerKey {
    /// Makes a key that is published.
    pub fn new(id: String, algorithm: Algorithm) -> Self {
        let pair = KeyPair::generate_for(algorithm.pairs()).expect("a key can be made");
        Self {
            id,
            is_published: true,
            algorithm,
            pair,
        }
    }

    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the public key in the form of RFC 7517.
    pub fn jwk(&self) -> Value {
        let public = self.pair.public_key_raw();
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match self.algorithm {
            Algorithm::EdDsa => json!({"kty": "OKP", "crv": "Ed25519", "x": text(public)}),
            // An uncompressed point: 4, x, y.
            Algorithm::Es256 => {
                let (x, y) = public[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": text(x), "y": text(y)})
            }
            Algorithm::Rs256 => {
                let [modulus, exponent] = integers(public);
                json!({"kty": "RSA", "n": text(&modulus), "e": text(&exponent)})
            }
        };
        jwk["alg"] = self.algorithm.name().into();
        jwk["use"] = "sig".into();
        jwk["kid"] = self.id.clone().into();
        jwk
    }

    /// Returns a token with the header that names this key.
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm.name(), "typ": "JWT", "kid": self.id});
        self.sign(&header.to_string(), &claims.to_string())
    }

    /// Returns a token of any header and claims.
    pub fn sign(&self, header: &str, claims: &str) -> String {
        let signed = unsigned(header, claims);
        let signature = self.pair.sign(signed.as_bytes());
        let mut signature = signature.expect("the key can sign");
        // X.509 has the two numbers in DER, JWS has them as 64 bytes (RFC 7518, section 3.4).
        if self.algorithm == Algorithm::Es256 {
            signature = integers(&signature)
                .map(|number| [vec![0; 32 - number.len()], number].concat())
                .concat();
        }
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Returns the two integers of a DER sequence, without leading zeros.
fn integers(sequence: &[u8]) -> [Vec<u8>; 2] {
    let (content, _) = element(sequence);
    let (first, rest) = element(content);
    let (second, _) = element(rest);
    [first, second].map(|number| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number[zeros..].to_vec()
    })
}

/// Splits DER into the content of its first element and what follows it.
fn element(der: &[u8]) -> (&[u8], &[u8]) {
    let short = usize::from(der[1]);
    if short < 0x80 {
        return der[2..].split_at(short);
    }
    let (bytes, rest) = der[2..].split_at(short - 0x80);
    let length = bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    rest.split_at(length)
}
