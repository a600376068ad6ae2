//! The tokens of an instance: asked for, sealed, opened, and told of without being shown.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use kanat_catalog::instance::AccessToken;
use kanat_catalog::oauth2::{TokenError, TokenRequest, Tokens};
use kanat_engine::Mask;
use kanat_model::id::InstanceId;
use kanat_model::{Error, Result, Secret, Timestamp};
use kanat_net::outbound;
use kanat_store::Db;
use kanat_store::connector_instance::ConnectorInstance;
use kanat_store::oauth_token::{self, OauthToken};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::App;

/// A token endpoint that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long an access token is taken to be good when the provider does not say.
const LIFE_UNSAID: Duration = Duration::from_secs(3600);

/// New tokens are asked for so long before the old ones end, or a fifth of their life when that is
/// less.
const AHEAD: Duration = Duration::from_secs(300);

/// State of an instance's tokens, as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenStatus {
    /// `missing`, `connected` or `refused`.
    pub status: &'static str,
    pub expires_at: Option<Timestamp>,
    pub error: Option<String>,
}

/// Sends a request to a token endpoint.
pub(super) async fn ask(app: &App, request: TokenRequest) -> Result<Tokens, TokenError> {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(authorization) = request.authorization {
        headers.insert(header::AUTHORIZATION, authorization);
    }
    let address = address(&request.url);
    let call = outbound::Request {
        method: Method::POST,
        url: request.url,
        headers,
        body: Bytes::from(request.body),
        timeout: TIMEOUT,
    };
    let mask = Mask::new(&request.secrets);
    let answer = app.outbound.send(call).await;
    let answer = answer.map_err(|error| {
        TokenError::Failed(format!("the token endpoint is out of reach: {error}"))
    })?;
    let tokens = Tokens::read(answer.status, &answer.body, &|text| {
        mask.apply(text).into_owned()
    });
    tokens.map_err(|error| match error {
        TokenError::Refused(why) => TokenError::Refused(format!("{why} (POST {address})")),
        TokenError::Failed(why) => TokenError::Failed(format!("{why} (POST {address})")),
    })
}

/// Address of a token endpoint as it is shown: without its query.
fn address(url: &url::Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.to_string()
}

/// Returns the row of tokens that were issued now. A refresh token that is not issued anew stays
/// the `former` one.
pub(super) fn row(
    app: &App,
    instance: &ConnectorInstance,
    given: Tokens,
    former: Option<Secret<String>>,
) -> OauthToken {
    let now = Timestamp::now();
    let refresh = given.refresh.or(former);
    let life = given
        .expires_in
        .or_else(|| refresh.is_some().then_some(LIFE_UNSAID));
    let text = json!({
        "access": given.access.expose(),
        "refresh": refresh.as_ref().map(Secret::expose),
    })
    .to_string();
    OauthToken {
        instance_id: instance.id.clone(),
        environment_id: instance.environment_id.clone(),
        tokens: Some(
            app.sealer
                .seal(text.as_bytes(), &seal_context(&instance.id)),
        ),
        expires_at: given.expires_in.map(|life| now.after(life)),
        refresh_at: life.map(|life| now.after(life - AHEAD.min(life / 5))),
        failures: 0,
        refused: String::new(),
    }
}

/// The tokens of a row.
#[derive(Default)]
pub(super) struct TokenPair {
    pub access: Option<Secret<String>>,
    pub refresh: Option<Secret<String>>,
}

/// Opens the tokens of a row.
pub(super) fn open(app: &App, row: &OauthToken) -> Result<TokenPair> {
    let Some(sealed) = &row.tokens else {
        return Ok(TokenPair::default());
    };
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(
            instance.id = %row.instance_id,
            error = %error,
            "the tokens of a connector cannot be read",
        );
        Error::internal()
    };
    let plain = app
        .sealer
        .open(sealed, &seal_context(&row.instance_id))
        .map_err(|error| failed(&error))?;
    let tokens: Value = serde_json::from_slice(&plain).map_err(|_| failed(&"they are no JSON"))?;
    let token = |name: &str| {
        tokens[name]
            .as_str()
            .map(|token| Secret::new(token.to_owned()))
    };
    Ok(TokenPair {
        access: token("access"),
        refresh: token("refresh"),
    })
}

/// How an access token is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    /// The client asks for another one by itself.
    ByClient,
    /// A person has consented, and the provider has given a refresh token.
    ByRefreshToken,
}

/// Returns the access token that an instance's calls carry.
pub(super) async fn access_token(
    app: &App,
    db: &mut Db,
    id: &InstanceId,
    renewal: Renewal,
) -> Result<Option<AccessToken>> {
    let Some(row) = oauth_token::get(db, id).await? else {
        return Ok(None);
    };
    let TokenPair { access, refresh } = open(app, &row)?;
    let has_means = renewal == Renewal::ByClient || refresh.is_some();
    let renewable = row.refused.is_empty() && has_means;
    Ok(access.map(|text| AccessToken {
        text: text.expose().clone(),
        ends_at: row.expires_at,
        renewable,
    }))
}

/// Has new tokens asked for at once because a call was refused with the access token of this
/// SHA-256. One that is not held any more was renewed meanwhile.
pub async fn refused(app: &App, db: &mut Db, id: &InstanceId, sha256: &[u8]) -> Result<()> {
    let Some(row) = oauth_token::get(db, id).await? else {
        return Ok(());
    };
    let held = open(app, &row)?
        .access
        .is_some_and(|held| Sha256::digest(held.expose().as_bytes())[..] == *sha256);
    if let Some(tokens) = row.tokens.filter(|_| held)
        && oauth_token::expedite(db, id, &tokens, Timestamp::now()).await?
    {
        tracing::info!(
            instance.id = %id,
            "a connector refused its access token: another is asked for",
        );
    }
    Ok(())
}

/// Returns the state of an instance's tokens.
pub async fn held(db: &mut Db, id: &InstanceId) -> Result<TokenStatus> {
    let missing = TokenStatus {
        status: "missing",
        expires_at: None,
        error: None,
    };
    Ok(oauth_token::get(db, id)
        .await?
        .map_or(missing, |row| held_of(&row)))
}

pub(super) fn held_of(row: &OauthToken) -> TokenStatus {
    let status = match (row.refused.is_empty(), &row.tokens) {
        (false, _) => "refused",
        (true, Some(_)) => "connected",
        (true, None) => "missing",
    };
    TokenStatus {
        status,
        expires_at: row.expires_at,
        error: (!row.refused.is_empty()).then(|| row.refused.clone()),
    }
}

/// The context under which tokens at rest are sealed.
pub fn seal_context(id: &InstanceId) -> String {
    format!("oauth_token/{id}")
}
