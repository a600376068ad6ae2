//! OAuth2 of connector instances: a person is sent to the provider and comes back with a code, for
//! which the provider gives tokens. They are sealed at rest, and nodes get the access token with
//! the instance's plan. Renewing them is in `oauth/refresh.rs`.

mod refresh;
mod tokens;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kanat_auth::random_token;
use kanat_catalog::instance::AccessToken;
use kanat_catalog::oauth2::{Client, Consent, Grant};
use kanat_catalog::{Entry, oauth2};
use kanat_engine::Mask;
use kanat_model::health::Observation;
use kanat_model::id::InstanceId;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::connector_instance::{self, ConnectorInstance};
use kanat_store::oauth_start::{self, OauthStart};
use kanat_store::oauth_token::{self, OauthToken};
use kanat_store::{Db, Tx};
use sha2::{Digest, Sha256};
use url::Url;

use super::Config;
use crate::app::audit::{self, Action, Audited};
use crate::app::{App, Call, Caller, ChangeResult, PublishTransaction};
pub use refresh::{Renewals, refresh_due};
pub use tokens::{TokenStatus, held, refused, seal_context as tokens_context};

/// How long a person may take at the provider.
const START_LIFE: Duration = Duration::from_secs(600);

/// The longest parameter of a callback that is looked at.
const MAX_PARAMETER: usize = 8 * 1024;

/// An authorization that has begun: the address that the user is sent to, and its parameters.
#[derive(Debug)]
pub struct AuthorizationStart {
    pub authorization_url: Url,
    pub state: String,
    pub instance: ConnectorInstance,
    pub redirect_uri: String,
    pub expires_at: Timestamp,
}

