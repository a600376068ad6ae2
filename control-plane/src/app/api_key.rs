//! Use-cases of API keys.

use kanat_auth::{Role, key};
use kanat_model::id::{ApiKeyId, EnvironmentId};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, Result, Secret, Timestamp};
use kanat_store::api_key::{self, ApiKey};
use kanat_store::{account, environment};

use crate::app::faults::both;
use crate::app::{Call, Caller, Credential, audit, beyond_binding, member, name};

/// A key to be made.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    pub name: String,
    /// `editor` when left out.
    pub role: Option<String>,
    /// Id or name of the environment to bind it to.
    pub environment: Option<String>,
    /// ISO 8601; when left out, the caller's key says how long it lasts.
    pub expires_at: Option<String>,
}

/// Makes a key; its text is nowhere else. Without it where this very call made the key before a
/// crash.
pub async fn create(call: &Call, new: NewApiKey) -> Result<(ApiKey, Option<Secret<String>>)> {
    let now = Timestamp::now();
    let wanted = new.expires_at.as_deref();
    let wanted = wanted.map(|text| expiry(text, now)).transpose();
    let role = role(&call.caller, new.role.as_deref());
    let name = name::check("name", &new.name);
    let ((name, role), wanted) = both(both(name, role), wanted)?;
    // The token of a person ends soon, and says nothing of how long a key may last.
    let end = match call.caller.credential {
        Credential::Key(_) => call.caller.expires_at,
        Credential::Member(_) | Credential::Person(_) => None,
    };
    let expires_at = match (wanted, end) {
        (Some(wanted), Some(end)) if wanted > end => return Err(beyond_expiry(end)),
        (wanted, end) => wanted.or(end),
    };

    let mut tx = call.write().await?;
    if let Some(made) = call.caller.find_idempotent_result(&mut tx).await?
        && let Some(made) =
            api_key::get(&mut tx, &call.caller.account_id, &ApiKeyId::from(made)).await?
    {
        return Ok((made, None));
    }
    let environment_id = match (&new.environment, &call.caller.bound_to) {
        (Some(wanted), bound) => {
            let found = environment::find(&mut tx, &call.caller.account_id, wanted).await?;
            let found = found.ok_or_else(|| no_environment(wanted))?;
            if bound.as_ref().is_some_and(|bound| *bound != found.id) {
                return Err(beyond_binding());
            }
            Some(found.id)
        }
        (None, bound) => bound.clone(),
    };
    if let Some(id) = &environment_id
        && !environment::lock(&mut tx, id).await?
    {
        return Err(no_environment(id.as_str()));
    }
    let made = key::generate();
    let maker = call.caller.principal();
    let row = ApiKey {
        id: ApiKeyId::generate(),
        account_id: call.caller.account_id.clone(),
        name,
        role: role.as_str().to_owned(),
        environment_id,
        sha256: made.sha256,
        prefix: made.prefix,
        created_at: now,
        expires_at,
        last_used_at: None,
        created_by_type: Some(maker.kind),
        created_by_id: Some(maker.id),
        created_by_name: Some(maker.name),
    };
    api_key::insert(&mut tx, &row).await?;
    call.caller
        .record_idempotent_result(&mut tx, &row.id)
        .await?;
    audit::created(call, &mut tx, &row).await?;
    tx.commit().await?;
    Ok((row, Some(made.text)))
}

/// The account's keys, newest first; of them those of the environment that the key is bound to, if
/// it is.
pub async fn list(call: &Call, page: Page) -> Result<ListPage<ApiKey>> {
    let mut tx = call.read().await?;
    let bound_to = call.caller.bound_to.as_ref();
    let bound_to = bound_to.map_or("", EnvironmentId::as_str);
    Ok(api_key::list(&mut tx, &call.caller.account_id, bound_to, page).await?)
}

/// Revokes a key at once. The last owner's key of the whole account stays while no member is an
/// owner.
pub async fn delete(call: &Call, id: &ApiKeyId) -> Result<()> {
    let now = Timestamp::now();
    let mut tx = call.write().await?;
    account::lock(&mut tx, &call.caller.account_id).await?;
    if call.caller.repeats(&mut tx, id).await? {
        return Ok(());
    }
    let found = api_key::get(&mut tx, &call.caller.account_id, id).await?;
    let found = found.ok_or_else(|| Error::not_found("API key", id.as_str()))?;
    let role = Role::parse(&found.role).unwrap_or(Role::Owner);
    if !call.caller.role.may_grant(role) {
        return Err(Error::new(
            Code::PermissionDenied,
            format!(
                "a {} of role {} cannot revoke this one",
                call.caller.noun(),
                call.caller.role
            ),
        ));
    }
    if call.caller.bound_to.is_some() && call.caller.bound_to != found.environment_id {
        return Err(beyond_binding());
    }
    let opens_all = role == Role::Owner && found.environment_id.is_none();
    if opens_all && api_key::other_owners(&mut tx, &call.caller.account_id, id, now).await? == 0 {
        member::refuse_last_owner_key(&mut tx, &call.caller.account_id).await?;
    }
    api_key::delete(&mut tx, &call.caller.account_id, id, now).await?;
    audit::deleted(call, &mut tx, &found).await?;
    Ok(tx.commit().await?)
}

fn no_environment(wanted: &str) -> Error {
    Error::field(
        "environmentId",
        format!("there is no environment {wanted:?}"),
    )
}

fn role(caller: &Caller, text: Option<&str>) -> Result<Role> {
    let text = text.unwrap_or(Role::Editor.as_str());
    let role = Role::parse(text).ok_or_else(|| {
        Error::field(
            "role",
            format!("{text:?} is no role: owner, admin, editor or viewer"),
        )
    })?;
    if !caller.role.may_grant(role) {
        let message = format!(
            "a {} of role {} cannot make a key of role {role}",
            caller.noun(),
            caller.role
        );
        return Err(Error::new(Code::PermissionDenied, message));
    }
    Ok(role)
}

fn expiry(text: &str, now: Timestamp) -> Result<Timestamp> {
    let at = Timestamp::parse(text).ok_or_else(|| {
        Error::field(
            "expiresAt",
            format!("{text:?} is no ISO 8601 instant with an offset"),
        )
    })?;
    if at <= now {
        return Err(Error::field("expiresAt", "must lie in the future"));
    }
    Ok(at)
}

fn beyond_expiry(end: Timestamp) -> Error {
    Error::new(
        Code::PermissionDenied,
        format!("this key expires at {end} and cannot make one that lasts longer"),
    )
}
