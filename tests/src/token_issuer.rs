//! An OpenID provider of a test: a discovery document, a key set that rotates, tokens that it
//! signed, and the flows by which a person gets them.

mod grants;
mod key;
mod provider;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};

use crate::FakeTarget;
pub use key::Algorithm;
use provider::State;

/// Client id that the provider's flows take. It is a public client, without a secret.
pub const CLIENT_ID: &str = "kanat-cli";

/// A running issuer; it stops when dropped.
pub struct TokenIssuer {
    target: FakeTarget,
    state: Arc<Mutex<State>>,
}

/// A person who has an account with the provider.
#[derive(Debug, Clone)]
pub struct Person {
    pub subject: String,
    pub email: String,
    pub is_verified: bool,
    pub name: String,
}

impl Person {
    /// Returns a person whose address is verified, and whose subject is made of the address.
    pub fn new(name: &str, email: &str) -> Self {
        Self {
            subject: format!("sub-{email}"),
            email: email.to_owned(),
            is_verified: true,
            name: name.to_owned(),
        }
    }

    /// Returns the claims about the person.
    pub fn claims(&self) -> Value {
        json!({
            "sub": self.subject,
            "email": self.email,
            "email_verified": self.is_verified,
            "name": self.name,
        })
    }
}

impl TokenIssuer {
    /// Starts an issuer with an Ed25519 key.
    pub async fn start() -> Self {
        Self::start_with(Algorithm::EdDsa).await
    }

    /// Starts an issuer with a key for `algorithm`.
    pub async fn start_with(algorithm: Algorithm) -> Self {
        let state = Arc::new(Mutex::new(State::new(algorithm)));
        let shared = Arc::clone(&state);
        let target =
            FakeTarget::scripted(move |request, _| shared.lock_now().answer(request)).await;
        Self { target, state }
    }

    /// Issuer that its tokens name.
    pub fn url(&self) -> String {
        self.target.url()
    }

    /// Returns the number of requests to `path` so far; their queries do not matter.
    pub fn requests(&self, path: &str) -> usize {
        let received = self.target.received();
        let paths = received.iter().map(provider::path);
        paths.filter(|requested| *requested == path).count()
    }

    /// Answers 503 to every request while `is_away`.
    pub fn set_away(&self, is_away: bool) {
        self.state().is_away = is_away;
    }

    /// Answers `path` with this status and body from now on; `None` restores its own answer.
    pub fn set_reply(&self, path: &str, reply: Option<(u16, String)>) {
        match reply {
            Some(reply) => self.state().replies.insert(path.to_owned(), reply),
            None => self.state().replies.remove(path),
        };
    }

    /// Sets a member of the discovery document; null leaves it out.
    pub fn set_metadata(&self, name: &str, value: Value) {
        self.state().metadata[name] = value;
    }
}

/// Keys and tokens.
impl TokenIssuer {
    /// Id of the key that signs now.
    pub fn key_id(&self) -> String {
        self.state().key().id.clone()
    }

    /// Makes a new key under a new id, and withdraws all others.
    pub fn rotate(&self) {
        let algorithm = self.state().key().algorithm();
        self.rotate_to(algorithm);
    }

    /// Makes a new key for `algorithm` under a new id, and withdraws all others.
    pub fn rotate_to(&self, algorithm: Algorithm) {
        let mut state = self.state();
        state.add_key(algorithm);
        state.withdraw_former_keys();
    }

    /// Makes a new key for `algorithm`, and goes on to publish the others.
    pub fn add_key(&self, algorithm: Algorithm) {
        self.state().add_key(algorithm);
    }

    /// Returns a token with `claims`, which is signed by the key in use. Its issuer is this one and
    /// it is good for an hour, unless `claims` say otherwise.
    pub fn token(&self, claims: &Value) -> String {
        let key_id = self.key_id();
        self.token_by(&key_id, claims)
    }

    /// Returns a token that is signed by the key of this id, which may be withdrawn.
    pub fn token_by(&self, key_id: &str, claims: &Value) -> String {
        let all = with_claims(json!({"iss": self.url(), "exp": now() + 3600}), claims);
        self.state().key_of(key_id).token(&all)
    }

    /// Returns an ID token for `person`, as the flows give it to the client.
    pub fn id_token(&self, person: &Person) -> String {
        self.id_token_with(person, &json!({}))
    }

    /// Returns an ID token for `person` with further or other claims.
    pub fn id_token_with(&self, person: &Person, claims: &Value) -> String {
        let all = with_claims(json!({"aud": CLIENT_ID, "iat": now()}), &person.claims());
        self.token(&with_claims(all, claims))
    }

    /// Returns a token of any header and claims, which is signed by the key in use. Its texts are
    /// taken as they are, also where they are no JSON.
    pub fn sign(&self, header: &str, claims: &str) -> String {
        self.state().key().sign(header, claims)
    }
}

/// What people do at the provider.
impl TokenIssuer {
    /// Number of seconds that tokens of the flows are good for.
    pub fn set_lifetime(&self, seconds: i64) {
        self.state().lifetime = seconds;
    }

    /// Makes access tokens of the flows JWTs for this audience; `None` makes them opaque.
    pub fn set_access_audience(&self, audience: Option<&str>) {
        self.state().access_audience = audience.map(str::to_owned);
    }

    /// Takes no refresh token any more that it has issued.
    pub fn revoke(&self) {
        self.state().grants.refresh_tokens.clear();
    }

    /// Grants of the token endpoint that were asked for, in order.
    pub fn grants(&self) -> Vec<String> {
        self.state().grants.requested.clone()
    }

    /// Returns the address to which the browser of `person` is sent from `authorization_url`, once
    /// the person has agreed.
    pub fn consent(&self, authorization_url: &str, person: &Person) -> Url {
        self.state().grants.consent(authorization_url, person)
    }

    /// Returns the address to which the browser is sent after the person has declined.
    pub fn decline(&self, authorization_url: &str) -> Url {
        grants::decline(authorization_url)
    }

    /// Grants the device that shows `user_code` the tokens of `person`.
    pub fn approve(&self, user_code: &str, person: &Person) {
        self.state().grants.decide(user_code, Some(person));
    }

    /// Denies the device that shows `user_code` any tokens.
    pub fn deny(&self, user_code: &str) {
        self.state().grants.decide(user_code, None);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock_now()
    }
}

/// Returns header and claims in the compact form of a JWS, without the signature.
pub fn unsigned(header: &str, claims: &str) -> String {
    [header, claims]
        .map(|part| URL_SAFE_NO_PAD.encode(part))
        .join(".")
}

/// Seconds since 1970.
pub fn now() -> i64 {
    kanat_model::Timestamp::now().as_millis() / 1_000
}

/// Adds the claims of `more`, which replace those of the same name.
fn with_claims(mut claims: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().expect("claims are an object") {
        claims[name] = value.clone();
    }
    claims
}

/// A lock that no panic of a test poisons.
trait LockNow<T> {
    fn lock_now(&self) -> MutexGuard<'_, T>;
}

impl<T> LockNow<T> for Mutex<T> {
    fn lock_now(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
