//! Tokens whose header or claims can be read in two ways.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::*;

const POLICY: Policy<'static> = Policy {
    issuer: "https://issuer.example",
    audience: "kanat",
    algorithms: DEFAULT_ALGORITHMS,
    key_id: KeyId::Required,
};

struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    fn keys(&self, id: Option<&str>) -> KeySet {
        let point = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": point});
        if let Some(id) = id {
            key["kid"] = id.into();
        }
        KeySet::parse(json!({"keys": [key]}).to_string().as_bytes()).unwrap()
    }

    fn token(&self, header: &str, claims: &str) -> String {
        let signed = [header, claims]
            .map(|part| URL_SAFE_NO_PAD.encode(part))
            .join(".");
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn verified(&self, header: &str, claims: &str) -> Result<Claims, Error> {
        let token = self.token(header, claims);
        let token = UnverifiedToken::parse(token.as_bytes(), &POLICY)?;
        let keys = self.keys(Some("one"));
        let key = token.find_key(&keys).ok_or(Error::UnknownKey)?;
        token.verify(key, &POLICY, Timestamp::from_millis(0))
    }
}

const HEADER: &str = r#"{"alg":"EdDSA","kid":"one"}"#;
const CLAIMS: &str = concat!(
    r#"{"iss":"https://issuer.example","aud":"kanat","sub":"ada","exp":60,"#,
    r#""email":"a@b","email_verified":true,"n":[{"a":1,"b":null}]}"#,
);

#[test]
fn claims_beside_the_registered_ones_are_read_by_name() {
    let claims = Issuer::new().verified(HEADER, CLAIMS).unwrap();
    assert_eq!(claims.text("email"), Some("a@b"));
    assert_eq!(claims.text("sub"), Some("ada"));
    assert_eq!(claims.text("n"), None);
    assert!(claims.is_true("email_verified"));
    assert!(!claims.is_true("email"));
    assert_eq!(claims.expires_at(), Timestamp::from_millis(60_000));
}

#[test]
fn a_member_that_is_named_twice_is_refused_wherever_it_stands() {
    let issuer = Issuer::new();
    let twice = |claims: &str, member: &str| claims.replacen('{', &format!("{{{member},"), 1);
    for member in [
        r#""sub":"eve""#,
        r#""email":"eve@b""#,
        r#""n":1"#,
        r#""x":{"a":1,"a":2}"#,
    ] {
        let refused = issuer.verified(HEADER, &twice(CLAIMS, member));
        assert_eq!(refused.err(), Some(Error::Unsupported), "{member}");
    }
    for header in [
        r#"{"alg":"EdDSA","kid":"one","kid":"two"}"#,
        r#"{"alg":"EdDSA","kid":"one","jku":"a","jku":"b"}"#,
    ] {
        let refused = issuer.verified(header, CLAIMS);
        assert_eq!(refused.err(), Some(Error::Unsupported), "{header}");
    }
}

#[test]
fn where_ids_of_keys_are_required_a_token_and_its_key_have_one() {
    let issuer = Issuer::new();
    let refused = issuer.verified(r#"{"alg":"EdDSA"}"#, CLAIMS);
    assert_eq!(refused.err(), Some(Error::NoKeyId));
    let text = issuer.token(HEADER, CLAIMS);
    let token = UnverifiedToken::parse(text.as_bytes(), &POLICY).unwrap();
    assert!(token.find_key(&issuer.keys(None)).is_none());
    let optional = Policy {
        key_id: KeyId::Optional,
        ..POLICY
    };
    let token = UnverifiedToken::parse(text.as_bytes(), &optional).unwrap();
    assert!(token.find_key(&issuer.keys(None)).is_some());
}

#[test]
fn the_issuer_of_a_token_that_cannot_be_read_is_not_known() {
    let token = Issuer::new().token(HEADER, CLAIMS);
    let claimed = UnverifiedToken::claimed_issuer(token.as_bytes());
    assert_eq!(claimed.as_deref(), Some(POLICY.issuer));
    for wrong in ["", "a", "a.b", "e30.e30.", "..", "e30.eyJpc3MiOjF9."] {
        assert_eq!(UnverifiedToken::claimed_issuer(wrong.as_bytes()), None);
    }
}
