//! The first start: an account, its environments, and one owner key.

use kanat_auth::{Role, key};
use kanat_model::id::{AccountId, ApiKeyId, EnvironmentId};
use kanat_model::{Secret, Timestamp};
use kanat_store::account::{self, Account};
use kanat_store::api_key::{self, ApiKey};
use kanat_store::environment::{self, Environment};
use kanat_store::{Db, Store, meta};

use crate::Error;

/// The first one is the default: what names no environment must not reach production.
const ENVIRONMENTS: [&str; 3] = ["development", "staging", "production"];

/// Makes what a fresh store lacks. Gives the owner's key when this was the first start and the key was made here;
/// `chosen` is the one that the operator set, which counts at the first start only.
pub async fn run(store: &Store, chosen: Option<&Secret<String>>) -> Result<Option<Secret<String>>, Error> {
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    if account::first(&mut tx).await?.is_some() {
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

async fn make(db: &mut Db, owner: &key::NewKey) -> Result<(), kanat_store::Error> {
    let now = Timestamp::now();
    let account = Account { id: AccountId::generate(), name: "default".to_owned(), created_at: now };
    account::insert(db, &account).await?;
    for (n, name) in ENVIRONMENTS.into_iter().enumerate() {
        let environment = Environment {
            id: EnvironmentId::generate(),
            account_id: account.id.clone(),
            name: name.to_owned(),
            is_default: n == 0,
            generation: 0,
            base_url: None,
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        environment::insert(db, &environment).await?;
    }
    let key = ApiKey {
        id: ApiKeyId::generate(),
        account_id: account.id,
        name: "owner".to_owned(),
        role: Role::Owner.as_str().to_owned(),
        environment_id: None,
        sha256: owner.sha256,
        prefix: owner.prefix.clone(),
        created_at: now,
        expires_at: None,
        last_used_at: None,
    };
    api_key::insert(db, &key).await
}
