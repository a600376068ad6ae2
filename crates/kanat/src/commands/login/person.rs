//! A person's tokens: which of them the service takes, and as whom.

use anyhow::{Context, Result};

use super::offer::Offer;
use super::save::save;
use super::service;
use crate::client::credentials::{Credentials, Login, TokenKind};
use crate::client::oidc::Tokens;
use crate::client::oidc::claims::Claims;
use crate::client::{Client, Refusal};
use crate::output::{self, Json};

/// Beginning of the error of a login that failed.
pub const UNSAVED: &str = "nothing was saved";

/// Tokens that the service may take, in the order in which it is asked. No `Debug`: it holds them.
pub struct Candidates {
    logins: Vec<Login>,
}

/// What the service says to a token.
enum Reply {
    Member(Json),
    /// The token is good, and its person is no member.
    Stranger(String),
}

impl Candidates {
    /// Returns the tokens of a provider that are JWTs.
    pub fn of(offer: Offer, tokens: Tokens) -> Self {
        let login = |(kind, token): (TokenKind, Option<String>)| {
            let token = token?;
            let claims = Claims::read(&token)?;
            Some(Login {
                expires_at: claims.expires_at(),
                token,
                kind,
                issuer: offer.issuer.clone(),
                client_id: Some(offer.client_id.clone()),
                refresh_token: tokens.refresh_token.clone(),
            })
        };
        let candidates = [
            (TokenKind::IdToken, tokens.id_token),
            (TokenKind::AccessToken, tokens.access_token),
        ];
        Self {
            logins: candidates.into_iter().filter_map(login).collect(),
        }
    }

    /// Returns a token that was given, which nothing renews.
    pub fn given(issuer: &str, token: &str) -> Self {
        let claims = Claims::read(token);
        let login = Login {
            token: token.to_owned(),
            kind: TokenKind::IdToken,
            expires_at: claims.and_then(|claims| claims.expires_at()),
            issuer: issuer.to_owned(),
            client_id: None,
            refresh_token: None,
        };
        Self {
            logins: vec![login],
        }
    }

    /// Asks the service as whom it takes each token, until it takes one.
    async fn accepted(self, client: &Client) -> Result<(Login, Reply)> {
        let mut refused = None;
        for login in self.logins {
            let client = client.with_token(&login.token);
            match client.get("/me", &[]).await {
                Ok(me) => return Ok((login, Reply::Member(me))),
                Err(error) if Refusal::has_status(&error, 401) => {
                    // The answer to the ID token says most.
                    refused.get_or_insert(error);
                }
                Err(error) => {
                    let error = service::identified(&client, error);
                    return match Refusal::has_status(&error, 403) {
                        true => Ok((login, Reply::Stranger(error.to_string()))),
                        false => Err(error),
                    };
                }
            }
        }
        Err(match refused {
            Some(error) => service::identified(client, error),
            None => crate::exit::failure("the provider gave no token that is a JWT"),
        })
    }
}

/// Saves the token that the service takes, and prints as whom it does.
///
/// # Errors
/// The service takes no token, or the file cannot be written.
pub async fn log_in(
    client: &Client,
    candidates: Candidates,
    environment: Option<String>,
) -> Result<()> {
    let accepted = candidates.accepted(client).await;
    let (login, reply) = accepted.context(UNSAVED)?;
    let url = client.url();
    let mut advice = None;
    let summary = match reply {
        Reply::Member(me) => {
            let client = client.with_token(&login.token);
            let environments = service::environments(&client).await;
            let environments = environments.context(UNSAVED)?;
            format!(
                "logged in to {url} as {} (environments: {environments})",
                person(&me)
            )
        }
        Reply::Stranger(text) => {
            advice = Some(text);
            format!("the login for {url} is saved, which does not let you in yet")
        }
    };
    let credentials = Credentials {
        url: Some(url.to_owned()),
        api_key: None,
        environment,
        login: Some(login),
    };
    save(&credentials, &summary).await?;
    if let Some(advice) = advice {
        output::hint(&advice);
    }
    Ok(())
}

/// Returns name, address and role of the person.
fn person(me: &Json) -> String {
    let name = me.text("name");
    let email = me.text("email");
    let who = match (name.as_str(), email.as_str()) {
        ("", email) => email.to_owned(),
        (name, "") => name.to_owned(),
        (name, email) if name == email => email.to_owned(),
        (name, email) => format!("{name} <{email}>"),
    };
    format!("{who}, {}", me.text("role"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_called_by_name_and_address() {
        let called = |text: &str| person(&Json::parse(text).unwrap());
        assert_eq!(
            called(r#"{"name":"Anna","email":"anna@a.example","role":"editor"}"#),
            "Anna <anna@a.example>, editor"
        );
        assert_eq!(
            called(r#"{"name":null,"email":"anna@a.example","role":"viewer"}"#),
            "anna@a.example, viewer"
        );
    }
}
