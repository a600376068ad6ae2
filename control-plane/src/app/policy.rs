//! Use-cases of governance policies. A policy is kept as it is written: nothing evaluates its
//! expression.

use std::collections::BTreeMap;

use kanat_model::id::{EnvironmentId, PolicyId};
use kanat_model::page::{ListPage, Page};
use kanat_model::policy::Severity;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::policy::{self, Policy};
use kanat_store::{Db, environment};

use crate::app::{Call, Caller, audit, name, resource};

resource!(
    "policy",
    PolicyId,
    Policy,
    policy::get,
    account_id,
    revision
);

/// Bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 4 << 10;

/// Fields that a call gives; what is left out gets its default in a new policy, and stays in one
/// that is changed.
#[derive(Debug, Default)]
pub struct Fields {
    pub name: Option<String>,
    pub description: Option<String>,
    pub severity: Option<String>,
    pub expression: Option<String>,
    pub message: Option<String>,
    pub environment_ids: Option<Vec<EnvironmentId>>,
    pub enabled: Option<bool>,
}

/// Makes a policy.
pub async fn create(call: &Call, fields: Fields) -> Result<Policy> {
    call.caller.refuse_if_bound()?;
    let now = Timestamp::now();
    let mut made = Policy {
        id: PolicyId::generate(),
        account_id: call.caller.account_id.clone(),
        name: String::new(),
        description: String::new(),
        severity: Severity::Deny,
        expression: String::new(),
        message: String::new(),
        environment_ids: Vec::new(),
        enabled: true,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let mut tx = call.write().await?;
    if let Some(made) = call.made::<PolicyId>(&mut tx).await? {
        return Ok(made);
    }
    set(&mut tx, &call.caller, &mut made, fields).await?;
    policy::insert(&mut tx, &made).await?;
    call.caller
        .record_idempotent_result(&mut tx, &made.id)
        .await?;
    audit::created(call, &mut tx, &made).await?;
    tx.commit().await?;
    Ok(made)
}

/// The account's policies, newest first.
pub async fn list(call: &Call, search: &str, page: Page) -> Result<ListPage<Policy>> {
    let mut tx = call.read().await?;
    Ok(policy::list(&mut tx, &call.caller.account_id, search, page).await?)
}

/// Changes the fields that are given.
pub async fn update(call: &Call, id: &PolicyId, fields: Fields) -> Result<Policy> {
    call.caller.refuse_if_bound()?;
    let mut tx = call.write().await?;
    let (before, is_repeat) = call.load_for_change(&mut tx, id).await?;
    if is_repeat {
        return Ok(before);
    }
    let mut after = before.clone();
    set(&mut tx, &call.caller, &mut after, fields).await?;
    if after != before {
        after.updated_at = Timestamp::now();
        policy::update(&mut tx, &mut after).await?;
    }
    audit::updated(call, &mut tx, &before, &after).await?;
    tx.commit().await?;
    Ok(after)
}

/// Deletes a policy.
pub async fn delete(call: &Call, id: &PolicyId) -> Result<()> {
    call.caller.refuse_if_bound()?;
    let mut tx = call.write().await?;
    let Some(found) = call.load_for_change_unless_repeated(&mut tx, id).await? else {
        return Ok(());
    };
    policy::delete(&mut tx, &call.caller.account_id, id).await?;
    audit::deleted(call, &mut tx, &found).await?;
    Ok(tx.commit().await?)
}

fn no_environment(n: usize, id: &EnvironmentId) -> Error {
    let message = format!("there is no environment of the id {:?}", id.as_str());
    Error::field(format!("environmentIds[{n}]"), message)
}

/// Checks the fields that are given, and sets them.
async fn set(db: &mut Db, caller: &Caller, policy: &mut Policy, fields: Fields) -> Result<()> {
    if let Some(name) = fields.name {
        policy.name = name::check("name", &name)?;
    }
    if let Some(description) = fields.description {
        policy.description = name::check_text("description", description)?;
    }
    if let Some(severity) = fields.severity {
        policy.severity = check_severity(&severity)?;
    }
    if let Some(expression) = fields.expression {
        policy.expression = name::check_code("expression", expression, MAX_EXPRESSION_BYTES)?;
    }
    if let Some(message) = fields.message {
        policy.message = name::check_text("message", message)?;
    }
    if let Some(ids) = fields.environment_ids {
        for (n, id) in ids.iter().enumerate() {
            let found = environment::find(db, &caller.account_id, id.as_str()).await?;
            if found.is_none_or(|found| found.id != *id) {
                return Err(no_environment(n, id));
            }
        }
        // In one order, so that two changes do not wait for each other.
        let numbered: BTreeMap<_, _> = ids.iter().zip(0..).collect();
        for (id, n) in numbered {
            if !environment::lock(db, id).await? {
                return Err(no_environment(n, id));
            }
        }
        policy.environment_ids = ids;
    }
    if let Some(enabled) = fields.enabled {
        policy.enabled = enabled;
    }
    Ok(())
}

fn check_severity(text: &str) -> Result<Severity> {
    Severity::parse(text)
        .ok_or_else(|| Error::field("severity", format!("{text:?} is no severity: deny or warn")))
}
