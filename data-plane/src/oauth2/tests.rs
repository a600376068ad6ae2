//! Tokens of an issuer with real keys. The key set comes over a real socket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeySize, PublicKeyComponents};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Response;
use kanat_model::Timestamp;
use kanat_net::egress::{LocalTargets, Policy};
use kanat_net::jwks::{self, TokenVerifier};
use kanat_net::outbound;
use kanat_proto::plan::v1::OAuth2;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{MAX_KEY_AGE, Subject, TokenError, authenticate};
use crate::tests::target::Target;

const NOW: Timestamp = Timestamp::from_millis(1_769_860_800_000);
const EXP: i64 = 1_769_860_800 + 60;

const UNAVAILABLE: Result<Subject, TokenError> =
    Err(TokenError::Unverified(jwks::Error::KeysUnavailable));

fn is_invalid(verified: &Result<Subject, TokenError>) -> bool {
    matches!(
        verified,
        Err(TokenError::Unverified(jwks::Error::Invalid(_)))
    )
}

enum Key {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Key {
    fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn ed() -> Self {
        Self::Ed(Ed25519KeyPair::generate().unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(key) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(key.public_key());
                json!({
                    "kty": "RSA",
                    "kid": id,
                    "use": "sig",
                    "alg": "RS256",
                    "n": text(&parts.n),
                    "e": text(&parts.e),
                })
            }
            Self::Ec(key) => {
                let point = key.public_key().as_ref();
                json!({
                    "kty": "EC",
                    "kid": id,
                    "crv": "P-256",
                    "x": text(&point[1..33]),
                    "y": text(&point[33..]),
                })
            }
            Self::Ed(key) => {
                json!({
                    "kty": "OKP",
                    "kid": id,
                    "crv": "Ed25519",
                    "x": text(key.public_key().as_ref()),
                })
            }
        }
    }

