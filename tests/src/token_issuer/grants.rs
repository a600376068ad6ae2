//! Grants of people: codes with challenges (RFC 7636), devices (RFC 8628) and refresh tokens,
//! each of which is taken once.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{CLIENT_ID, Person};

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Grants that have not been taken yet.
#[derive(Default)]
pub struct Grants {
    /// Kinds of grants that were asked for, in order.
    pub requested: Vec<String>,
    pub refresh_tokens: HashMap<String, Grant>,
    codes: HashMap<String, Code>,
    /// Devices by device code.
    devices: HashMap<String, Device>,
    issued: u64,
}

/// A refusal: `error` and `error_description` of RFC 6749, section 5.2.
pub struct Refusal {
    pub error: &'static str,
    pub description: &'static str,
}

/// Body of an answer, or a refusal.
pub type Outcome = Result<Value, Refusal>;

/// Consent of a person to a scope.
#[derive(Clone)]
pub struct Grant {
    pub person: Person,
    pub scope: String,
    pub nonce: Option<String>,
}

struct Code {
    challenge: String,
    redirect_uri: String,
    grant: Grant,
}

struct Device {
    user_code: String,
    scope: String,
    decision: Decision,
}

enum Decision {
    Pending,
    Approved(Person),
    Denied,
}

impl Refusal {
    fn new(error: &'static str, description: &'static str) -> Self {
        Self { error, description }
    }
}

impl Grants {
    /// Issues a code for `person`; returns the redirect address with it.
    pub fn consent(&mut self, authorization_url: &str, person: &Person) -> Url {
        let params = params(authorization_url);
        assert_eq!(params["response_type"], "code");
        assert_eq!(params["client_id"], CLIENT_ID);
        assert_eq!(params["code_challenge_method"], "S256");
        assert!(has_scope(&params["scope"], "openid"), "{params:?}");
        let code = self.next("code");
        let redirect_uri = params["redirect_uri"].clone();
        let grant = Grant {
            person: person.clone(),
            scope: params["scope"].clone(),
            nonce: params.get("nonce").cloned(),
        };
        let mut redirect = Url::parse(&redirect_uri).expect("a redirect address");
        redirect
            .query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &params["state"]);
        let code_entry = Code {
            challenge: params["code_challenge"].clone(),
            redirect_uri,
            grant,
        };
        self.codes.insert(code, code_entry);
        redirect
    }

    /// Approves the device for a person, or denies it.
    pub fn decide(&mut self, user_code: &str, person: Option<&Person>) {
        let mut devices = self.devices.values_mut();
        let device = devices.find(|device| device.user_code == user_code);
        let device = device.unwrap_or_else(|| panic!("no device shows {user_code}"));
        device.decision = match person {
            Some(person) => Decision::Approved(person.clone()),
            None => Decision::Denied,
        };
    }

    /// Begins the grant of a device, and returns the answer to it.
    pub fn begin_device(&mut self, issuer: &str, form: &HashMap<String, String>) -> Outcome {
        if form.get("client_id").is_none_or(|id| id != CLIENT_ID) {
            return Err(Refusal::new("invalid_client", "the client is not known"));
        }
        let device_code = self.next("device");
        let user_code = format!("WDJB-{:04}", self.issued);
        let device = Device {
            user_code: user_code.clone(),
            scope: form.get("scope").cloned().unwrap_or_default(),
            decision: Decision::Pending,
        };
        self.devices.insert(device_code.clone(), device);
        Ok(json!({
            "device_code": device_code,
            "user_code": user_code,
            "verification_uri": format!("{issuer}/activate"),
            "verification_uri_complete": format!("{issuer}/activate?user_code={user_code}"),
            "expires_in": 600,
            "interval": 1,
        }))
    }

    /// Takes the grant of a request to the token endpoint, which is good once.
    pub fn redeem(&mut self, form: &HashMap<String, String>) -> Result<Grant, Refusal> {
        let field = |name: &str| form.get(name).cloned().unwrap_or_default();
        self.requested.push(field("grant_type"));
        if field("client_id") != CLIENT_ID {
            return Err(Refusal::new("invalid_client", "the client is not known"));
        }
        let invalid = |description: &'static str| Refusal::new("invalid_grant", description);
        match field("grant_type").as_str() {
            "authorization_code" => {
                let Some(code) = self.codes.remove(&field("code")) else {
                    return Err(invalid("the code is not known, or was taken"));
                };
                let challenge =
                    URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier").as_bytes()));
                if challenge != code.challenge {
                    return Err(invalid("the verifier is another"));
                }
                if field("redirect_uri") != code.redirect_uri {
                    return Err(invalid("the redirect address is another"));
                }
                Ok(code.grant)
            }
            "refresh_token" => {
                let grant = self.refresh_tokens.remove(&field("refresh_token"));
                let grant = grant.ok_or_else(|| invalid("the refresh token is not good"))?;
                // Renewed ID tokens need not have the nonce of the login.
                Ok(Grant {
                    nonce: None,
                    ..grant
                })
            }
            DEVICE_GRANT => self.redeem_device(&field("device_code")),
            _ => Err(Refusal::new("unsupported_grant_type", "no such grant")),
        }
    }

    fn redeem_device(&mut self, device_code: &str) -> Result<Grant, Refusal> {
        let refused = |error: &'static str| Err(Refusal::new(error, "the device has no grant"));
        let Some(device) = self.devices.get(device_code) else {
            return refused("expired_token");
        };
        let person = match &device.decision {
            Decision::Pending => return refused("authorization_pending"),
            Decision::Denied => return refused("access_denied"),
            Decision::Approved(person) => person.clone(),
        };
        let scope = device.scope.clone();
        self.devices.remove(device_code);
        Ok(Grant {
            person,
            scope,
            nonce: None,
        })
    }

    /// Issues a refresh token for `grant`.
    pub fn refresh_token(&mut self, grant: Grant) -> String {
        let token = self.next("refresh");
        self.refresh_tokens.insert(token.clone(), grant);
        token
    }

    /// Returns a text that was not issued before.
    pub fn next(&mut self, kind: &str) -> String {
        self.issued += 1;
        format!("{kind}-{}-s3cret", self.issued)
    }
}

/// Returns the redirect address of a person who declined.
pub fn decline(authorization_url: &str) -> Url {
    let params = params(authorization_url);
    let mut redirect = Url::parse(&params["redirect_uri"]).expect("a redirect address");
    redirect
        .query_pairs_mut()
        .append_pair("error", "access_denied")
        .append_pair("error_description", "the person declined")
        .append_pair("state", &params["state"]);
    redirect
}

/// Returns the parameters of an address.
pub fn params(url: &str) -> HashMap<String, String> {
    let url = Url::parse(url).expect("an authorization URL");
    url.query_pairs().into_owned().collect()
}

/// Returns whether `scope` names the scope `name`.
pub fn has_scope(scope: &str, name: &str) -> bool {
    scope.split(' ').any(|part| part == name)
}