/// Parameters of the provider's redirect.
#[derive(Debug, Default)]
pub struct Callback {
    pub state: String,
    pub code: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

/// Begins to connect the instance of this name; without a redirect address the provider sends
/// people back to this service.
pub async fn start(
    call: &Call,
    catalog_id: &str,
    instance_name: &str,
    redirect_uri: Option<String>,
) -> Result<AuthorizationStart> {
    for (field, value) in [("catalogId", catalog_id), ("instanceName", instance_name)] {
        if value.is_empty() {
            return Err(Error::field(field, "is required"));
        }
    }
    let entry = super::catalog_entry(catalog_id)?;
    if entry.authentication != "oauth2" {
        return Err(Error::field(
            "catalogId",
            format!("{catalog_id} is not connected by OAuth2"),
        ));
    }
    let redirect_uri = redirect_uri.unwrap_or_else(|| own_callback(&call.app));
    check_redirect(&redirect_uri)?;
    let mut tx = call.write().await?;
    let instance = named(call, &mut tx, instance_name).await?;
    if instance.catalog_id != catalog_id {
        let message = format!(
            "{instance_name:?} is an instance of {}, not of {catalog_id}",
            instance.catalog_id
        );
        return Err(Error::field("instanceName", message));
    }
    let client = client(entry, &super::config(&call.app, &instance)?)?;
    if client.grant() == Grant::ClientCredentials {
        return Err(Error::precondition(
            "an instance with the grant client_credentials needs nobody's consent",
        ));
    }
    let state = random_token();
    let verifier = random_token();
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let state = signed(&call.app, &state);
    let authorization_url = client
        .authorization(&redirect_uri, &state, &challenge)
        .map_err(Error::precondition)?;
    let now = Timestamp::now();
    let expires_at = now.after(START_LIFE);
    oauth_start::delete_expired(&mut tx, now).await?;
    let start = OauthStart {
        state_sha256: hash(&state),
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        instance_id: instance.id.clone(),
        redirect_uri: redirect_uri.clone(),
        verifier: call
            .app
            .sealer
            .seal(verifier.as_bytes(), &verifier_context(&hash(&state))),
        expires_at,
    };
    oauth_start::insert(&mut tx, &start).await?;
    tx.commit().await?;
    Ok(AuthorizationStart {
        authorization_url,
        state,
        instance,
        redirect_uri,
        expires_at,
    })
}

/// Ends what was started: exchanges the code for tokens. The state stands in for a login where
/// there is no caller; where there is one, it must be of the caller's account.
pub async fn complete(
    app: &App,
    call: Option<&Call>,
    callback: Callback,
) -> Result<ChangeResult<(ConnectorInstance, TokenStatus)>> {
    let caller = call.map(|call| &call.caller);
    let start = take(app, caller, &callback.state).await?;
    let instance = started_for(&mut *app.store.read().await?, &start).await?;
    let client = client(
        super::catalog_entry(&instance.catalog_id)?,
        &super::config(app, &instance)?,
    )?;
    if let Some(error) = &callback.error {
        let description = callback
            .error_description
            .as_ref()
            .map(|text| format!(": {text}"))
            .unwrap_or_default();
        let said = format!("{error}{description}");
        let mask = Mask::new(&client.secrets());
        return Err(Error::precondition(format!(
            "the provider gave no consent: {}",
            printable(&mask.apply(&said))
        )));
    }
    let code = callback
        .code
        .filter(|code| !code.is_empty() && code.len() <= MAX_PARAMETER);
    let code = code.ok_or_else(|| Error::field("code", "is required"))?;
    let verifier = app
        .sealer
        .open(&start.verifier, &verifier_context(&hash(&callback.state)))
        .map_err(|error| {
            tracing::error!(
                instance.id = %instance.id,
                error = %error,
                "the verifier of an OAuth2 start cannot be read",
            );
            Error::internal()
        })?;
    let verifier = String::from_utf8_lossy(&verifier);
    let consent = Consent {
        code: &code,
        redirect_uri: &start.redirect_uri,
        verifier: &verifier,
    };
    let given = tokens::ask(app, client.exchange(consent))
        .await
        .map_err(|error| match error {
            oauth2::TokenError::Refused(_) => Error::precondition(error.to_string()),
            oauth2::TokenError::Failed(_) => Error::unavailable(error.to_string()),
        })?;
    let mut change = PublishTransaction::begin(app, &start.environment_id).await?;
    // The instance may have been changed or deleted meanwhile.
    let instance = started_for(&mut change, &start).await?;
    let row = tokens::row(app, &instance, given, None);
    oauth_token::put(&mut change, &row, Timestamp::now()).await?;
    super::health::observe(
        &mut change,
        &instance.id,
        Observation::Passed,
        "connected by OAuth2",
        Timestamp::now(),
    )
    .await?;
    super::republish(&mut change, &instance).await?;
    let held = tokens::held_of(&row);
    let entity = instance.entity();
    match call {
        Some(call) => audit::record(call, &mut change, entity, None, None).await?,
        None => {
            let action = Action::new("connector", "callback");
            audit::by_system(&mut change, &instance.account_id, action, entity, None).await?;
        }
    }
    change.commit((instance, held)).await
}

/// Returns the instance that is being connected.
async fn started_for(db: &mut Db, start: &OauthStart) -> Result<ConnectorInstance> {
    let found = connector_instance::get(db, &start.environment_id, &start.instance_id).await?;
    found.ok_or_else(|| Error::not_found("connector instance", start.instance_id.as_str()))
}

/// Returns whether the instance's client gets tokens without a user's consent.
pub fn needs_nobody(instance: &ConnectorInstance, config: &Config) -> Result<bool> {
    let entry =
        kanat_catalog::entry(&instance.catalog_id).filter(|entry| entry.authentication == "oauth2");
    entry.map_or(Ok(false), |entry| {
        Ok(client(entry, config)?.grant() == Grant::ClientCredentials)
    })
}

/// The access token that an instance's calls carry.
pub async fn access_token(
    app: &App,
    db: &mut Db,
    instance: &ConnectorInstance,
    config: &Config,
) -> Result<Option<AccessToken>> {
    // A config that no longer fits its entry is told of where it is used.
    let renewal = match needs_nobody(instance, config).unwrap_or_default() {
        true => tokens::Renewal::ByClient,
        false => tokens::Renewal::ByRefreshToken,
    };
    tokens::access_token(app, db, &instance.id, renewal).await
}

/// Returns whether the first token request of such a client has been answered, with tokens or with
/// an error.
pub async fn is_decided(db: &mut Db, id: &InstanceId) -> Result<bool> {
    let row = oauth_token::get(db, id).await?;
    Ok(row.is_none_or(|row| row.tokens.is_some() || row.failures > 0 || !row.refused.is_empty()))
}

/// The fields of a config that make the client. A token is the one's that asked for it.
const CLIENT_FIELDS: [&str; 7] = [
    "client_id",
    "client_secret",
    "token_url",
    "scopes",
    "grant_type",
    "client_authentication",
    "token_params",
];

/// Returns what to say of a change of the config that makes another client for tokens of a person's
/// consent: nothing has shown yet whether the provider takes it.
pub fn untried(
    instance: &ConnectorInstance,
    former: &Config,
    config: &Config,
    held: &TokenStatus,
) -> Option<String> {
    let by_consent = kanat_catalog::entry(&instance.catalog_id)
        .is_some_and(|entry| entry.authentication == "oauth2")
        && !needs_nobody(instance, config).unwrap_or_default();
    (by_consent && held.status == "connected" && !is_same_client(former, config)).then(|| {
        "its provider is asked with the changed client at the next refresh of the token: connect \
         it again to try it now"
            .to_owned()
    })
}

fn is_same_client(former: &Config, config: &Config) -> bool {
    CLIENT_FIELDS
        .iter()
        .all(|field| former.get(*field) == config.get(*field))
}

/// Returns what an instance's own client, which needs nobody's consent, is to ask for at once:
/// after the instance was made, or its config was changed. What another client was given is dropped
/// then.
pub async fn config_changed(
    db: &mut Db,
    instance: &ConnectorInstance,
    former: Option<&Config>,
    config: &Config,
) -> Result<()> {
    let Some(entry) =
        kanat_catalog::entry(&instance.catalog_id).filter(|entry| entry.authentication == "oauth2")
    else {
        return Ok(());
    };
    let now = Timestamp::now();
    let held = oauth_token::get(db, &instance.id).await?;
    let same_client = former.is_some_and(|former| is_same_client(former, config));
    if client(entry, config)?.grant() == Grant::ClientCredentials {
        let row = OauthToken {
            instance_id: instance.id.clone(),
            environment_id: instance.environment_id.clone(),
            tokens: held
                .as_ref()
                .filter(|_| same_client)
                .and_then(|held| held.tokens.clone()),
            expires_at: held
                .filter(|_| same_client)
                .and_then(|held| held.expires_at),
            refresh_at: Some(now),
            failures: 0,
            refused: String::new(),
        };
        oauth_token::put(db, &row, now).await?;
    } else if let Some(held) = held.filter(|held| !held.refused.is_empty() && held.tokens.is_some())
    {
        // With another secret the provider may be of another mind.
        let row = OauthToken {
            refresh_at: Some(now),
            failures: 0,
            refused: String::new(),
            ..held
        };
        oauth_token::put(db, &row, now).await?;
    }
    Ok(())
}

/// Forgets what an instance held that was deleted, or whose calls go to another origin from now on.
pub async fn forget(db: &mut Db, instance: &ConnectorInstance) -> Result<()> {
    oauth_start::delete_of(db, &instance.id).await?;
    Ok(oauth_token::delete(db, &instance.id).await?)
}

/// Takes the one use of a state.
async fn take(app: &App, caller: Option<&Caller>, state: &str) -> Result<OauthStart> {
    let unknown = || {
        Error::field(
            "state",
            "is not known, was used already or has expired: start again",
        )
    };
    if !is_ours(app, state) {
        return Err(unknown());
    }
    let mut tx: Tx = app.store.begin().await?;
    let start = oauth_start::take(&mut tx, &hash(state), Timestamp::now())
        .await?
        .ok_or_else(unknown)?;
    if caller.is_some_and(|caller| caller.account_id != start.account_id) {
        // Dropped: it stays for its owner.
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(start)
}

async fn named(call: &Call, db: &mut Db, name: &str) -> Result<ConnectorInstance> {
    let names = connector_instance::names(db, &call.caller.environment_id).await?;
    let Some(found) = names.into_iter().find(|known| known.name == name) else {
        let message = format!(
            "the environment has no connector instance named {name:?}: create it first, with \
             client_id and client_secret"
        );
        return Err(Error::field("instanceName", message));
    };
    call.existing(db, &found.id).await
}

fn client(entry: &Entry, config: &Config) -> Result<Client> {
    let client = entry
        .oauth2(config)
        .unwrap_or_else(|| Err(format!("{} is not connected by OAuth2", entry.id)));
    client.map_err(Error::precondition)
}

/// Returns the address at which this service takes people back: the API's, or that of the webhooks
/// while the former is not known.
fn own_callback(app: &App) -> String {
    let url = if app.api_url.base().is_empty() {
        &app.public_url
    } else {
        &app.api_url
    };
    url.oauth_callback()
}

fn check_redirect(text: &str) -> Result<()> {
    let url = Url::parse(text)
        .map_err(|error| Error::field("redirectUri", format!("is not an absolute URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https")
        || url.fragment().is_some()
        || text.len() > MAX_PARAMETER
    {
        return Err(Error::field(
            "redirectUri",
            "must be an http or https address without a fragment",
        ));
    }
    Ok(())
}

/// A state that can be told from others' without a look at the store.
fn signed(app: &App, random: &str) -> String {
    let seal = app.sealer.seal(random.as_bytes(), STATE_CONTEXT);
    URL_SAFE_NO_PAD.encode(seal)
}

fn is_ours(app: &App, state: &str) -> bool {
    state.len() <= MAX_PARAMETER
        && URL_SAFE_NO_PAD
            .decode(state)
            .is_ok_and(|seal| app.sealer.open(&seal, STATE_CONTEXT).is_ok())
}

const STATE_CONTEXT: &str = "oauth state";

/// The context under which a verifier at rest is sealed.
pub fn verifier_context(state_sha256: &[u8]) -> String {
    format!("oauth verifier/{}", URL_SAFE_NO_PAD.encode(state_sha256))
}

fn hash(state: &str) -> [u8; 32] {
    Sha256::digest(state.as_bytes()).into()
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
