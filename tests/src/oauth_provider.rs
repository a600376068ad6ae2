//! A provider that speaks OAuth2 (RFC 6749 with the code challenges of RFC 7636): it gives codes,
//! takes each once, gives tokens that end, renews them for refresh tokens that it takes once too,
//! and serves an API for the token of the day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::FakeTarget;
use crate::target::{ReceivedRequest, Reply};

pub const CLIENT_ID: &str = "kanat-client";
pub const CLIENT_SECRET: &str = "client-s3cret";

/// How the token endpoint takes a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    Granted,
    /// 400 `invalid_grant`.
    Refused,
    /// 503.
    Away,
}

/// A running provider; it stops when dropped.
pub struct OauthProvider {
    pub target: FakeTarget,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Challenge and redirect address by code.
    codes: HashMap<String, (String, String)>,
    given: u64,
    access: String,
    refresh: String,
    life_seconds: u64,
    renewal: Renewal,
    /// Requests of the token endpoint, by grant.
    grants: Vec<String>,
}

impl OauthProvider {
    /// Its access tokens are good for so many seconds.
    pub async fn start(life_seconds: u64) -> Self {
        let state = State {
            codes: HashMap::new(),
            given: 0,
            access: String::new(),
            refresh: String::new(),
            life_seconds,
            renewal: Renewal::Granted,
            grants: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let target = FakeTarget::scripted(move |request, _| lock(&shared).answer(request)).await;
        Self { target, state }
    }

    /// The config of an instance of the generic entry that is connected to it.
    pub fn config(&self) -> Value {
        let base = self.target.url();
        json!({
            "base_url": format!("{base}/api"),
            "authorization_url": format!("{base}/authorize"),
            "token_url": format!("{base}/token"),
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "scopes": "read write",
        })
    }

    /// A person's browser goes to `authorization_url`, the person agrees: where the browser is sent
    /// from there.
    pub fn consent(&self, authorization_url: &str) -> Url {
        let url = Url::parse(authorization_url).expect("an authorization URL");
        let params: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(params["response_type"], "code");
        assert_eq!(params["client_id"], CLIENT_ID);
        assert_eq!(params["scope"], "read write");
        assert_eq!(params["code_challenge_method"], "S256");
        let mut state = lock(&self.state);
        state.given += 1;
        let code = format!("code/{}", state.given);
        let challenge = params["code_challenge"].clone();
        let back = params["redirect_uri"].clone();
        state.codes.insert(code.clone(), (challenge, back.clone()));
        let mut back = Url::parse(&back).expect("a redirect address");
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &params["state"])
            .append_pair("iss", "https://provider.example")
            .append_pair("session_state", "x");
        back
    }

    /// From now on it takes refresh tokens so.
    pub fn renewal(&self, renewal: Renewal) {
        lock(&self.state).renewal = renewal;
    }

    /// The access token of the day is good no more.
    pub fn revoke(&self) {
        lock(&self.state).access.clear();
    }

    /// The access token of the day.
    pub fn access_token(&self) -> String {
        lock(&self.state).access.clone()
    }

    /// The refresh token of the day.
    pub fn refresh_token(&self) -> String {
        lock(&self.state).refresh.clone()
    }

    /// The grants that were asked for, in order.
    pub fn grants(&self) -> Vec<String> {
        lock(&self.state).grants.clone()
    }
}

impl State {
    fn answer(&mut self, request: &ReceivedRequest) -> Reply {
        if request.path == "/token" && request.method == "POST" {
            return self.token(&request.body);
        }
        if !request.path.starts_with("/api") {
            return answer(404, &json!({"error": "not_found"}));
        }
        let authorized = !self.access.is_empty()
            && request.header("authorization") == format!("Bearer {}", self.access);
        if authorized {
            answer(200, &json!({"ok": true, "data": [{"id": 1}]}))
        } else {
            answer(401, &json!({"error": "invalid_token"}))
        }
    }

    fn token(&mut self, body: &[u8]) -> Reply {
        let form: Url = format!("form:?{}", String::from_utf8_lossy(body))
            .parse()
            .expect("a form");
        let fields: HashMap<String, String> = form.query_pairs().into_owned().collect();
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        self.grants.push(field("grant_type"));
        if field("client_id") != CLIENT_ID || field("client_secret") != CLIENT_SECRET {
            return answer(401, &json!({"error": "invalid_client"}));
        }
        let refused = |why: &str| {
            answer(
                400,
                &json!({"error": "invalid_grant", "error_description": why}),
            )
        };
        match field("grant_type").as_str() {
            "authorization_code" => {
                let Some((challenge, back)) = self.codes.remove(&field("code")) else {
                    return refused("the code is not known, or was taken");
                };
                let shown =
                    URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier").as_bytes()));
                if shown != challenge || back != field("redirect_uri") {
                    return refused("the verifier or the redirect address is another");
                }
            }
            "refresh_token" => match self.renewal {
                Renewal::Away => return answer(503, &json!({})),
                Renewal::Refused => return refused("the grant was revoked"),
                Renewal::Granted if field("refresh_token") != self.refresh => {
                    return refused("the token was taken");
                }
                Renewal::Granted => {}
            },
            "client_credentials" => {}
            _ => return answer(400, &json!({"error": "unsupported_grant_type"})),
        }
        self.given += 1;
        self.access = format!("access-{}-s3cret", self.given);
        let mut tokens = json!({
            "access_token": self.access,
            "token_type": "Bearer",
            "expires_in": self.life_seconds,
        });
        if field("grant_type") != "client_credentials" {
            self.refresh = format!("refresh-{}-s3cret", self.given);
            tokens["refresh_token"] = self.refresh.clone().into();
        }
        answer(200, &tokens)
    }
}

fn answer(status: u16, body: &Value) -> Reply {
    Reply::Answer(
        status,
        vec![("content-type".to_owned(), "application/json".to_owned())],
        body.to_string(),
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