    fn sign(&self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    text,
                    &mut signature,
                )
                .unwrap();
                signature
            }
            Self::Ec(key) => key
                .sign(&SystemRandom::new(), text)
                .unwrap()
                .as_ref()
                .to_vec(),
            Self::Ed(key) => key.sign(text).as_ref().to_vec(),
        }
    }

    fn token(&self, id: &str, claims: &Value) -> String {
        self.token_with(
            &json!({"alg": self.algorithm(), "typ": "JWT", "kid": id}),
            claims,
        )
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        self.token_of(&header.to_string(), &claims.to_string())
    }

    fn token_of(&self, header: &str, claims: &str) -> String {
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// An issuer that shows some keys, and counts how often it is asked for them.
struct Issuer {
    target: Target,
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
    verifier: TokenVerifier,
}

fn verifier(local: LocalTargets) -> TokenVerifier {
    let policy = Arc::new(Policy::new(Vec::new(), local));
    let outbound = outbound::Client::new(policy, &outbound::Options::default()).unwrap();
    let stop = CancellationToken::new();
    TokenVerifier::new(outbound, TaskTracker::new(), stop, MAX_KEY_AGE)
}

/// Lets so much time pass.
async fn after(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

impl Issuer {
    async fn with(keys: Vec<Value>) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let keys = Arc::new(Mutex::new(keys));
        let shown = Arc::clone(&keys);
        let target = Target::answering(move |_, request| {
            let host = request.headers["host"].to_str().unwrap();
            let body = if request.path == "/.well-known/openid-configuration" {
                json!({
                    "issuer": format!("http://{host}"),
                    "jwks_uri": format!("http://{host}/keys"),
                })
            } else {
                counted.fetch_add(1, Ordering::SeqCst);
                json!({"keys": *shown.lock().unwrap()})
            };
            Response::new(&*body.to_string().leak())
        })
        .await;
        Self {
            target,
            keys,
            asked,
            verifier: verifier(LocalTargets::Allowed),
        }
    }

    /// An API that takes its tokens.
    fn api(&self) -> OAuth2 {
        OAuth2 {
            issuer: self.target.url.clone(),
            jwks_url: String::new(),
            audience: "orders".to_owned(),
            scopes: vec!["orders:write".to_owned()],
        }
    }

    /// Returns the claims of a valid token.
    fn claims(&self) -> Value {
        json!({
            "iss": self.target.url,
            "sub": "7",
            "aud": "orders",
            "exp": EXP,
            "scope": "orders:read orders:write",
            "azp": "acme",
        })
    }

    async fn verify(&self, token: &str) -> Result<Subject, TokenError> {
        authenticate(&self.verifier, &self.api(), token.as_bytes(), NOW).await
    }
}

#[tokio::test]
async fn tokens_of_every_algorithm_that_is_taken_open_the_api() {
    let keys = [Key::rsa(), Key::ec(), Key::ed()];
    let mut set: Vec<Value> = keys.iter().map(|key| key.jwk(key.algorithm())).collect();
    set.push(json!({"kty": "oct", "kid": "secret", "k": "c2VjcmV0"}));
    set.push(json!({"kty": "EC", "kid": "other", "crv": "P-384", "x": "", "y": ""}));
    let issuer = Issuer::with(set).await;
    for key in &keys {
        let by_id = key.token(key.algorithm(), &issuer.claims());
        let without = key.token_with(&json!({"alg": key.algorithm()}), &issuer.claims());
        for token in [by_id, without] {
            assert_eq!(
                issuer.verify(&token).await,
                Ok(Subject {
                    name: "acme".to_owned()
                }),
                "{}",
                key.algorithm()
            );
        }
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    issuer.target.stop().await;
}

#[tokio::test]
async fn what_a_token_says_must_fit_the_api() {
    let key = Key::ec();
    let issuer = Issuer::with(vec![key.jwk("1")]).await;
    let with = |name: &str, value: Value| {
        let mut claims = issuer.claims();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        key.token("1", &claims)
    };
    let good = [
        ("aud", json!(["others", "orders"])),
        ("nbf", json!(EXP - 60)),
        ("scope", json!("orders:write")),
        ("exp", json!(EXP - 59)),
    ];
    for (name, value) in good {
        assert!(
            issuer.verify(&with(name, value.clone())).await.is_ok(),
            "{name} {value}"
        );
    }
    let bad = [
        ("exp", json!(EXP - 60)),
        ("exp", Value::Null),
        ("exp", json!("tomorrow")),
        ("nbf", json!(EXP + 3_600)),
        ("iss", json!("https://elsewhere.example")),
        ("iss", Value::Null),
        (
            "iss",
            json!([issuer.target.url, "https://elsewhere.example"]),
        ),
        ("aud", json!("invoices")),
        ("aud", Value::Null),
        ("aud", json!(["invoices", 1])),
        ("sub", Value::Null),
        ("sub", json!(7)),
    ];
    for (name, value) in bad {
        let refused = issuer.verify(&with(name, value.clone())).await;
        assert!(is_invalid(&refused), "{name} {value}: {refused:?}");
    }
    for value in [
        Value::Null,
        json!("orders:read"),
        json!("orders:writes"),
        json!(""),
    ] {
        let refused = issuer.verify(&with("scope", value)).await;
        assert_eq!(refused, Err(TokenError::Scope("orders:write".to_owned())));
    }
    let mut listed = issuer.claims();
    listed["scope"] = Value::Null;
    listed["scp"] = json!(["orders:write"]);
    assert!(issuer.verify(&key.token("1", &listed)).await.is_ok());
    issuer.target.stop().await;
}

#[tokio::test]
async fn forged_tokens_open_nothing() {
    let key = Key::rsa();
    let other = Key::rsa();
    let issuer = Issuer::with(vec![key.jwk("1")]).await;
    let claims = issuer.claims();
    let good = key.token("1", &claims);
    assert!(issuer.verify(&good).await.is_ok());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let mut raised = claims.clone();
    raised["azp"] = json!("admin");
    let raised = URL_SAFE_NO_PAD.encode(raised.to_string());
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"1"}"#);
    let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
    let modulus = key.jwk("1")["n"].as_str().unwrap().to_owned();
    let hs256 = {
        use hmac::{Hmac, KeyInit, Mac};
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"1"}"#);
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(modulus.as_bytes()).unwrap();
        mac.update(format!("{head}.{payload}").as_bytes());
        format!(
            "{head}.{payload}.{}",
            URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
        )
    };
    let forged = [
        other.token("1", &claims),
        Key::ec().token("1", &claims),
        format!("{header}.{raised}.{signature}"),
        format!("{signed}."),
        signed.to_owned(),
        format!("{none}.{payload}."),
        hs256,
        key.token_with(&json!({"alg": "RS512", "kid": "1"}), &claims),
        key.token_with(&json!({"alg": "PS256", "kid": "1"}), &claims),
        key.token_with(&json!({"alg": "RS256", "kid": 1}), &claims),
        key.token_with(&json!({"alg": "RS256", "kid": "../../dev/null"}), &claims),
        key.token_with(&json!({"alg": "RS256", "kid": "1' OR '1'='1"}), &claims),
        format!("{good}="),
        format!("{good} "),
        format!("{good}.{signature}"),
        String::new(),
        "a.b.c".to_owned(),
        "x".repeat(20_000),
    ];
    for token in forged {
        let refused = issuer.verify(&token).await;
        assert!(is_invalid(&refused), "{token}: {refused:?}");
    }
    issuer.target.stop().await;
}

