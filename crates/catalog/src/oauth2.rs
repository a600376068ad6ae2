//! OAuth2 as its client: what goes to the authorization and to the token endpoint, and what comes
//! back. Sending and keeping of tokens is not here.

mod answer;

use base64::Engine;
use http::HeaderValue;
use kanat_model::Secret;
use serde_json::{Map, Value};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::auth::{Auth, ClientAuthentication};
use crate::credential::is_secret_header;
use crate::entry::Entry;
use crate::values::Values;

pub use answer::{TokenError, Tokens};

/// The client that an instance is to its provider.
#[derive(Debug, Clone)]
pub struct Client {
    authorization_url: Option<Url>,
    token_url: Url,
    id: String,
    secret: Option<Secret<String>>,
    scopes: String,
    authentication: ClientAuthentication,
    grant: Grant,
    authorization_params: Vec<(String, String)>,
    token_params: Vec<(String, String)>,
}

/// On whose behalf the client acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// On that of a person who gave consent (RFC 6749, section 4.1).
    AuthorizationCode,
    /// On its own (section 4.4).
    ClientCredentials,
}

/// A person's way back from the authorization endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Consent<'a> {
    /// Authorization code that the provider gave the person.
    pub code: &'a str,
    /// Address to which the provider sent the person back.
    pub redirect_uri: &'a str,
    /// Verifier of the code challenge (RFC 7636).
    pub verifier: &'a str,
}

/// A POST to the token endpoint.
#[derive(Clone)]
pub struct TokenRequest {
    /// The token endpoint.
    pub url: Url,
    /// The value of `Authorization`, when the client shows itself there.
    pub authorization: Option<HeaderValue>,
    /// `application/x-www-form-urlencoded`.
    pub body: String,
    /// Texts of it that may not show.
    pub secrets: Vec<String>,
}

impl Entry {
    /// The OAuth2 client that a config makes; none when the entry knows no OAuth2. The config has
    /// been checked.
    pub fn oauth2(&self, config: &Map<String, Value>) -> Option<Result<Client, String>> {
        match &self.auth {
            Auth::OAuth2(provider) => Some(Client::new(
                provider,
                &Values {
                    entry: self,
                    values: config,
                },
            )),
            Auth::Configurable | Auth::Basic { .. } | Auth::Bearer { .. } | Auth::Header { .. } => {
                None
            }
        }
    }
}

impl Client {
    fn new(provider: &crate::auth::OAuth2, config: &Values) -> Result<Self, String> {
        let address = |name: &str, template: &Option<String>| -> Result<Option<Url>, String> {
            let own = config.text(name);
            let text = match template {
                Some(template) if own.is_empty() => config.fill(template),
                Some(_) | None => own.to_owned(),
            };
            let url = (!text.is_empty()).then(|| Url::parse(&text)).transpose();
            url.map_err(|error| format!("config.{name} is not an absolute URL: {error}"))
        };
        let secret = config.text("client_secret");
        let mut authorization_params = provider.authorization_params.clone();
        authorization_params.extend(config.pairs("authorization_params"));
        let grant = match config.text("grant_type") {
            "client_credentials" => Grant::ClientCredentials,
            _ => Grant::AuthorizationCode,
        };
        let scopes = match (grant, &provider.client_scopes) {
            (Grant::ClientCredentials, Some(scopes)) if !config.values.contains_key("scopes") => {
                scopes
            }
            (Grant::ClientCredentials | Grant::AuthorizationCode, _) => config.text("scopes"),
        };
        Ok(Self {
            authorization_url: address("authorization_url", &provider.authorization_url)?,
            token_url: address("token_url", &provider.token_url)?
                .ok_or("config.token_url is required")?,
            id: config.text("client_id").to_owned(),
            secret: (!secret.is_empty()).then(|| Secret::new(secret.to_owned())),
            scopes: scopes.to_owned(),
            authentication: match config.text("client_authentication") {
                "basic" => ClientAuthentication::Basic,
                "body" => ClientAuthentication::Body,
                _ => provider.client_authentication,
            },
            grant,
            authorization_params,
            token_params: config.pairs("token_params").collect(),
        })
    }

