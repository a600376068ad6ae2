//! An instance of an entry, ready to build requests: its URL, its fixed headers, its credentials.

mod token;

use std::fmt;

use base64::Engine;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use kanat_model::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

use crate::action::Action;
use crate::auth::Auth;
use crate::base_url;
use crate::credential::is_secret_header;
use crate::entry::{ACCESS_TOKEN, Entry};
use crate::oauth2::Grant;
use crate::values::Values;
pub use token::AccessToken;

/// A configured connector. Its `Debug` shows no config.
#[derive(Clone)]
pub struct Instance {
    id: String,
    name: String,
    entry: &'static Entry,
    config_json: Box<[u8]>,
    base_url: Url,
    headers: HeaderMap,
    /// Headers of the entry, for requests that lack them.
    default_headers: HeaderMap,
    credentials: Credentials,
    /// Access token of an instance with OAuth2 that is connected.
    token: Option<AccessToken>,
    /// The OAuth2 client asks for tokens without a person's consent.
    acts_alone: bool,
    /// Why the provider gives that client no token.
    refusal: Option<String>,
    secrets: Vec<String>,
    limits: Limits,
}

/// Limits of an instance for all flows together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The steady rate; none when neither config nor provider has one.
    pub requests_per_second: Option<f64>,
    /// Calls at the same time.
    pub concurrency: Option<u32>,
    /// Failures in a row after which calls pause; 0 for never.
    pub breaker_failures: Option<u32>,
    /// For how long they pause.
    pub breaker_seconds: Option<f64>,
}

/// Credentials that go into every request.
#[derive(Clone)]
enum Credentials {
    None,
    /// There is no access token: nobody has connected the instance yet.
    Missing,
    Header(HeaderName, HeaderValue),
    Query {
        name: String,
        value: String,
    },
}

