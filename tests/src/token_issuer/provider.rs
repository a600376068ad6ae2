//! Endpoints of the provider: discovery, keys, the start of the device flow, and tokens.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::grants::{Grant, Grants, Outcome, Refusal, has_scope, params};
use super::key::{Algorithm, IssuerKey};
use super::{CLIENT_ID, now, with_claims};
use crate::target::{ReceivedRequest, Reply};

/// Keys, grants in progress, and how the provider behaves.
pub struct State {
    pub is_away: bool,
    pub replies: HashMap<String, (u16, String)>,
    /// Members of the discovery document that differ.
    pub metadata: Value,
    pub lifetime: i64,
    pub access_audience: Option<String>,
    pub grants: Grants,
    keys: Vec<IssuerKey>,
}

impl State {
    pub fn new(algorithm: Algorithm) -> Self {
        let mut state = Self {
            is_away: false,
            replies: HashMap::new(),
            metadata: json!({}),
            lifetime: 3600,
            access_audience: None,
            grants: Grants::default(),
            keys: Vec::new(),
        };
        state.add_key(algorithm);
        state
    }

    /// Returns the key in use.
    pub fn key(&self) -> &IssuerKey {
        self.keys.last().expect("an issuer has a key")
    }

    pub fn key_of(&self, id: &str) -> &IssuerKey {
        let key = self.keys.iter().find(|key| key.id == id);
        key.unwrap_or_else(|| panic!("there never was a key {id}"))
    }

    pub fn add_key(&mut self, algorithm: Algorithm) {
        let id = format!("key-{}", self.keys.len() + 1);
        self.keys.push(IssuerKey::new(id, algorithm));
    }

    pub fn withdraw_former_keys(&mut self) {
        let former = self.keys.len() - 1;
        for key in &mut self.keys[..former] {
            key.is_published = false;
        }
    }

    pub fn answer(&mut self, request: &ReceivedRequest) -> Reply {
        if self.is_away {
            return json_reply(503, &json!({}));
        }
        let path = path(request);
        if let Some((status, body)) = self.replies.get(path) {
            return Reply::Answer(*status, Vec::new(), body.clone());
        }
        let issuer = format!("http://{}", request.header("host"));
        match (request.method.as_str(), path) {
            ("GET", "/.well-known/openid-configuration") => {
                json_reply(200, &self.discovery(&issuer))
            }
            ("GET", "/keys") => {
                let published = self.keys.iter().filter(|key| key.is_published);
                let keys: Vec<Value> = published.map(IssuerKey::jwk).collect();
                json_reply(200, &json!({"keys": keys}))
            }
            ("POST", "/device") => reply(self.grants.begin_device(&issuer, &form(request))),
            ("POST", "/token") => {
                let grant = self.grants.redeem(&form(request));
                reply(grant.map(|grant| self.tokens(&issuer, grant)))
            }
            _ => json_reply(404, &json!({"error": "not_found"})),
        }
    }

    fn discovery(&self, issuer: &str) -> Value {
        let document = json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "device_authorization_endpoint": format!("{issuer}/device"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "id_token_signing_alg_values_supported": [self.key().algorithm().name()],
        });
        let mut document = with_claims(document, &self.metadata);
        let members = document.as_object_mut().expect("a document is an object");
        members.retain(|_, value| !value.is_null());
        document
    }

    fn tokens(&mut self, issuer: &str, grant: Grant) -> Value {
        let claims = with_claims(
            json!({"iss": issuer, "iat": now(), "exp": now() + self.lifetime}),
            &grant.person.claims(),
        );
        let mut id_claims = with_claims(claims.clone(), &json!({"aud": CLIENT_ID}));
        if let Some(nonce) = &grant.nonce {
            id_claims["nonce"] = nonce.clone().into();
        }
        let access_token = match &self.access_audience {
            Some(audience) => {
                let claims = with_claims(claims, &json!({"aud": audience, "scope": grant.scope}));
                self.key().token(&claims)
            }
            None => self.grants.next("access"),
        };
        let mut tokens = json!({
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "id_token": self.key().token(&id_claims),
        });
        if has_scope(&grant.scope, "offline_access") {
            tokens["refresh_token"] = self.grants.refresh_token(grant).into();
        }
        tokens
    }
}

/// Returns the path of a request, without its query.
pub fn path(request: &ReceivedRequest) -> &str {
    let path = request.path.split('?').next();
    path.unwrap_or_default()
}

fn form(request: &ReceivedRequest) -> HashMap<String, String> {
    params(&format!("form:?{}", String::from_utf8_lossy(&request.body)))
}

fn reply(outcome: Outcome) -> Reply {
    match outcome {
        Ok(body) => json_reply(200, &body),
        Err(Refusal { error, description }) => {
            let status = if error == "invalid_client" { 401 } else { 400 };
            let body = json!({"error": error, "error_description": description});
            json_reply(status, &body)
        }
    }
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::Answer(status, Vec::new(), body.to_string())
}
