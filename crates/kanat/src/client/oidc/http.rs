//! Calls to a provider, whose answers are short.

use std::time::Duration;

use anyhow::{Context, Result};
use reqwest::{RequestBuilder, redirect};

use crate::exit::failure;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BYTES: usize = 1024 * 1024;

/// Status and body of an answer. No `Debug`: it may hold tokens.
pub struct Answer {
    pub status: u16,
    pub is_success: bool,
    pub body: Vec<u8>,
}

/// Returns a client that follows no redirect, so that a grant goes to no other address.
#[expect(
    clippy::disallowed_methods,
    reason = "speaks to the provider by which a person logs in"
)]
pub fn client() -> Result<reqwest::Client> {
    let agent = concat!("kanat/", env!("CARGO_PKG_VERSION"));
    let builder = reqwest::Client::builder()
        .user_agent(agent)
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT);
    builder.build().context("cannot set up HTTP")
}

/// Sends a request to `issuer`.
///
/// # Errors
/// The issuer cannot be reached, or its answer is too long.
pub async fn send(request: RequestBuilder, issuer: &str) -> Result<Answer> {
    let request = request.header("accept", "application/json");
    let broken = |error: reqwest::Error| unreachable(issuer, &error);
    let mut response = request.send().await.map_err(broken)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BYTES {
            return Err(failure(format!("the answer of {issuer} is too long")));
        }
    }
    Ok(Answer {
        status: response.status().as_u16(),
        is_success: response.status().is_success(),
        body,
    })
}

/// Names the cause, without the address: its query may have secrets.
fn unreachable(issuer: &str, error: &reqwest::Error) -> anyhow::Error {
    if error.is_timeout() {
        return failure(format!("{issuer} did not answer in time"));
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    failure(format!("cannot reach {issuer}: {cause}"))
}