    /// Returns the address to which its secret and its refresh tokens go.
    pub fn token_url(&self) -> &Url {
        &self.token_url
    }

    /// On whose behalf it acts.
    pub fn grant(&self) -> Grant {
        self.grant
    }

    /// Returns the texts that only the provider may see: the client's secret, as it is and as
    /// `Authorization` has it.
    pub fn secrets(&self) -> Vec<String> {
        let secret = self.secret.iter().map(|secret| secret.expose().clone());
        secret
            .clone()
            .chain(secret.map(|secret| pair(&self.id, &secret)))
            .collect()
    }

    /// Returns the address at which a person gives consent; `challenge` is the SHA-256 of the
    /// verifier in base64url.
    pub fn authorization(
        &self,
        redirect_uri: &str,
        state: &str,
        challenge: &str,
    ) -> Result<Url, String> {
        let mut url = self
            .authorization_url
            .clone()
            .ok_or("the config has no authorization_url")?;
        let mut query = url.query_pairs_mut();
        // What the standard says comes last and cannot be replaced by the config.
        let fixed = [
            "response_type",
            "client_id",
            "redirect_uri",
            "state",
            "code_challenge",
            "code_challenge_method",
        ];
        query.extend_pairs(
            self.authorization_params
                .iter()
                .filter(|(name, _)| !fixed.contains(&name.as_str())),
        );
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &self.id);
        query.append_pair("redirect_uri", redirect_uri);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes);
        }
        query.append_pair("state", state);
        query.append_pair("code_challenge", challenge);
        query.append_pair("code_challenge_method", "S256");
        drop(query);
        Ok(url)
    }

    /// The tokens for a person's consent.
    pub fn exchange(&self, consent: Consent) -> TokenRequest {
        self.request(&[
            ("grant_type", "authorization_code"),
            ("code", consent.code),
            ("redirect_uri", consent.redirect_uri),
            ("code_verifier", consent.verifier),
        ])
    }

    /// New tokens for a refresh token.
    pub fn refresh(&self, refresh_token: &str) -> TokenRequest {
        self.request(&[
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
        ])
    }

    /// The tokens of the client itself.
    pub fn own(&self) -> TokenRequest {
        let mut fields = vec![("grant_type", "client_credentials")];
        if !self.scopes.is_empty() {
            fields.push(("scope", &self.scopes));
        }
        self.request(&fields)
    }

    fn request(&self, fields: &[(&str, &str)]) -> TokenRequest {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(fields);
        let taken = |name: &str| fields.iter().any(|(known, _)| *known == name);
        form.extend_pairs(self.token_params.iter().filter(|(name, _)| !taken(name)));
        let authorization = match (self.authentication, &self.secret) {
            (ClientAuthentication::Basic, Some(secret)) => Some(basic(&self.id, secret.expose())),
            (ClientAuthentication::Body, Some(secret)) => {
                form.append_pair("client_id", &self.id)
                    .append_pair("client_secret", secret.expose());
                None
            }
            (ClientAuthentication::Body | ClientAuthentication::Basic, None) => {
                form.append_pair("client_id", &self.id);
                None
            }
        };
        let mut secrets = self.secrets();
        let params = self
            .token_params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let sent = fields.iter().copied().chain(params);
        secrets.extend(
            sent.filter(|(name, _)| is_secret_param(name))
                .map(|(_, value)| value.to_owned()),
        );
        TokenRequest {
            url: self.token_url.clone(),
            authorization,
            body: form.finish(),
            secrets,
        }
    }
}

/// Returns whether a field of a request for tokens is a secret.
fn is_secret_param(name: &str) -> bool {
    matches!(name, "code" | "code_verifier") || is_secret_header(name)
}

/// Returns the header of RFC 6749, section 2.3.1: both parts are encoded as in a form, which leaves
/// `-`, `.`, `_` and `*`.
fn basic(id: &str, secret: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(&format!("Basic {}", pair(id, secret)))
        .unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

fn pair(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)))
}

#[cfg(test)]
mod tests;
