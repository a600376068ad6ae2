//! The provider that a service lets people log in by.

use anyhow::Result;

use super::service;
use crate::client::Client;
use crate::client::oidc::Tokens;
use crate::client::oidc::claims::Claims;
use crate::exit::{failure, usage};
use crate::output::Json;

/// A provider as the service names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub issuer: String,
    pub client_id: String,
    /// Scopes, separated by blanks.
    pub scope: String,
}

impl Offer {
    /// Asks the service for its providers, and takes the one that `issuer` names.
    ///
    /// # Errors
    /// The service has none, or several where none is named.
    pub async fn of(client: &Client, issuer: Option<&str>) -> Result<Self> {
        let answer = client.get_public("/auth/providers").await;
        let answer = answer.map_err(|error| service::identified(client, error))?;
        let Json::List(_) = &answer else {
            return Err(service::no_service(client));
        };
        let offers: Vec<Self> = answer.list("").iter().filter_map(Self::read).collect();
        choose(&offers, issuer, client.url()).cloned()
    }

    fn read(provider: &Json) -> Option<Self> {
        let text = |name: &str| provider.at(name)?.as_text();
        let mut scopes = provider.texts("scopes");
        // Without it a provider gives no ID token.
        if !scopes.contains(&"openid") {
            scopes.insert(0, "openid");
        }
        Some(Self {
            issuer: text("issuer")?.to_owned(),
            client_id: text("clientId")?.to_owned(),
            scope: scopes.join(" "),
        })
    }

    /// Checks that the ID token is one for this login (OpenID Connect Core, section 3.1.3.7). Its
    /// signature is the service's to check.
    ///
    /// # Errors
    /// The ID token is of another issuer, for another client or of another login.
    pub fn check(&self, tokens: &Tokens, nonce: Option<&str>) -> Result<()> {
        let Some(token) = &tokens.id_token else {
            return Ok(());
        };
        let is_ours = Claims::read(token).is_some_and(|claims| {
            claims.text("iss") == Some(self.issuer.as_str())
                && claims.is_for(&self.client_id)
                && nonce.is_none_or(|nonce| claims.text("nonce") == Some(nonce))
        });
        if is_ours {
            return Ok(());
        }
        Err(failure(format!(
            "the ID token of {} is not of this login",
            self.issuer
        )))
    }
}

/// Returns the provider that is named, or the only one.
fn choose<'o>(offers: &'o [Offer], issuer: Option<&str>, url: &str) -> Result<&'o Offer> {
    let names = || {
        let lines = offers.iter().map(|offer| format!("\n  {}", offer.issuer));
        lines.collect::<String>()
    };
    if offers.is_empty() {
        return Err(failure(format!(
            "people cannot log in to {url} by a provider: its operator sets [[oidc]] with a \
             client_id\nlog in with an API key: `kanat login`"
        )));
    }
    let Some(issuer) = issuer else {
        return match offers {
            [offer] => Ok(offer),
            _ => Err(usage(format!(
                "people log in to {url} by several providers: name one by --issuer{}",
                names()
            ))),
        };
    };
    let bare = |issuer: &str| issuer.trim_end_matches('/').to_owned();
    let mut named = offers.iter().filter(|o| bare(&o.issuer) == bare(issuer));
    named.next().ok_or_else(|| {
        usage(format!(
            "people do not log in to {url} by {issuer}, but by{}",
            names()
        ))
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn offer(issuer: &str) -> Offer {
        Offer {
            issuer: issuer.to_owned(),
            client_id: "kanat".to_owned(),
            scope: "openid".to_owned(),
        }
    }

    #[test]
    fn the_only_provider_is_taken_and_one_of_several_is_named() {
        let one = [offer("https://a.example")];
        let url = "http://127.0.0.1:8080";
        assert_eq!(choose(&one, None, url).unwrap(), &one[0]);
        assert_eq!(
            choose(&one, Some("https://a.example/"), url).unwrap(),
            &one[0]
        );
        let two = [offer("https://a.example"), offer("https://b.example/")];
        assert_eq!(
            choose(&two, Some("https://b.example"), url).unwrap(),
            &two[1]
        );
        for issuer in [None, Some("https://c.example")] {
            let error = choose(&two, issuer, url).unwrap_err().to_string();
            assert!(
                error.contains("\n  https://a.example\n  https://b.example/"),
                "{error}"
            );
        }
        let error = choose(&[], None, url).unwrap_err().to_string();
        assert!(error.contains("[[oidc]]"), "{error}");
    }

    #[test]
    fn an_offer_always_asks_for_an_id_token() {
        let read = |scopes: &str| {
            let text =
                format!(r#"{{"issuer":"https://a.example","clientId":"kanat","scopes":{scopes}}}"#);
            Offer::read(&Json::parse(&text).unwrap()).unwrap().scope
        };
        assert_eq!(read(r#"["email"]"#), "openid email");
        assert_eq!(
            read(r#"["openid","offline_access"]"#),
            "openid offline_access"
        );
        let without_client = Json::parse(r#"{"issuer":"https://a.example"}"#).unwrap();
        assert_eq!(Offer::read(&without_client), None);
    }

    #[test]
    fn an_id_token_of_another_login_is_refused() {
        let offer = offer("https://a.example");
        let is_taken = |claims: &str| {
            let parts = ["{}", claims].map(|part| URL_SAFE_NO_PAD.encode(part));
            let tokens = Tokens {
                id_token: Some(format!("{}.c2ln", parts.join("."))),
                access_token: None,
                refresh_token: None,
            };
            offer.check(&tokens, Some("n")).is_ok()
        };
        let ours = r#"{"iss":"https://a.example","aud":"kanat","nonce":"n"}"#;
        assert!(is_taken(ours));
        assert!(!is_taken(&ours.replace("\"n\"", "\"m\"")));
        assert!(!is_taken(&ours.replace("a.example", "b.example")));
        assert!(!is_taken(&ours.replace("\"kanat\"", "\"other\"")));
        assert!(!is_taken(r#"{"iss":"https://a.example","aud":"kanat"}"#));
    }
}
