//! Environments of an account, and the generation of what their nodes run. Deleted rows stay;
//! nothing reads them as environments.

use std::collections::BTreeMap;

use kanat_model::Timestamp;
use kanat_model::environment::Promoters;
use kanat_model::id::{AccountId, EnvironmentId};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::{lists, statements};
use crate::{Db, Error, Result};

record! {
    pub struct Environment in "environment" {
        pub id: EnvironmentId,
        pub account_id: AccountId,
        pub name: String,
        /// Requests that name no environment go to this one.
        pub is_default: bool,
        /// Grows with every change of what the environment's nodes run.
        pub generation: u64,
        /// Scheme, host and port under which consumers call; unique in the account.
        pub base_url: Option<String>,
        /// Editors do not change what it runs.
        pub is_protected: bool,
        pub promoters: Promoters,
        /// Texts by name that expressions read.
        pub variables: BTreeMap<String, String>,
        /// Days that ended messages are kept; `None` for those of the service.
        pub retention_days: Option<u32>,
        /// Grows with every change of the row.
        pub revision: u64,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Environment {
    /// Makes an environment of that account with the default settings, which is not its default
    /// one.
    pub fn new(account_id: AccountId, name: String, now: Timestamp) -> Self {
        Self {
            id: EnvironmentId::generate(),
            account_id,
            name,
            is_default: false,
            generation: 0,
            base_url: None,
            is_protected: false,
            promoters: Promoters::Editor,
            variables: BTreeMap::new(),
            retention_days: None,
            revision: 1,
            created_at: now,
            updated_at: now,
        }
    }
}

/// Errors when the account has an environment of that name. Whether another one has its base URL is
/// the caller's to see.
pub async fn insert(db: &mut Db, environment: &Environment) -> Result<()> {
    db.insert(environment)
        .await
        .map_err(Error::taken("environment", &environment.name))
}

statements! {
    /// The account's environment of that id or name.
    fn find(account: &AccountId, id_or_name: &str) -> Option<Environment> =
        "SELECT {COLUMNS} FROM environment WHERE account_id = $1 AND (id = $2 OR name = $2) AND \
         deleted_at IS NULL";

    /// The environment of requests that name none.
    fn default(account: &AccountId) -> Option<Environment> =
        "SELECT {COLUMNS} FROM environment WHERE account_id = $1 AND is_default = 1";

    /// The environments of all accounts, oldest first: what the control plane serves to nodes.
    fn all() -> Vec<Environment> =
        "SELECT {COLUMNS} FROM environment WHERE deleted_at IS NULL ORDER BY id";

    /// The variables of the environment.
    fn variables(environment: &EnvironmentId) -> Option<BTreeMap<String, String>> =
        "SELECT variables FROM environment WHERE id = $1";

    /// Makes other changes of the environment, and its end, wait for the end of this transaction.
    /// Returns whether there is the environment.
    fn lock(environment: &EnvironmentId) -> bool =
        "UPDATE environment SET generation = generation WHERE id = $1 AND deleted_at IS NULL";

    /// Numbers of what belongs to the environment or names it, by kind.
    fn contents(environment: &EnvironmentId) -> Vec<(String, u64)> =
        "SELECT 'flows' AS kind, COUNT(*) AS total FROM flow WHERE environment_id = $1 AND \
         deleted_at IS NULL UNION ALL SELECT 'connector instances' AS kind, COUNT(*) AS total FROM \
         connector_instance WHERE environment_id = $1 AND deleted_at IS NULL UNION ALL SELECT \
         'lookup tables' AS kind, COUNT(*) AS total FROM lookup_table WHERE environment_id = $1 \
         AND deleted_at IS NULL UNION ALL SELECT 'adapters' AS kind, COUNT(*) AS total FROM \
         adapter WHERE environment_id = $1 AND deleted_at IS NULL UNION ALL SELECT 'published \
         APIs' AS kind, COUNT(*) AS total FROM published_api WHERE environment_id = $1 AND \
         deleted_at IS NULL UNION ALL SELECT 'API keys' AS kind, COUNT(*) AS total FROM api_key \
         WHERE environment_id = $1 AND deleted_at IS NULL UNION ALL SELECT 'policies' AS kind, \
         COUNT(*) AS total FROM policy WHERE environment_ids LIKE '%' || $1 || '%'";

    /// Deletes an environment, and frees its name and its base URL.
    fn delete(environment: &EnvironmentId, at: Timestamp) =
        "UPDATE environment SET name = id, base_url = NULL, deleted_at = $2, revision = revision + \
         1 WHERE id = $1 AND deleted_at IS NULL";
}

lists! {
    /// The account's environments, oldest first; of them the one of this id, unless it is empty.
    fn list(account: &AccountId, id: &str) -> Environment =
        "FROM environment WHERE account_id = $1 AND deleted_at IS NULL AND ($2 = '' OR id = $2)",
        "ORDER BY id LIMIT $3 OFFSET $4";
}

const UPDATE: &str = sql!(
    Environment,
    "UPDATE environment SET name = {name}, base_url = {base_url}, is_protected = {is_protected}, \
     promoters = {promoters}, variables = {variables}, retention_days = {retention_days}, \
     revision = revision + 1, updated_at = {updated_at} WHERE id = {id} AND deleted_at IS NULL"
);

/// Writes what may change, as the next revision. Errors when another environment of the account
/// has the name.
pub async fn update(db: &mut Db, environment: &mut Environment) -> Result<()> {
    db.run(UPDATE, &environment.values())
        .await
        .map_err(Error::taken("environment", &environment.name))?;
    environment.revision += 1;
    Ok(())
}
