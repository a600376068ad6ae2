//! Governance policies of an account.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, PolicyId};
use kanat_model::page::{ListPage, Page};
use kanat_model::policy::Severity;
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
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

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, name, description, severity, expression, message, \
                       environment_ids, enabled, revision, created_at, updated_at";

fn read(row: &AnyRow) -> Result<Policy, Error> {
    let severity = row.text("severity")?;
    let environment_ids = row.text("environment_ids")?;
    Ok(Policy {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        name: row.text("name")?,
        description: row.text("description")?,
        severity: Severity::parse(&severity).ok_or(Error::Corrupt {
            column: "severity",
            value: severity,
        })?,
        expression: row.text("expression")?,
        message: row.text("message")?,
        environment_ids: environment_ids
            .split(',')
            .filter(|id| !id.is_empty())
            .map(EnvironmentId::from)
            .collect(),
        enabled: row.flag("enabled")?,
        revision: row.whole("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

fn joined(ids: &[EnvironmentId]) -> String {
    let ids: Vec<_> = ids.iter().map(EnvironmentId::as_str).collect();
    ids.join(",")
}

const INSERT: &str = sql!(
    "INSERT INTO policy ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
);

/// Errors when the account has a policy of that name.
pub async fn insert(db: &mut Db, policy: &Policy) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(policy.id.as_str())
        .bind(policy.account_id.as_str())
        .bind(policy.name.as_str())
        .bind(policy.description.as_str())
        .bind(policy.severity.as_str())
        .bind(policy.expression.as_str())
        .bind(policy.message.as_str())
        .bind(joined(&policy.environment_ids))
        .bind(i64::from(policy.enabled))
        .bind(policy.revision.cast_signed())
        .bind(policy.created_at.as_millis())
        .bind(policy.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "policy", &policy.name))?;
    Ok(())
}

const GET: &str = sql!("SELECT {COLUMNS} FROM policy WHERE account_id = $1 AND id = $2");

pub async fn get(db: &mut Db, account: &AccountId, id: &PolicyId) -> Result<Option<Policy>, Error> {
    let row = sqlx::query(GET)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM policy WHERE account_id = $1 AND ($2 = '' OR \
                     name GLOB $2 OR description GLOB $2)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM policy WHERE account_id = $1 AND ($2 = '' OR name GLOB $2 OR \
     description GLOB $2) ORDER BY id DESC LIMIT $3 OFFSET $4"
);

/// The account's policies, newest first; `search` is looked for in name and description.
pub async fn list(
    db: &mut Db,
    account: &AccountId,
    search: &str,
    page: Page,
) -> Result<ListPage<Policy>, Error> {
    let pattern = search::pattern(db, search)?;
    let total = sqlx::query(search::statement(db, COUNT))
        .bind(account.as_str())
        .bind(pattern.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(search::statement(db, LIST))
        .bind(account.as_str())
        .bind(pattern.as_str())
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    Ok(ListPage {
        items: rows.iter().map(read).collect::<Result<_, _>>()?,
        total,
        page,
    })
}

const UPDATE: &str = "UPDATE policy SET name = $4, description = $5, severity = $6, expression = \
                      $7, message = $8, environment_ids = $9, enabled = $10, updated_at = $11, \
                      revision = revision + 1 WHERE account_id = $1 AND id = $2 AND revision = $3";

/// Writes a policy as its next revision. Errors when the row is no longer at `policy.revision`, and
/// when another policy has the name.
pub async fn update(db: &mut Db, policy: &mut Policy) -> Result<(), Error> {
    let done = sqlx::query(UPDATE)
        .bind(policy.account_id.as_str())
        .bind(policy.id.as_str())
        .bind(policy.revision.cast_signed())
        .bind(policy.name.as_str())
        .bind(policy.description.as_str())
        .bind(policy.severity.as_str())
        .bind(policy.expression.as_str())
        .bind(policy.message.as_str())
        .bind(joined(&policy.environment_ids))
        .bind(i64::from(policy.enabled))
        .bind(policy.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "policy", &policy.name))?;
    if done.rows_affected() == 0 {
        return Err(Error::Changed {
            kind: "policy",
            id: policy.id.as_str().to_owned(),
        });
    }
    policy.revision += 1;
    Ok(())
}

const DELETE: &str = "DELETE FROM policy WHERE account_id = $1 AND id = $2";

pub async fn delete(db: &mut Db, account: &AccountId, id: &PolicyId) -> Result<(), Error> {
    sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(db)
        .await?;
    Ok(())
}
