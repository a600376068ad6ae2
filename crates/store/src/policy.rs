//! Governance policies of an account.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, PolicyId};
use kanat_model::policy::Severity;

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::{lists, statements};
use crate::{Db, Error, Result};

record! {
    pub struct Policy in "policy" {
        pub id: PolicyId,
        pub account_id: AccountId,
        /// Unique in the account.
        pub name: String,
        pub description: String,
        pub severity: Severity,
        pub expression: String,
        pub message: String,
        /// Environments that the policy holds for; none means all.
        pub environment_ids: Vec<EnvironmentId>,
        pub enabled: bool,
        /// Grows with every change of the row.
        pub revision: u64,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// Errors when the account has a policy of that name.
pub async fn insert(db: &mut Db, policy: &Policy) -> Result<()> {
    db.insert(policy)
        .await
        .map_err(Error::taken("policy", &policy.name))
}

statements! {
    fn get(account: &AccountId, id: &PolicyId) -> Option<Policy> =
        "SELECT {COLUMNS} FROM policy WHERE account_id = $1 AND id = $2";

    fn delete(account: &AccountId, id: &PolicyId) =
        "DELETE FROM policy WHERE account_id = $1 AND id = $2";
}

lists! {
    /// The account's policies, newest first; `search` is looked for in name and description.
    fn list(account: &AccountId; search) -> Policy =
        "FROM policy WHERE account_id = $1 AND ($2 = '' OR name GLOB $2 OR description GLOB $2)",
        "ORDER BY id DESC LIMIT $3 OFFSET $4";
}

const UPDATE: &str = sql!(
    Policy,
    "UPDATE policy SET name = {name}, description = {description}, severity = {severity}, \
     expression = {expression}, message = {message}, environment_ids = {environment_ids}, enabled \
     = {enabled}, updated_at = {updated_at}, revision = revision + 1 WHERE account_id = \
     {account_id} AND id = {id} AND revision = {revision}"
);

/// Writes a policy as its next revision. Errors when the row is no longer at `policy.revision`, and
/// when another policy has the name.
pub async fn update(db: &mut Db, policy: &mut Policy) -> Result<()> {
    let done = db
        .execute(UPDATE, &policy.values())
        .await
        .map_err(Error::taken("policy", &policy.name))?;
    Error::check_changed(done, "policy", &policy.id)?;
    policy.revision += 1;
    Ok(())
}
