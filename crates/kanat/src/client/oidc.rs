//! OpenID providers as their client sees them: the discovery document, and the endpoints that give
//! tokens.

pub mod claims;
mod http;

use anyhow::{Result, anyhow};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::exit::failure;
use http::Answer;

/// Path of the discovery document, after the issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// Number of characters of a provider's text that are shown.
const MAX_TEXT: usize = 300;

/// A provider and its endpoints.
pub struct Provider {
    pub issuer: String,
    pub authorization_endpoint: Option<Url>,
    pub device_authorization_endpoint: Option<Url>,
    token_endpoint: Url,
    http: reqwest::Client,
}

/// Tokens of one answer. No `Debug`: it holds them.
#[derive(Deserialize)]
pub struct Tokens {
    pub id_token: Option<String>,
    pub access_token: Option<String>,
    pub refresh_token: Option<String>,
}

/// A refusal of the provider (RFC 6749, section 5.2).
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Its code, such as `invalid_grant`.
    pub code: String,
    text: String,
}

/// Members of the discovery document that logins need.
#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Provider {
    /// Reads the discovery document of `issuer`.
    ///
    /// # Errors
    /// The provider cannot be reached, or its document is none or of another issuer.
    pub async fn discover(issuer: &str) -> Result<Self> {
        let http = http::client()?;
        let address = format!("{}{DISCOVERY}", issuer.trim_end_matches('/'));
        let address = endpoint(issuer, &address)?;
        let answer = http::send(http.get(address.clone()), issuer).await?;
        if !answer.is_success {
            return Err(failure(format!(
                "{address} answered {}: is {issuer} the address of an OpenID provider?",
                answer.status
            )));
        }
        let document: Document = read(&answer, issuer)?;
        if document.issuer != issuer {
            return Err(failure(format!(
                "the discovery document of {issuer} is of another issuer, {}",
                printable(&document.issuer)
            )));
        }
        let optional = |address: Option<String>| {
            let found = address.map(|address| endpoint(issuer, &address));
            found.transpose()
        };
        let token_endpoint = document
            .token_endpoint
            .ok_or_else(|| anyhow!("the discovery document of {issuer} has no token_endpoint"))?;
        Ok(Self {
            authorization_endpoint: optional(document.authorization_endpoint)?,
            device_authorization_endpoint: optional(document.device_authorization_endpoint)?,
            token_endpoint: endpoint(issuer, &token_endpoint)?,
            issuer: issuer.to_owned(),
            http,
        })
    }

    /// Asks the token endpoint for tokens, by a grant.
    ///
    /// # Errors
    /// [`Refusal`] when the provider refuses the grant; other errors when it cannot be asked.
    pub async fn tokens(&self, grant: &[(&str, &str)]) -> Result<Tokens> {
        self.post(&self.token_endpoint, grant).await
    }

    /// Posts a form to one of the endpoints.
    ///
    /// # Errors
    /// [`Refusal`] when the provider refuses it; other errors when it cannot be asked.
    pub async fn post<T: DeserializeOwned>(
        &self,
        endpoint: &Url,
        form: &[(&str, &str)],
    ) -> Result<T> {
        let request = self.http.post(endpoint.clone()).form(form);
        let answer = http::send(request, &self.issuer).await?;
        if answer.is_success {
            return read(&answer, &self.issuer);
        }
        match serde_json::from_slice::<ErrorBody>(&answer.body) {
            Ok(body) => Err(Refusal::new(&body.error, &body.error_description).into()),
            Err(_) => Err(failure(format!(
                "{} answered {} at {endpoint}",
                self.issuer, answer.status
            ))),
        }
    }
}

impl Refusal {
    /// Returns a refusal, with what a terminal can show of its texts.
    pub fn new(code: &str, description: &str) -> Self {
        let code = printable(code);
        let description = printable(description);
        let text = match description.as_str() {
            "" => code.clone(),
            description => format!("{description} ({code})"),
        };
        Self { code, text }
    }
}

/// Returns the text of another party without what controls a terminal.
pub fn printable(text: &str) -> String {
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(MAX_TEXT).collect()
}

/// Reads an address of the provider. It is opened by a browser and gets secrets: only an issuer
/// without TLS has addresses without TLS.
///
/// # Errors
/// The address is none, or is less safe than the issuer.
pub fn endpoint(issuer: &str, address: &str) -> Result<Url> {
    let url = Url::parse(address)
        .map_err(|_| failure(format!("{:?} is no address", printable(address))))?;
    let is_plain = url.scheme() == "http" && issuer.starts_with("http://");
    if url.scheme() == "https" || is_plain {
        return Ok(url);
    }
    Err(failure(format!(
        "{:?}, an address of {issuer}, does not begin with https://",
        printable(address)
    )))
}

fn read<T: DeserializeOwned>(answer: &Answer, issuer: &str) -> Result<T> {
    // The error of serde_json may have a part of the text, which holds tokens.
    serde_json::from_slice(&answer.body).map_err(|_| {
        failure(format!(
            "the answer of {issuer} is not what OpenID providers answer"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_as_safe_as_the_issuer() {
        let is_taken = |issuer: &str, address: &str| endpoint(issuer, address).is_ok();
        assert!(is_taken("https://id.example", "https://id.example/token"));
        assert!(is_taken(
            "https://id.example",
            "https://login.example/token"
        ));
        assert!(is_taken("http://127.0.0.1:9", "http://127.0.0.1:9/token"));
        assert!(!is_taken("https://id.example", "http://id.example/token"));
        assert!(!is_taken("https://id.example", "file:///etc/passwd"));
        assert!(!is_taken("http://127.0.0.1:9", "javascript:alert(1)"));
        assert!(!is_taken("https://id.example", "/token"));
    }

    #[test]
    fn a_refusal_shows_no_control_characters() {
        let refusal = Refusal::new("access_denied", "no\u{1b}[2J\nthanks");
        assert_eq!(refusal.to_string(), "no[2Jthanks (access_denied)");
        assert_eq!(
            Refusal::new("invalid_grant", "").to_string(),
            "invalid_grant"
        );
    }
}
