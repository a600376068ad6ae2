//! The client of our own API: JSON over `/api/v1`, as any caller would speak it.

pub mod credentials;
pub mod events;
pub mod flag;
pub mod name;

use std::time::Duration;

use anyhow::{Context, Result};
use kanat_model::Secret;
use reqwest::Method;
use serde::Serialize;

use crate::cli::Connection;
use crate::exit::{failure, usage};
use crate::output::Json;

const DEFAULT_URL: &str = "http://127.0.0.1:8080";
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
    key: Option<Secret<String>>,
    environment: Option<String>,
}

/// The service's refusal.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub status: u16,
    /// The canonical code, such as `NOT_FOUND`.
    pub code: String,
    /// Field and message of each thing that is wrong.
    pub details: Vec<(String, String)>,
    text: String,
}

impl Refusal {
    /// Returns whether an error is a refusal with this status.
    pub fn has_status(error: &anyhow::Error, status: u16) -> bool {
        let refusal = error.downcast_ref::<Self>();
        refusal.is_some_and(|refusal| refusal.status == status)
    }
}

/// A fault in a file that is read while it is sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

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

/// Errors when the address is not the one of `kanat login`: its key is for nobody else.
fn refuse_elsewhere(url: &str, saved: &str) -> Result<()> {
    if url.trim_end_matches('/') == saved.trim_end_matches('/') {
        return Ok(());
    }
    Err(usage(format!(
        "the key of `kanat login` is for {saved}, and goes nowhere else: give --api-key for \
         {url}, or log in there"
    )))
}

impl Client {
    /// Takes what `connection` names, and the rest from `kanat login`.
    pub fn new(connection: Connection) -> Result<Self> {
        let saved = credentials::load()?;
        let url = connection
            .url
            .as_deref()
            .or(saved.url.as_deref())
            .unwrap_or(DEFAULT_URL);
        check_address(url)?;
        let (key, environment) = match (connection.api_key, saved.api_key) {
            (Some(key), _) => (Some(key), None),
            (None, Some(key)) => {
                refuse_elsewhere(url, saved.url.as_deref().unwrap_or(DEFAULT_URL))?;
                (Some(Secret::new(key)), saved.environment)
            }
            (None, None) => (None, None),
        };
        Self::to(url, key, connection.env.or(environment))
    }

