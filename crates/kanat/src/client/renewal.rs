//! Tokens of a person that are renewed before they end, by one process at a time.

use std::time::Duration;

use anyhow::Result;
use kanat_model::{Secret, Timestamp};
use tokio::sync::Mutex;

use super::credentials::{self, Lock, Login, TokenKind};
use super::oidc::claims::Claims;
use super::oidc::{Provider, Refusal, Tokens};
use crate::exit::failure;

/// A token that ends sooner is renewed before it is sent.
const MARGIN: Duration = Duration::from_secs(30);

/// Advice on a login that has ended.
pub const LOG_IN_AGAIN: &str = "log in again: `kanat login --oidc`";

/// The login of a person with the service at `url`.
pub struct Renewal {
    url: String,
    login: Mutex<Login>,
}

impl Renewal {
    /// Takes the login that is saved for the service at `url`.
    pub fn new(url: String, login: Login) -> Self {
        Self {
            url,
            login: Mutex::new(login),
        }
    }

    /// Returns a token that is good for now. One that ends within 30 s is renewed, and the new one
    /// is saved.
    ///
    /// # Errors
    /// The token has ended, and cannot be renewed.
    pub async fn token(&self) -> Result<Secret<String>> {
        let mut login = self.login.lock().await;
        if login.refresh_token.is_some() && login.ends_within(MARGIN) {
            match self.renew().await {
                Ok(renewed) => *login = renewed,
                Err(error) if login.ends_within(Duration::ZERO) => return Err(error),
                // The token may still do for this request.
                Err(_) => {}
            }
        }
        Ok(Secret::new(login.token.clone()))
    }

    /// Returns the token as it is.
    pub async fn current(&self) -> Secret<String> {
        Secret::new(self.login.lock().await.token.clone())
    }

    /// Renews the saved login, unless another process has done so: a provider takes a refresh token
    /// once.
    async fn renew(&self) -> Result<Login> {
        let lock = Lock::take().await?;
        let mut saved = credentials::load()?;
        let is_here = saved.url.as_deref() == Some(self.url.as_str());
        let Some(login) = saved.login.take().filter(|_| is_here) else {
            return Err(failure(format!("this login was ended: {LOG_IN_AGAIN}")));
        };
        if !login.ends_within(MARGIN) {
            return Ok(login);
        }
        let renewed = renewed(login).await?;
        saved.login = Some(renewed.clone());
        lock.save(&saved)?;
        Ok(renewed)
    }
}

/// Asks the provider for new tokens.
async fn renewed(login: Login) -> Result<Login> {
    let (Some(refresh_token), Some(client_id)) = (&login.refresh_token, &login.client_id) else {
        return Err(failure(format!("the login has ended: {LOG_IN_AGAIN}")));
    };
    let provider = Provider::discover(&login.issuer).await?;
    let grant = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
        ("client_id", client_id),
    ];
    let tokens = provider.tokens(&grant).await;
    let tokens = tokens.map_err(|error| match error.downcast_ref::<Refusal>() {
        Some(refusal) => failure(format!(
            "{} does not renew the login: {refusal}\n{LOG_IN_AGAIN}",
            login.issuer
        )),
        None => error,
    })?;
    login.with(tokens)
}

impl Login {
    fn ends_within(&self, time: Duration) -> bool {
        let now = Timestamp::now().as_millis() / 1_000;
        let margin = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        self.expires_at.is_some_and(|end| end - now <= margin)
    }

    /// Returns the login with new tokens. A provider that gives no new refresh token goes on to
    /// take the former one.
    fn with(self, tokens: Tokens) -> Result<Self> {
        let (token, name) = match self.kind {
            TokenKind::IdToken => (tokens.id_token, "ID"),
            TokenKind::AccessToken => (tokens.access_token, "access"),
        };
        let token = token.ok_or_else(|| {
            failure(format!(
                "{} renews no {name} tokens: {LOG_IN_AGAIN}",
                self.issuer
            ))
        })?;
        Ok(Self {
            expires_at: Claims::read(&token).and_then(|claims| claims.expires_at()),
            token,
            refresh_token: tokens.refresh_token.or(self.refresh_token),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(kind: TokenKind) -> Login {
        Login {
            token: "former".to_owned(),
            kind,
            expires_at: Some(0),
            issuer: "https://id.example".to_owned(),
            client_id: Some("kanat".to_owned()),
            refresh_token: Some("refresh-1".to_owned()),
        }
    }

    fn tokens(id_token: Option<&str>, refresh_token: Option<&str>) -> Tokens {
        Tokens {
            id_token: id_token.map(str::to_owned),
            access_token: Some("access".to_owned()),
            refresh_token: refresh_token.map(str::to_owned),
        }
    }

    #[test]
    fn a_renewal_renews_the_kind_of_token_that_is_sent() {
        let id = login(TokenKind::IdToken).with(tokens(Some("id"), None));
        assert_eq!(id.unwrap_or_else(|error| panic!("{error}")).token, "id");
        let access = login(TokenKind::AccessToken).with(tokens(Some("id"), None));
        let access = access.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(access.token, "access");
        let missing = login(TokenKind::IdToken).with(tokens(None, None));
        assert!(missing.err().unwrap().to_string().contains(LOG_IN_AGAIN));
    }

    #[test]
    fn a_refresh_token_stays_until_another_one_comes() {
        let refresh = |given| {
            let renewed = login(TokenKind::IdToken).with(tokens(Some("id"), given));
            renewed
                .unwrap_or_else(|error| panic!("{error}"))
                .refresh_token
        };
        assert_eq!(refresh(None).as_deref(), Some("refresh-1"));
        assert_eq!(refresh(Some("refresh-2")).as_deref(), Some("refresh-2"));
    }

    #[test]
    fn a_token_without_an_end_is_not_renewed() {
        let ends = |expires_at| {
            let login = Login {
                expires_at,
                ..login(TokenKind::IdToken)
            };
            login.ends_within(MARGIN)
        };
        assert!(ends(Some(0)));
        assert!(!ends(Some(i64::MAX / 2)));
        assert!(!ends(None));
    }
}