#[tokio::test]
async fn a_header_leads_to_no_other_key_and_has_no_extension_that_is_skipped() {
    let key = Key::rsa();
    let issuer = Issuer::with(vec![key.jwk("1")]).await;
    let attacker = Key::rsa();
    let trap = Issuer::with(vec![attacker.jwk("1")]).await;
    let claims = issuer.claims();
    let elsewhere = format!("{}/keys", trap.target.url);
    let pointers = [
        ("jku", json!(elsewhere)),
        ("x5u", json!(elsewhere)),
        ("jwk", attacker.jwk("1")),
        ("x5c", json!(["MAo="])),
    ];
    for (name, value) in pointers {
        let header = json!({"alg": attacker.algorithm(), "kid": "1", name: value});
        let refused = issuer.verify(&attacker.token_with(&header, &claims)).await;
        assert!(is_invalid(&refused), "{name}: {refused:?}");
        let header = json!({"alg": key.algorithm(), "kid": "1", name: value});
        let accepted = issuer.verify(&key.token_with(&header, &claims)).await;
        assert!(accepted.is_ok(), "{name}: {accepted:?}");
    }
    let header = json!({"alg": key.algorithm(), "kid": "1", "crit": ["exp"]});
    let refused = issuer.verify(&key.token_with(&header, &claims)).await;
    assert!(is_invalid(&refused), "crit: {refused:?}");
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    assert_eq!(trap.asked.load(Ordering::SeqCst), 0);
    trap.target.stop().await;
    issuer.target.stop().await;
}

#[tokio::test]
async fn what_a_token_says_twice_counts_for_nothing() {
    let key = Key::ec();
    let issuer = Issuer::with(vec![key.jwk("1")]).await;
    let good = issuer.claims().to_string();
    let without_brace = good.strip_suffix('}').unwrap();
    let header = r#"{"alg":"ES256","kid":"1"}"#;
    for twice in [
        r#""azp":"admin""#,
        r#""sub":"1""#,
        r#""aud":"orders""#,
        r#""exp":99999999999"#,
        r#""iss":"https://elsewhere.example""#,
    ] {
        let token = key.token_of(header, &format!("{without_brace},{twice}}}"));
        let refused = issuer.verify(&token).await;
        assert!(is_invalid(&refused), "{twice}: {refused:?}");
    }
    let twice = r#"{"alg":"ES256","kid":"1","kid":"1"}"#;
    let refused = issuer.verify(&key.token_of(twice, &good)).await;
    assert!(is_invalid(&refused), "kid: {refused:?}");
    assert!(issuer.verify(&key.token_of(header, &good)).await.is_ok());
    issuer.target.stop().await;
}

