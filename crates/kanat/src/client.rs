//! The client of our own API: JSON over `/api/v1`, as any caller would speak it.

pub mod credentials;
pub mod events;
pub mod flag;
pub mod name;
pub mod oidc;
mod refusal;
mod renewal;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kanat_model::Secret;
use reqwest::Method;
use serde::Serialize;

use crate::cli::Connection;
use crate::exit::{DryRun, failure, usage};
use crate::output::Json;
pub use refusal::Refusal;
use refusal::{Advice, advice, advice_of_call, advice_to_person};
use renewal::Renewal;

pub const DEFAULT_URL: &str = "http://127.0.0.1:8080";
/// Deploys wait for the nodes, at most 5 s; bulk requests and imports may take longer.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// For bodies of any length.
pub const LONG_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Number of items that a page has at most.
pub const MAX_PAGE: usize = 500;

/// A cheap handle to one service, as one caller.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    credential: Option<Credential>,
    environment: Option<String>,
    /// True if requests that could change something are refused.
    is_dry_run: bool,
}

/// Credential of requests.
#[derive(Clone)]
enum Credential {
    Key(Secret<String>),
    /// A token of a person.
    Token(Secret<String>),
    /// The saved tokens of a person.
    Login(Arc<Renewal>),
}

/// A fault in a file that is read while it is sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// A failure to reach the address of a published API.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(String);

/// Header of every answer of a service.
const REQUEST_ID: &str = "x-request-id";

/// An answer that no service gives.
#[derive(Debug, thiserror::Error)]
#[error("the answer does not come from a Kanat service; is --url right?")]
pub struct Stranger;

/// Statuses that any other server has for the paths of the API. Those of proxies before a service
/// are not among them.
const STATUSES_OF_STRANGERS: [u16; 2] = [404, 405];

/// Returns a list's answer, unless it holds no list.
fn listed(answer: Json) -> Result<Json> {
    match answer.at("data") {
        Some(Json::List(_)) => Ok(answer),
        Some(_) | None => Err(Stranger.into()),
    }
}

/// Returns the parameter of the page after this one, where `reached` items of the list are known;
/// none after the last page.
fn next_page(page: &Json, reached: usize) -> Option<(&'static str, String)> {
    if page.has("pagination.nextCursor") {
        return Some(("cursor", page.text("pagination.nextCursor")));
    }
    let total = page.text("pagination.total").parse::<usize>();
    let has_more = !page.list("data").is_empty() && total.is_ok_and(|total| total > reached);
    has_more.then(|| ("offset", reached.to_string()))
}

fn check_address(url: &str) -> Result<()> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(());
    }
    Err(usage(format!(
        "{url:?}, given by --url or KANAT_URL, does not begin with http:// or https://"
    )))
}

/// Errors when the address is not the one of `kanat login`: its credential is for nobody else.
fn refuse_elsewhere(url: &str, saved: &str, credential: &str) -> Result<()> {
    if url.trim_end_matches('/') == saved.trim_end_matches('/') {
        return Ok(());
    }
    Err(usage(format!(
        "the {credential} of `kanat login` is for {saved}, and goes nowhere else: give --api-key \
         for {url}, or log in there"
    )))
}

impl Client {
    /// Takes what `connection` names, and the rest from `kanat login`.
    pub fn new(connection: Connection) -> Result<Self> {
        let is_dry_run = connection.is_dry_run;
        let client = Self::of(connection)?;
        Ok(Self {
            is_dry_run,
            ..client
        })
    }

    fn of(connection: Connection) -> Result<Self> {
        let saved = credentials::load()?;
        let url = connection
            .url
            .as_deref()
            .or(saved.url.as_deref())
            .unwrap_or(DEFAULT_URL);
        check_address(url)?;
        if let Some(key) = connection.api_key {
            return Self::to(url, Some(key), connection.env);
        }
        let saved_url = saved.url.as_deref().unwrap_or(DEFAULT_URL);
        let credential = if let Some(key) = saved.api_key {
            refuse_elsewhere(url, saved_url, "key")?;
            Credential::Key(Secret::new(key))
        } else if let Some(login) = saved.login {
            refuse_elsewhere(url, saved_url, "login")?;
            Credential::Login(Arc::new(Renewal::new(saved_url.to_owned(), login)))
        } else {
            return Self::to(url, None, connection.env);
        };
        let environment = connection.env.or(saved.environment);
        Self::with_credential(url, Some(credential), environment)
    }

