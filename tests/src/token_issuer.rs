//! An issuer of access tokens: a discovery document, a key set, and tokens that it signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ED25519, SigningKey};
use serde_json::{Value, json};

use crate::FakeTarget;
use crate::target::Reply;

/// A running issuer; it stops when dropped.
pub struct TokenIssuer {
    target: FakeTarget,
    key: KeyPair,
}

/// Id of its key.
const KEY_ID: &str = "key-1";

impl TokenIssuer {
    /// With a key of its own.
    pub async fn start() -> Self {
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key can be made");
        let point = URL_SAFE_NO_PAD.encode(key.public_key_raw());
        let shown = json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "alg": "EdDSA",
            "use": "sig",
            "kid": KEY_ID,
            "x": point,
        });
        let target = FakeTarget::scripted(move |request, _| {
            let issuer = format!("http://{}", request.header("host"));
            let body = match request.path.as_str() {
                "/.well-known/openid-configuration" => {
                    json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")})
                }
                "/keys" => json!({"keys": [shown]}),
                _ => return Reply::Answer(404, Vec::new(), "{}".to_owned()),
            };
            Reply::Answer(200, Vec::new(), body.to_string())
        })
        .await;
        Self { target, key }
    }

    /// Issuer that its tokens name.
    pub fn url(&self) -> String {
        self.target.url()
    }

    /// A token that says this beside who made it and that it is good for an hour; what is said here
    /// counts.
    pub fn token(&self, claims: &Value) -> String {
        let mut all = json!({"iss": self.url(), "exp": now() + 3600});
        for (name, value) in claims.as_object().expect("claims are an object") {
            all[name] = value.clone();
        }
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": KEY_ID});
        let signed = [header, all]
            .map(|part| URL_SAFE_NO_PAD.encode(part.to_string()))
            .join(".");
        let signature = self.key.sign(signed.as_bytes()).expect("the key can sign");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    kanat_model::Timestamp::now().as_millis() / 1_000
}