    /// A client of the service at `url`.
    pub fn to(url: &str, key: Option<Secret<String>>, environment: Option<String>) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        check_address(&url)?;
        Ok(Self {
            http: http()?,
            url,
            key,
            environment,
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

    /// Returns whether requests carry an API key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Json> {
        self.json(self.request(Method::GET, path).query(query))
            .await
    }

    /// Returns a part of the list at `path` as one page, also where its `limit` is more than the
    /// service gives at once.
    pub async fn page(&self, path: &str, query: &[(&'static str, String)]) -> Result<Json> {
        let mut page = self.get(path, query).await?;
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
            page = self.get(path, &query).await?;
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
            let answer = self.get(path, &[query, &page[..]].concat()).await?;
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

    pub async fn patch(&self, path: &str, body: &impl Serialize) -> Result<Json> {
        self.json(self.request(Method::PATCH, path).json(body))
            .await
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

    /// Starts a request to a path under `/api/v1`, with key and environment.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.raw(method, &format!("{}/api/v1{path}", self.url));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        if let Some(environment) = &self.environment {
            request = request.header("x-environment", environment);
        }
        request
    }

    /// Starts a request to any address, without key or environment.
    pub fn raw(&self, method: Method, url: &str) -> reqwest::RequestBuilder {
        self.http.request(method, url)
    }

    /// Sends `request` and gives the answer when it is a good one.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response> {
        let prefix = kanat_auth::key::PREFIX;
        match &self.key {
            Some(key) if key.expose().starts_with(prefix) => self.send_with(request, advice).await,
            Some(key) if key.expose().is_empty() => Err(failure(
                "the API key that --api-key or KANAT_API_KEY gives is empty",
            )),
            Some(_) => Err(failure(format!(
                "an API key begins with {prefix}, and the one that is given does not: `kanat \
                 login`, --api-key or KANAT_API_KEY"
            ))),
            None => Err(failure(
                "no API key is given: log in with `kanat login`, or give --api-key or \
                 KANAT_API_KEY",
            )),
        }
    }

    /// Sends a request to a published API, where another key counts.
    pub async fn call(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response> {
        self.send_with(request, advice_of_call).await
    }

    async fn send_with(
        &self,
        request: reqwest::RequestBuilder,
        advice: Advice,
    ) -> Result<reqwest::Response> {
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body = response.text().await.unwrap_or_default();
        Err(refusal(status, &body, advice).into())
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

/// Advice about a status, where it does not depend on the request.
type Advice = fn(u16, &str) -> Option<&'static str>;

fn refusal(status: u16, body: &str, advice: Advice) -> Refusal {
    let answer = Json::parse(body).unwrap_or(Json::Bare("null".to_owned()));
    let mut text = answer.text("error");
    if text.is_empty() {
        text = format!("the service answered {status}");
    }
    let told = text.clone();
    let details = answer.list("details").iter();
    let details: Vec<(String, String)> = details
        .map(|detail| (detail.text("field"), detail.text("message")))
        .collect();
    for (field, message) in &details {
        let line = match field.as_str() {
            "" => message.clone(),
            field => format!("{field}: {message}"),
        };
        // What is wrong in one place alone is the whole error.
        if told == *message {
            text = line;
        } else if !told.contains(&line) {
            text += &format!("\n  {line}");
        }
    }
    let fields = details.iter().map(|(field, _)| field.as_str());
    let id = |name: &str, path: &str| {
        let id = answer.has(path).then(|| answer.text(path))?;
        Some(format!("{name} id: {id}"))
    };
    let notes = [
        advice(status, &text).map(str::to_owned),
        flag::hint(&text, fields),
        id("message", "messageId"),
        id("request", "requestId").filter(|_| status >= 500),
    ];
    for note in notes.into_iter().flatten() {
        text += &format!("\n{note}");
    }
    Refusal {
        status,
        code: answer.text("code"),
        details,
        text,
    }
}

/// Returns the advice about an answer of the management API.
fn advice(status: u16, told: &str) -> Option<&'static str> {
    match status {
        // The role is not the reason.
        403 if told.contains("this key is bound to") => None,
        401 => Some("give an API key: `kanat login`, --api-key or KANAT_API_KEY"),
        403 => Some("the key's role does not allow this; an owner or admin can make another key"),
        429 => Some("wait a moment and try again"),
        502..=504 => Some("the service is starting, stopping or overloaded; try again"),
        _ => None,
    }
}

/// Returns the advice about an answer of a published API, whose callers have credentials of their
/// own.
fn advice_of_call(status: u16, _told: &str) -> Option<&'static str> {
    match status {
        401 => Some(
            "give a consumer key, which `kanat key create` makes, or an access token: --key or \
             KANAT_CONSUMER_KEY",
        ),
        403 => Some("the access token is good, and lacks a scope that the API asks for"),
        429 => Some("the limit of the key is used up; `kanat key list` shows it"),
        503 => Some(
            "the flow is not deployed or paused, or the service is starting, stopping or \
             overloaded; try again",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_refusal_names_each_field_and_what_to_do() {
        let body = concat!(
            r#"{"error":"2 errors","code":"INVALID_ARGUMENT","#,
            r#""details":[{"field":"name","message":"is missing"}]}"#
        );
        assert_eq!(
            refusal(400, body, advice).to_string(),
            "2 errors\n  name: is missing"
        );
        let alone = body.replace("2 errors", "name: is missing");
        assert_eq!(
            refusal(400, &alone, advice).to_string(),
            "name: is missing",
            "once"
        );
        let records = concat!(
            r#"{"error":"malformed JSON","details":[{"field":"records","#,
            r#""message":"malformed JSON"}]}"#
        );
        assert_eq!(
            refusal(400, records, advice).to_string(),
            "records: malformed JSON",
            "once"
        );
        let bound = r#"{"error":"this key is bound to another environment"}"#;
        assert_eq!(
            refusal(403, bound, advice).to_string(),
            "this key is bound to another environment"
        );
        let retire =
            r#"{"error":"a version that is active cannot be retired: retire it with force"}"#;
        assert!(
            refusal(409, retire, advice)
                .to_string()
                .ends_with("\non the command line: --force")
        );
        assert!(
            refusal(401, r#"{"error":"no key"}"#, advice)
                .to_string()
                .contains("kanat login")
        );
        let failed = refusal(
            502,
            r#"{"error":"a step failed","messageId":"msg_1"}"#,
            advice_of_call,
        );
        assert_eq!(failed.to_string(), "a step failed\nmessage id: msg_1");
        assert_eq!(
            refusal(500, "<html>", advice).to_string(),
            "the service answered 500"
        );
    }
}