    /// A client of the service at `url`, with an API key.
    pub fn to(url: &str, key: Option<Secret<String>>, environment: Option<String>) -> Result<Self> {
        Self::with_credential(url, key.map(Credential::Key), environment)
    }

    /// Returns a client that authenticates by a person's token.
    pub fn with_token(&self, token: &str) -> Self {
        let token = Secret::new(token.to_owned());
        Self {
            credential: Some(Credential::Token(token)),
            ..self.clone()
        }
    }

    /// Returns a client that renews no token. A renewal that is broken off loses the refresh token.
    pub async fn without_renewal(self) -> Self {
        match &self.credential {
            Some(Credential::Login(login)) => {
                let token = login.current().await;
                self.with_token(token.expose())
            }
            Some(Credential::Key(_) | Credential::Token(_)) | None => self,
        }
    }

    fn with_credential(
        url: &str,
        credential: Option<Credential>,
        environment: Option<String>,
    ) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        check_address(&url)?;
        Ok(Self {
            http: http()?,
            url,
            credential,
            environment,
            is_dry_run: false,
        })
    }

    /// Returns a client of another environment.
    pub fn in_environment(&self, id: String) -> Self {
        Self {
            environment: Some(id),
            ..self.clone()
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether requests carry an API key or a token.
    pub fn has_credential(&self) -> bool {
        self.credential.is_some()
    }

    /// Returns whether requests are those of a person, not of an API key.
    pub fn is_of_person(&self) -> bool {
        matches!(
            self.credential,
            Some(Credential::Token(_) | Credential::Login(_))
        )
    }

    /// Returns an answer that needs no credential.
    pub async fn get_public(&self, path: &str) -> Result<Json> {
        let request = self.raw(Method::GET, &format!("{}/api/v1{path}", self.url));
        let response = self.ask(request.timeout(TIMEOUT), advice).await?;
        json(&response.text().await.context("the answer broke off")?)
    }

    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Json> {
        self.json(self.request(Method::GET, path).query(query))
            .await
    }

    /// Returns a part of the list at `path` as one page, also where its `limit` is more than the
    /// service gives at once.
    pub async fn page(&self, path: &str, query: &[(&'static str, String)]) -> Result<Json> {
        let mut page = listed(self.get(path, query).await?)?;
        let number = |name: &str| {
            let given = query.iter().find(|(parameter, _)| *parameter == name);
            given.and_then(|(_, text)| text.parse::<usize>().ok())
        };
        let limit = number("limit").unwrap_or_default();
        if limit <= MAX_PAGE {
            return Ok(page);
        }
        let offset = number("offset").unwrap_or_default();
        let mut items = page.list("data").to_vec();
        while items.len() < limit
            && let Some(next) = next_page(&page, offset + items.len())
        {
            let mut query = query.to_vec();
            query.retain(|(name, _)| !["limit", "offset", "cursor"].contains(name));
            query.extend([("limit", (limit - items.len()).to_string()), next]);
            page = listed(self.get(path, &query).await?)?;
            items.extend_from_slice(page.list("data"));
        }
        let place = [("limit", limit), ("offset", offset)];
        let place = place.map(|(name, number)| (name, Some(Json::Bare(number.to_string()))));
        let pagination = page.at("pagination").cloned();
        let pagination = pagination.map(|pagination| pagination.with(place));
        Ok(page.with([
            ("data", Some(Json::List(items))),
            ("pagination", pagination),
        ]))
    }

    /// Returns every item of the list at `path`, page after page.
    pub async fn all(&self, path: &str, query: &[(&str, String)]) -> Result<Vec<Json>> {
        let mut items = Vec::new();
        loop {
            let page = [
                ("limit", MAX_PAGE.to_string()),
                ("offset", items.len().to_string()),
            ];
            let answer = listed(self.get(path, &[query, &page[..]].concat()).await?)?;
            let found = answer.list("data");
            items.extend_from_slice(found);
            if found.len() < MAX_PAGE {
                return Ok(items);
            }
        }
    }

    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<Json> {
        self.json(self.request(Method::POST, path).json(body)).await
    }

    /// Posts what the service checks and does not keep. A dry run may send it, too.
    pub async fn check(&self, path: &str, body: &impl Serialize) -> Result<Json> {
        let request = self.request(Method::POST, path).json(body);
        let response = self.send_with_credential(request.timeout(TIMEOUT)).await?;
        json(&response.text().await.context("the answer broke off")?)
    }

    /// Posts what the service does once for each `key`, however often it is asked.
    pub async fn post_with_key(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Result<Json> {
        let request = self.request(Method::POST, path).json(body);
        self.json(request.header("idempotency-key", key)).await
    }

    pub async fn patch(&self, path: &str, body: &impl Serialize) -> Result<Json> {
        self.json(self.request(Method::PATCH, path).json(body))
            .await
    }

    /// Changes what still has the `etag` that a read gave.
    pub async fn patch_if(&self, path: &str, etag: &str, body: &impl Serialize) -> Result<Json> {
        let request = self.request(Method::PATCH, path).json(body);
        self.json(request.header("if-match", format!("\"{etag}\"")))
            .await
    }

    pub async fn put(&self, path: &str, body: &impl Serialize) -> Result<Json> {
        self.json(self.request(Method::PUT, path).json(body)).await
    }

    /// Sends a file as the part `file` of a form.
    pub async fn upload(&self, path: &str, file_name: String, content: Vec<u8>) -> Result<Json> {
        let part = reqwest::multipart::Part::bytes(content).file_name(file_name);
        let form = reqwest::multipart::Form::new().part("file", part);
        self.json(self.request(Method::POST, path).multipart(form))
            .await
    }

    pub async fn delete(&self, path: &str) -> Result<()> {
        let request = self.request(Method::DELETE, path);
        self.text(request, TIMEOUT).await.map(drop)
    }

    async fn json(&self, request: reqwest::RequestBuilder) -> Result<Json> {
        json(&self.text(request, TIMEOUT).await?)
    }

    /// Posts what takes long to be sent or done.
    pub async fn post_long(&self, path: &str, body: impl Into<reqwest::Body>) -> Result<Json> {
        let request = self.request(Method::POST, path).body(body);
        let request = request.header("content-type", "application/json");
        json(&self.text(request, LONG_TIMEOUT).await?)
    }

    /// Returns an answer that may be no JSON, such as CSV.
    pub async fn text(
        &self,
        request: reqwest::RequestBuilder,
        timeout: Duration,
    ) -> Result<String> {
        let response = self.send(request.timeout(timeout)).await?;
        response.text().await.context("the answer broke off")
    }

    /// Starts a request to a path under `/api/v1`, in the environment of the client.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.raw(method, &format!("{}/api/v1{path}", self.url));
        if let Some(environment) = &self.environment {
            request = request.header("x-environment", environment);
        }
        request
    }

    /// Starts a request to any address, without an environment.
    pub fn raw(&self, method: Method, url: &str) -> reqwest::RequestBuilder {
        self.http.request(method, url)
    }

    /// Sends `request` with the credential, and gives the answer when it is a good one.
    ///
    /// # Errors
    ///
    /// [`DryRun`] where this is a dry run and the request could change something. A command that
    /// ends without an announcement of its own changes nothing either.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response> {
        if !self.is_dry_run {
            return self.send_with_credential(request).await;
        }
        let (http, request) = request.build_split();
        let request = request.context("cannot make the request")?;
        if request.method() != Method::GET {
            return Err(DryRun.into());
        }
        let request = reqwest::RequestBuilder::from_parts(http, request);
        self.send_with_credential(request).await
    }

    async fn send_with_credential(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response> {
        let prefix = kanat_auth::key::PREFIX;
        match &self.credential {
            Some(Credential::Key(key)) if key.expose().starts_with(prefix) => {
                self.ask(request.bearer_auth(key.expose()), advice).await
            }
            Some(Credential::Key(key)) if key.expose().is_empty() => Err(failure(
                "the API key that --api-key or KANAT_API_KEY gives is empty",
            )),
            Some(Credential::Key(_)) => Err(failure(format!(
                "an API key begins with {prefix}, and the one that is given does not: `kanat \
                 login`, --api-key or KANAT_API_KEY"
            ))),
            Some(Credential::Token(token)) => {
                self.ask(request.bearer_auth(token.expose()), advice_to_person)
                    .await
            }
            Some(Credential::Login(login)) => {
                let token = login.token().await?;
                self.ask(request.bearer_auth(token.expose()), advice_to_person)
                    .await
            }
            None => Err(failure(
                "no API key is given: log in with `kanat login`, or give --api-key or \
                 KANAT_API_KEY",
            )),
        }
    }

    /// Sends a request to a published API, where another key counts.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] where nothing answers at another address than that of the service.
    pub async fn call(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<(reqwest::StatusCode, String)> {
        let sent = request.send().await;
        let response = sent.map_err(|error| match error.url() {
            Some(url) if !url.as_str().starts_with(&self.url) && !error.is_timeout() => {
                let cause = root_cause(&error);
                let origin = url.origin().ascii_serialization();
                Unreachable(format!("cannot reach {origin}: {cause}")).into()
            }
            Some(_) | None => self.unreachable(&error),
        })?;
        let status = response.status();
        let body = response.text().await?;
        let is_refusal = |answer: Json| answer.has("code") && answer.has("requestId");
        if !status.is_success() && Json::parse(&body).is_ok_and(is_refusal) {
            return Err(Refusal::read(status.as_u16(), &body, advice_of_call).into());
        }
        Ok((status, body))
    }

    /// Sends a request to the service itself.
    async fn ask(
        &self,
        request: reqwest::RequestBuilder,
        advice: Advice,
    ) -> Result<reqwest::Response> {
        let sent = request.send().await;
        let response = sent.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let is_possible = status.is_success() || STATUSES_OF_STRANGERS.contains(&status.as_u16());
        if is_possible && !response.headers().contains_key(REQUEST_ID) {
            return Err(Stranger.into());
        }
        good(response, advice).await
    }

    fn unreachable(&self, error: &reqwest::Error) -> anyhow::Error {
        if error.is_timeout() {
            return anyhow::anyhow!("{} did not answer in time", self.url);
        }
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
            if let Some(input) = cause.downcast_ref::<BadInput>() {
                return usage(input.to_string());
            }
        }
        if self.url.starts_with("https:") && is_plain_answer(cause) {
            return anyhow::anyhow!("{} does not speak TLS: try http://", self.url);
        }
        anyhow::anyhow!(
            "cannot reach {}: {cause}\nstart the service with `kanat up`, or name another with \
             --url",
            self.url
        )
    }
}

/// Returns an answer that is no refusal.
async fn good(response: reqwest::Response, advice: Advice) -> Result<reqwest::Response> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let body = response.text().await.unwrap_or_default();
    Err(Refusal::read(status, &body, advice).into())
}

fn root_cause<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> &'e (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

/// Returns whether the cause of a failure is an answer that is no TLS record.
fn is_plain_answer(cause: &(dyn std::error::Error + 'static)) -> bool {
    let inner = cause
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref)
        .and_then(|inner| inner.downcast_ref());
    matches!(
        inner.or(cause.downcast_ref()),
        Some(rustls::Error::InvalidMessage(_))
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "speaks to our own service, at an address that the caller chose"
)]
fn http() -> Result<reqwest::Client> {
    let agent = concat!("kanat/", env!("CARGO_PKG_VERSION"));
    let builder = reqwest::Client::builder()
        .user_agent(agent)
        .connect_timeout(Duration::from_secs(10));
    builder.build().context("cannot set up HTTP")
}

/// An empty answer (204) is null.
fn json(text: &str) -> Result<Json> {
    if text.is_empty() {
        return Ok(Json::Bare("null".to_owned()));
    }
    Json::parse(text).context("the answer is not JSON; is --url the address of a kanat service?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_none_is_no_answer_of_a_service() {
        let answer = |text: &str| listed(Json::parse(text).unwrap());
        assert!(answer(r#"{"data":[]}"#).is_ok());
        for other in ["null", "[]", "{}", r#"{"data":{}}"#] {
            assert!(answer(other).unwrap_err().is::<Stranger>(), "{other}");
        }
    }

    #[test]
    fn a_list_goes_on_after_its_page_by_cursor_or_offset() {
        let next = |data: &str, pagination: &str| {
            let page = format!(r#"{{"data":{data},"pagination":{pagination}}}"#);
            next_page(&Json::parse(&page).unwrap(), 500)
        };
        let offset = ("offset", "500".to_owned());
        assert_eq!(next("[1]", r#"{"total":501}"#), Some(offset));
        assert_eq!(next("[1]", r#"{"total":500}"#), None);
        assert_eq!(next("[]", r#"{"total":501}"#), None);
        let cursor = ("cursor", "c".to_owned());
        assert_eq!(
            next("[]", r#"{"total":501,"nextCursor":"c"}"#),
            Some(cursor)
        );
    }
}