impl Instance {
    /// Builds an instance from its stored config. Errors name what is wrong, without any of the
    /// config's values.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        catalog_id: &str,
        config_json: &str,
    ) -> Result<Self, String> {
        let entry = crate::entry(catalog_id)
            .ok_or_else(|| format!("the catalog has no entry {catalog_id:?}"))?;
        let config: Map<String, Value> = serde_json::from_str(config_json)
            .map_err(|_| "the config is not a JSON object".to_owned())?;
        entry.check(&config).map_err(|errors| {
            let faults: Vec<_> = errors
                .iter()
                .map(|error| format!("{} {}", error.field, error.message))
                .collect();
            faults.join("; ")
        })?;
        let client = entry.oauth2(&config).and_then(Result::ok);
        let acts_alone = client.is_some_and(|client| client.grant() == Grant::ClientCredentials);
        let config = Values {
            entry,
            values: &config,
        };
        let base_url = config.base_url()?;
        let (credentials, derived) = config.credentials()?;
        Ok(Self {
            id: id.into(),
            name: name.into(),
            entry,
            config_json: config_json.as_bytes().into(),
            base_url,
            headers: config.headers()?,
            default_headers: config.default_headers()?,
            credentials,
            token: None,
            acts_alone,
            refusal: None,
            secrets: config.secrets(derived),
            limits: config.limits(),
        })
    }

    /// The instance with the access token that its OAuth2 client holds, which is its credential
    /// from then on and stands in its config as `access_token`.
    pub fn with_access_token(mut self, token: AccessToken) -> Result<Self, String> {
        let mut config = self.config();
        config.insert(ACCESS_TOKEN.to_owned(), token.text.as_str().into());
        self.config_json = Value::Object(config).to_string().into_bytes().into();
        self.credentials = in_header(header::AUTHORIZATION, format!("Bearer {}", token.text))?.0;
        self.secrets.push(token.text.clone());
        in_order_of_masking(&mut self.secrets);
        self.token = Some(token);
        Ok(self)
    }

    /// The instance with the reason, in words without secrets, for which its provider gives its
    /// OAuth2 client no token.
    pub fn with_refusal(self, reason: impl Into<String>) -> Self {
        Self {
            refusal: Some(reason.into()),
            ..self
        }
    }

    /// The instance's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name by which flows know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The catalog entry that it is an instance of.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The config as a JSON object, secrets in the clear: what `instance` means in expressions.
    pub fn config_json(&self) -> &[u8] {
        &self.config_json
    }

    /// Returns whether the config holds a value of this name that is not empty. Reads the config
    /// anew: not for messages.
    pub fn holds(&self, field: &str) -> bool {
        match self.config().get(field) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => true,
        }
    }

    /// Returns the text of this name in the config. Reads the config anew: not for messages.
    pub fn text(&self, field: &str) -> Option<String> {
        self.config().get(field)?.as_str().map(str::to_owned)
    }

    fn config(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.config_json).unwrap_or_default()
    }

    /// Returns the base URL of every request.
    pub fn base_url(&self) -> &str {
        self.base_url.as_str()
    }

    /// The path of that.
    pub fn base_path(&self) -> &str {
        self.base_url.path()
    }

    /// Returns the limits for all flows together: the config's, else its provider's.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The access token that it holds, where it is connected by OAuth2.
    pub fn access_token(&self) -> Option<&AccessToken> {
        self.token.as_ref()
    }

    /// Errors when there are no credentials to make a call with: nobody has connected it, its
    /// provider has not answered, or its access token has ended and there is no other yet.
    pub fn check_connected(&self, now: Timestamp) -> Result<(), String> {
        let name = &self.name;
        match (&self.credentials, &self.token) {
            (Credentials::Missing, _) => {
                let why = match &self.refusal {
                    Some(reason) if self.acts_alone => {
                        format!("its provider gives it none: {reason}")
                    }
                    None if self.acts_alone => "its provider has given it none yet".to_owned(),
                    Some(_) | None => "connect it by OAuth2 first".to_owned(),
                };
                Err(format!("the connector {name:?} has no access token: {why}"))
            }
            (_, Some(token)) if token.has_ended(now) => Err(format!(
                "the access token of the connector {name:?} has ended, and no new one has come"
            )),
            (Credentials::None | Credentials::Header(..) | Credentials::Query { .. }, _) => Ok(()),
        }
    }

    /// The URL of a rendered endpoint, a path and maybe a query, under the base URL. Errors when it
    /// would leave it, and when there are no credentials to call it with.
    pub fn request_url(&self, endpoint: &str, now: Timestamp) -> Result<Url, String> {
        self.check_connected(now)?;
        base_url::join(&self.base_url, endpoint)
    }

    /// Returns the action whose rule says whether an answer of success is a refusal, for a call of
    /// this URL that no step makes. `None` when the entry has no such rule, or the call is none of
    /// its actions.
    pub fn action_with_rule(&self, method: &str, url: &Url) -> Option<&'static Action> {
        if !self.entry.refuses_in_answers() {
            return None;
        }
        let path = url
            .path()
            .strip_prefix(self.base_path().trim_end_matches('/'))?;
        self.entry.action_of(method, path)
    }

    /// Puts the instance's fixed headers and its credentials into a request. They replace headers
    /// of the same name; those of its entry do not.
    pub fn apply_auth(&self, url: &mut Url, headers: &mut HeaderMap) {
        for (name, value) in &self.default_headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        match &self.credentials {
            Credentials::None | Credentials::Missing => {}
            Credentials::Header(name, value) => {
                headers.insert(name, value.clone());
            }
            Credentials::Query { name, value } => {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
    }

    /// Returns whether [`Self::apply_auth`] replaces a header of this name.
    pub fn replaces_header(&self, name: &str) -> bool {
        let is_credential = match &self.credentials {
            Credentials::Header(header, _) => header.as_str().eq_ignore_ascii_case(name),
            Credentials::None | Credentials::Missing | Credentials::Query { .. } => false,
        };
        is_credential || self.headers.contains_key(name)
    }

    /// Texts that must not show in a trace: the secrets of four bytes and more, and the forms in
    /// which they are sent. Longest first, so that masking one does not leave the rest of another.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Values<'_> {
    fn default_headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, template) in &self.entry.headers {
            let text = self.fill(template);
            let wrong = || format!("the config does not fit the header {name}");
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            if !text.is_empty() {
                headers.insert(key, HeaderValue::from_str(&text).map_err(|_| wrong())?);
            }
        }
        Ok(headers)
    }

    fn limits(&self) -> Limits {
        // Another address than the provider's, such as a sandbox, has bounds of its own.
        let provider = self
            .entry
            .rate_limit
            .filter(|_| self.text("base_url").is_empty());
        let rate = self
            .values
            .get("requests_per_second")
            .and_then(Value::as_f64);
        let whole = |name: &str| {
            self.values
                .get(name)
                .and_then(Value::as_u64)
                .and_then(|number| number.try_into().ok())
        };
        let concurrency: Option<u32> = whole("concurrency");
        Limits {
            requests_per_second: rate.or_else(|| provider.map(|limit| limit.requests_per_second())),
            concurrency: concurrency.or_else(|| provider?.concurrency),
            breaker_failures: whole("breaker_failures"),
            breaker_seconds: self.values.get("breaker_seconds").and_then(Value::as_f64),
        }
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.texts("headers") {
            let wrong = || format!("config.headers.{name} is not a header");
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut text = HeaderValue::from_str(value).map_err(|_| wrong())?;
            text.set_sensitive(is_secret_header(name));
            headers.insert(key, text);
        }
        Ok(headers)
    }

    /// The credentials, and the text in which they are sent.
    fn credentials(&self) -> Result<(Credentials, Option<String>), String> {
        match &self.entry.auth {
            Auth::Basic { username, password } => basic(&self.fill(username), &self.fill(password)),
            Auth::Bearer { token } => in_header(
                header::AUTHORIZATION,
                format!("Bearer {}", self.fill(token)),
            ),
            Auth::Header { name, value } => {
                let name = HeaderName::from_bytes(name.as_bytes())
                    .map_err(|_| format!("the entry's header {name:?} is none of HTTP"))?;
                in_header(name, self.fill(value))
            }
            Auth::OAuth2(_) => Ok((Credentials::Missing, None)),
            Auth::Configurable => self.chosen_credentials(),
        }
    }

    fn chosen_credentials(&self) -> Result<(Credentials, Option<String>), String> {
        match self.text("auth") {
            "api_key" if self.text("api_key_in") == "query" => {
                let name = self.text("api_key_name").to_owned();
                let value = self.text("api_key").to_owned();
                let sent = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
                Ok((Credentials::Query { name, value }, Some(sent)))
            }
            "api_key" => {
                let name = HeaderName::from_bytes(self.text("api_key_name").as_bytes())
                    .map_err(|_| "config.api_key_name must be the name of a header".to_owned())?;
                in_header(name, self.text("api_key").to_owned())
            }
            "basic" => basic(self.text("username"), self.text("password")),
            "bearer" => in_header(
                header::AUTHORIZATION,
                format!("Bearer {}", self.text("token")),
            ),
            _ => Ok((Credentials::None, None)),
        }
    }

    fn secrets(&self, derived: Option<String>) -> Vec<String> {
        let fields = self
            .entry
            .fields
            .iter()
            .filter(|field| field.secret)
            .map(|field| self.text(&field.name));
        let headers = self
            .texts("headers")
            .filter(|(name, _)| is_secret_header(name))
            .map(|(_, value)| value);
        let mut secrets: Vec<String> = fields
            .chain(headers)
            .map(str::to_owned)
            .chain(derived)
            .collect();
        in_order_of_masking(&mut secrets);
        secrets
    }
}

pub use kanat_model::mask::SHORTEST_MASKED;

/// Longest first, each once.
fn in_order_of_masking(secrets: &mut Vec<String>) {
    secrets.retain(|secret| secret.len() >= SHORTEST_MASKED);
    secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    secrets.dedup();
}

fn basic(username: &str, password: &str) -> Result<(Credentials, Option<String>), String> {
    let encoded =
        base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    let (credentials, _) = in_header(header::AUTHORIZATION, format!("Basic {encoded}"))?;
    Ok((credentials, Some(encoded)))
}

fn in_header(name: HeaderName, text: String) -> Result<(Credentials, Option<String>), String> {
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| format!("the credentials do not fit a {name} header"))?;
    value.set_sensitive(true);
    Ok((Credentials::Header(name, value), None))
}

#[cfg(test)]
mod tests;