#[tokio::test]
async fn an_issuer_is_not_asked_for_every_key_that_nobody_knows() {
    let key = Key::ed();
    let stranger = Key::ed();
    let issuer = Issuer::with(vec![key.jwk("1")]).await;
    for number in 0..20 {
        let refused = issuer
            .verify(&stranger.token(&format!("made up {number}"), &issuer.claims()))
            .await;
        assert!(is_invalid(&refused), "{refused:?}");
    }
    assert!(
        issuer
            .verify(&key.token("1", &issuer.claims()))
            .await
            .is_ok()
    );
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    issuer.target.stop().await;
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_nobodys_fault() {
    let key = Key::ed();
    let issuer = Issuer::with(Vec::new()).await;
    assert_eq!(
        issuer.verify(&key.token("1", &issuer.claims())).await,
        UNAVAILABLE
    );
    let guarded = verifier(LocalTargets::Refused);
    let token = key.token("1", &issuer.claims());
    assert_eq!(
        authenticate(&guarded, &issuer.api(), token.as_bytes(), NOW).await,
        UNAVAILABLE
    );
    issuer.target.stop().await;
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_keys_that_it_asked_for_to_others() {
    let withdrawn = Key::ed();
    let new = Key::ed();
    let issuer = Issuer::with(vec![withdrawn.jwk("1")]).await;
    let old_token = withdrawn.token("1", &issuer.claims());
    let new_token = new.token("2", &issuer.claims());
    assert!(issuer.verify(&old_token).await.is_ok());
    let before = issuer.target.received().len();
    *issuer.keys.lock().unwrap() = vec![new.jwk("2")];
    after(Duration::from_secs(30)).await;
    issuer.target.hang();
    let made_up = Key::ed().token("3", &issuer.claims());
    tokio::select! {
        refused = issuer.verify(&made_up) => {
            panic!("nobody has answered: {refused:?}")
        }
        () = issuer.target.arrivals(before + 1) => {}
    }
    issuer.target.release();
    assert!(issuer.verify(&new_token).await.is_ok());
    let refused = issuer.verify(&old_token).await;
    assert!(is_invalid(&refused), "{refused:?}");
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 2);
    issuer.target.stop().await;
}

/// Ends a connection without an answer, as a server does that has closed an idle one, and answers
/// on the next.
async fn answer_on_the_second_connection(listener: TcpListener, body: String) {
    let (mut connection, _) = listener.accept().await.unwrap();
    connection.read_u8().await.unwrap();
    drop(connection);
    let (mut connection, _) = listener.accept().await.unwrap();
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
    let response = format!("{head} {}\r\n\r\n{body}", body.len());
    connection.write_all(response.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn keys_are_asked_for_again_where_a_connection_ends_without_an_answer() {
    let key = Key::ed();
    let issuer = Issuer::with(Vec::new()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut api = issuer.api();
    api.jwks_url = format!("http://{}/keys", listener.local_addr().unwrap());
    let keys = json!({"keys": [key.jwk("1")]}).to_string();
    let token = key.token("1", &issuer.claims());
    let mut server = JoinSet::new();
    server.spawn(answer_on_the_second_connection(listener, keys));
    let verified = authenticate(&issuer.verifier, &api, token.as_bytes(), NOW).await;
    assert!(verified.is_ok(), "{verified:?}");
    server.join_all().await;
    issuer.target.stop().await;
}

#[tokio::test]
async fn keys_that_cannot_be_fetched_anew_are_trusted_for_an_hour() {
    let key = Key::ed();
    let issuer = Issuer::with(vec![key.jwk("1")]).await;
    let token = key.token("1", &issuer.claims());
    assert!(issuer.verify(&token).await.is_ok());
    let keys = std::mem::take(&mut *issuer.keys.lock().unwrap());
    after(Duration::from_secs(59 * 60)).await;
    assert!(issuer.verify(&token).await.is_ok());
    after(Duration::from_secs(60)).await;
    assert_eq!(issuer.verify(&token).await, UNAVAILABLE);
    *issuer.keys.lock().unwrap() = keys;
    after(Duration::from_secs(30)).await;
    assert!(issuer.verify(&token).await.is_ok());
    issuer.target.stop().await;
}
