//! The first start: an account, its environments, and one owner key; and another owner key in the
//! place of one that was lost.

use kanat_auth::{Role, key};
use kanat_message_log::MessageLog;
use kanat_model::audit::Principal;
use kanat_model::id::{AccountId, ApiKeyId};
use kanat_model::{Secret, Timestamp};
use kanat_store::account::{self, Account};
use kanat_store::api_key::{self, ApiKey};
use kanat_store::environment::{self, Environment};
use kanat_store::{Db, Store, meta};
use serde_json::json;

use crate::Error;
use crate::app::audit::{self, Action, Entity};

/// The first one is the default: what names no environment must not reach production.
const ENVIRONMENTS: [&str; 3] = ["development", "staging", "production"];

/// Key under which the id of the first start's owner key is kept, or of the key that replaced it.
const OWNER_KEY: &str = "owner_key";
/// Name of the owner keys.
const OWNER_NAME: &str = "owner";

/// Errors when the store is a fresh one and the log is not: the configuration of its messages was
/// lost, and with another one nobody would see them.
pub async fn refuse_lost_configuration(store: &Store, log: &dyn MessageLog) -> Result<(), Error> {
    let is_fresh = account::first(&mut *store.read().await?).await?.is_none();
    if is_fresh && !log.is_empty().await? {
        return Err(Error::NoConfiguration);
    }
    Ok(())
}

/// Makes what a fresh store lacks. Gives the owner's key when this was the first start and the key
/// was made here; `chosen` is the one that the operator set, which counts at the first start only.
pub async fn run(
    store: &Store,
    chosen: Option<&Secret<String>>,
) -> Result<Option<Secret<String>>, Error> {
    // Most starts are not the first: these write nothing, and need no room on the disk.
    if is_made(&mut *store.read().await?, chosen).await? {
        return Ok(None);
    }
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    // Another process may have started meanwhile.
    if is_made(&mut tx, chosen).await? {
        return Ok(None);
    }
    let owner = match chosen {
        Some(text) => key::adopt(text.expose())?,
        None => key::generate(),
    };
    make(&mut tx, &owner).await?;
    tx.commit().await?;
    Ok(chosen.is_none().then_some(owner.text))
}

/// Returns whether there was a first start, and warns of a chosen key that came too late for it.
async fn is_made(db: &mut Db, chosen: Option<&Secret<String>>) -> Result<bool, Error> {
    if account::first(db).await?.is_none() {
        return Ok(false);
    }
    if let Some(text) = chosen
        && api_key::by_hash(db, &key::sha256(text.expose()))
            .await?
            .is_none()
    {
        tracing::warn!(
            "the bootstrap API key is not used: there was a first start already, and none of the \
             API keys is this one; `kanat api-key reset` makes a new owner key",
        );
    }
    Ok(true)
}

async fn make(db: &mut Db, owner: &key::NewKey) -> Result<(), kanat_store::Error> {
    let now = Timestamp::now();
    let account = Account {
        id: AccountId::generate(),
        name: "default".to_owned(),
        created_at: now,
    };
    account::insert(db, &account).await?;
    for (n, name) in ENVIRONMENTS.into_iter().enumerate() {
        let mut environment = Environment::new(account.id.clone(), name.to_owned(), now);
        environment.is_default = n == 0;
        environment::insert(db, &environment).await?;
    }
    add_owner_key(db, &account.id, owner).await?;
    let after = json!({ "id": account.id, "name": account.name, "environments": ENVIRONMENTS });
    let entity = Entity {
        id: Some(account.id.to_string()),
        name: Some(account.name),
        environment_id: None,
    };
    let action = Action::new("account", "create");
    audit::by_system(db, &account.id, action, entity, Some(after)).await
}

/// Why no new owner key can be made.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] kanat_store::Error),
    /// The store is a fresh one.
    #[error("no service was started on it yet; the first start makes the owner key")]
    NoAccount,
}

/// An owner key that was made in the place of another.
#[derive(Debug)]
pub struct Reset {
    /// The new key, to be shown once.
    pub key: Secret<String>,
    /// The first characters of the key that was revoked; none when it was revoked before.
    pub revoked: Option<String>,
}

/// Makes a new owner key, and revokes the one of the first start or of the last reset. Other keys
/// stay as they are.
///
/// # Errors
/// A store that cannot be read or written, or one that has seen no first start.
pub async fn reset_owner_key(store: &Store) -> Result<Reset, ResetError> {
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    let account = account::first(&mut tx)
        .await?
        .ok_or(ResetError::NoAccount)?;
    let former = match meta::get(&mut tx, OWNER_KEY).await? {
        Some(id) => api_key::get(&mut tx, &account.id, &ApiKeyId::from(id)).await?,
        None => api_key::oldest_owner(&mut tx, &account.id, OWNER_NAME).await?,
    };
    if let Some(former) = &former {
        api_key::delete(&mut tx, &account.id, &former.id, Timestamp::now()).await?;
    }
    let made = key::generate();
    let id = add_owner_key(&mut tx, &account.id, &made).await?;
    let revoked = former.as_ref().map(|former| &former.id);
    let after = json!({ "id": id, "prefix": made.prefix, "revoked": revoked });
    let entity = Entity {
        id: Some(id.to_string()),
        name: Some(OWNER_NAME.to_owned()),
        environment_id: None,
    };
    let action = Action::new("api_key", "reset");
    audit::by_system(&mut tx, &account.id, action, entity, Some(after)).await?;
    tx.commit().await?;
    Ok(Reset {
        key: made.text,
        revoked: former.map(|former| former.prefix),
    })
}

async fn add_owner_key(
    db: &mut Db,
    account_id: &AccountId,
    owner: &key::NewKey,
) -> Result<ApiKeyId, kanat_store::Error> {
    let system = Principal::system();
    let key = ApiKey {
        id: ApiKeyId::generate(),
        account_id: account_id.clone(),
        name: OWNER_NAME.to_owned(),
        role: Role::Owner.as_str().to_owned(),
        environment_id: None,
        sha256: owner.sha256,
        prefix: owner.prefix.clone(),
        created_at: Timestamp::now(),
        expires_at: None,
        last_used_at: None,
        created_by_type: Some(system.kind),
        created_by_id: Some(system.id),
        created_by_name: Some(system.name),
    };
    api_key::insert(db, &key).await?;
    meta::set(db, OWNER_KEY, key.id.as_str()).await?;
    Ok(key.id)
}
