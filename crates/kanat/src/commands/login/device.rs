//! A login without a browser: the provider shows its page on another device (RFC 8628).

use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;

use super::offer::Offer;
use crate::client::oidc::{Provider, Refusal, Tokens, endpoint, printable};
use crate::exit::failure;
use crate::output;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Seconds between two questions, where the provider does not say.
const INTERVAL: u64 = 5;
/// Seconds by which the interval grows when the provider asks for it.
const SLOW_DOWN: u64 = 5;
/// Seconds that a login may take at most, whatever the provider says.
const MAX_EXPIRES_IN: u64 = 60 * 60;

/// Answer of the provider to a device. No `Debug`: the device code is a secret.
#[derive(Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
    #[serde(default)]
    interval: Option<u64>,
}

/// Logs a person in; returns the tokens of the provider.
///
/// # Errors
/// The provider does not offer it, the person declined, or the code has ended.
pub async fn log_in(provider: &Provider, offer: &Offer) -> Result<Tokens> {
    let issuer = &provider.issuer;
    let start = provider.device_authorization_endpoint.as_ref();
    let start = start.ok_or_else(|| {
        failure(format!(
            "{issuer} offers no login by a code: log in with a browser, `kanat login --oidc`"
        ))
    })?;
    let form = [
        ("client_id", offer.client_id.as_str()),
        ("scope", &offer.scope),
    ];
    let begun = provider.post::<Authorization>(start, &form).await;
    let authorization = begun.map_err(|error| refused(issuer, error))?;
    output::hint(&instructions(issuer, &authorization)?);
    let seconds = authorization.expires_in.unwrap_or(MAX_EXPIRES_IN);
    let limit = Duration::from_secs(seconds.min(MAX_EXPIRES_IN));
    let tokens = tokio::time::timeout(limit, poll(provider, offer, &authorization)).await;
    let tokens = tokens.map_err(|_| ended())??;
    offer.check(&tokens, None)?;
    Ok(tokens)
}

/// Asks for the tokens until the person has decided.
async fn poll(provider: &Provider, offer: &Offer, authorization: &Authorization) -> Result<Tokens> {
    let mut interval = authorization.interval.unwrap_or(INTERVAL).max(1);
    let grant = [
        ("grant_type", GRANT),
        ("device_code", &authorization.device_code),
        ("client_id", &offer.client_id),
    ];
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let error = match provider.tokens(&grant).await {
            Ok(tokens) => return Ok(tokens),
            Err(error) => error,
        };
        let code = error.downcast_ref::<Refusal>();
        let code = code.map(|refusal| refusal.code.as_str());
        interval = match next_interval(interval, code) {
            Some(interval) => interval,
            None if code == Some("expired_token") => return Err(ended()),
            None => return Err(refused(&provider.issuer, error)),
        };
    }
}

/// Returns the seconds to the next question after a refusal with this code, or after no answer;
/// none where another question is in vain.
fn next_interval(interval: u64, code: Option<&str>) -> Option<u64> {
    match code {
        Some("authorization_pending") => Some(interval),
        Some("slow_down") => Some(interval.saturating_add(SLOW_DOWN)),
        Some(_) => None,
        // RFC 8628, section 3.5: less often where the provider cannot be reached.
        None => Some(interval.saturating_mul(2)),
    }
}

/// Returns where the person enters the code.
fn instructions(issuer: &str, authorization: &Authorization) -> Result<String> {
    let page = endpoint(issuer, &authorization.verification_uri)?;
    let code = printable(&authorization.user_code);
    let mut text = format!("open this address on any device, and enter the code {code}:\n{page}");
    if let Some(complete) = &authorization.verification_uri_complete {
        let complete = endpoint(issuer, complete)?;
        text += &format!("\nor open the address that has the code:\n{complete}");
    }
    Ok(text)
}

fn ended() -> anyhow::Error {
    failure("the code has ended before it was entered; you can try again")
}

fn refused(issuer: &str, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Refusal>() {
        Some(refusal) => failure(format!("{issuer} refuses the login: {refusal}")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_repeated_as_the_provider_asks() {
        assert_eq!(next_interval(5, Some("authorization_pending")), Some(5));
        assert_eq!(next_interval(5, Some("slow_down")), Some(10));
        assert_eq!(next_interval(5, None), Some(10));
        for code in ["access_denied", "expired_token", "invalid_grant"] {
            assert_eq!(next_interval(5, Some(code)), None, "{code}");
        }
    }

    #[test]
    fn instructions_have_the_address_and_the_code() {
        let answer = r#"{"device_code":"d","user_code":"WDJB-\u001b0001",
            "verification_uri":"https://id.example/activate"}"#;
        let authorization: Authorization = serde_json::from_str(answer).unwrap();
        let text = instructions("https://id.example", &authorization).unwrap();
        assert_eq!(
            text,
            "open this address on any device, and enter the code \
             WDJB-0001:\nhttps://id.example/activate"
        );
    }
}
