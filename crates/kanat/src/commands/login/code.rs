//! A login in a browser: the authorization code flow with a code challenge (RFC 7636), whose answer
//! comes to a port of this machine (RFC 8252).

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kanat_auth::random_token;
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use super::callback::{self, Expectation, PATH};
use super::offer::Offer;
use crate::client::oidc::{Provider, Refusal, Tokens};
use crate::exit::failure;
use crate::output;

/// Time in which a person has to log in.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Secrets of one login.
struct Attempt {
    redirect_uri: String,
    state: String,
    nonce: String,
    verifier: String,
}

/// Logs a person in; returns the tokens of the provider.
///
/// # Errors
/// The person declined, did not come back in time, or the provider refuses the code.
pub async fn log_in(provider: &Provider, offer: &Offer) -> Result<Tokens> {
    let endpoint = provider.authorization_endpoint.as_ref().ok_or_else(|| {
        failure(format!(
            "{} has no authorization endpoint, by which people log in with a browser: `kanat \
             login --device` may do",
            provider.issuer
        ))
    })?;
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.context("cannot listen for the answer of the browser")?;
    let attempt = Attempt::new(listener.local_addr()?.port());
    let address = attempt.address(endpoint, offer);
    output::hint(&format!(
        "log in with a browser, at this address:\n{address}"
    ));
    if std::io::stderr().is_terminal() {
        open_browser(&address);
    }
    let expectation = Expectation {
        state: attempt.state.clone(),
        issuer: provider.issuer.clone(),
    };
    let answer = tokio::time::timeout(TIMEOUT, callback::wait(listener, expectation)).await;
    let code =
        answer.map_err(|_| failure("nobody logged in within 5 minutes; you can try again"))??;
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &attempt.redirect_uri),
        ("client_id", &offer.client_id),
        ("code_verifier", &attempt.verifier),
    ];
    let tokens = provider.tokens(&grant).await;
    let tokens = tokens.map_err(|error| match error.downcast_ref::<Refusal>() {
        Some(refusal) => failure(format!("{} refuses the login: {refusal}", provider.issuer)),
        None => error,
    })?;
    offer.check(&tokens, Some(&attempt.nonce))?;
    Ok(tokens)
}

impl Attempt {
    fn new(port: u16) -> Self {
        Self {
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
            state: random_token(),
            nonce: random_token(),
            verifier: random_token(),
        }
    }

    /// Returns the address that the person opens.
    fn address(&self, endpoint: &Url, offer: &Offer) -> Url {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let mut address = endpoint.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &offer.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("scope", &offer.scope)
            .append_pair("state", &self.state)
            .append_pair("nonce", &self.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        address
    }
}

/// Opens a browser where there is one; the address is printed in any case.
fn open_browser(address: &Url) {
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let _ = Command::new(program)
        .arg(address.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn an_address_asks_for_a_code_and_shows_no_verifier() {
        let offer = Offer {
            issuer: "https://id.example".to_owned(),
            client_id: "kanat cli".to_owned(),
            scope: "openid email".to_owned(),
        };
        let endpoint = Url::parse("https://id.example/authorize?tenant=a").unwrap();
        let attempt = Attempt::new(40_000);
        let address = attempt.address(&endpoint, &offer);
        let query: HashMap<String, String> = address.query_pairs().into_owned().collect();
        assert_eq!(query["tenant"], "a");
        assert_eq!(query["client_id"], "kanat cli");
        assert_eq!(query["redirect_uri"], "http://127.0.0.1:40000/callback");
        assert_eq!(query["scope"], "openid email");
        assert_eq!(query["state"], attempt.state);
        assert_eq!(query["nonce"], attempt.nonce);
        assert_eq!(query["code_challenge"].len(), 43);
        assert!(!address.as_str().contains(&attempt.verifier));
    }

    #[test]
    fn a_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let attempt = Attempt {
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            ..Attempt::new(1)
        };
        let offer = Offer {
            issuer: String::new(),
            client_id: String::new(),
            scope: String::new(),
        };
        let endpoint = Url::parse("https://id.example/authorize").unwrap();
        let address = attempt.address(&endpoint, &offer);
        let challenge = "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&";
        assert!(address.as_str().contains(challenge), "{address}");
    }
}
