//! The audit log: each use-case that changes something writes an entry in the transaction of the
//! change, by [`created`], [`updated`], [`deleted`] or [`record`]. Work on the message log writes
//! it before the work. Entries are chained soon after (`audit/chain.rs`), so that a change of the
//! log itself is found (`audit/verify.rs`).

pub mod action;
pub mod chain;
pub mod denied;
mod list;
mod state;
#[cfg(test)]
mod tests;
mod verify;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_model::audit::{Principal, PrincipalType, Status, Via};
use kanat_model::id::{AccountId, AuditEntryId, EnvironmentId};
use kanat_model::{Result, Timestamp};
use kanat_store::audit::{self, Entry};
use kanat_store::{Db, Error as StoreError};
use serde_json::Value;

use crate::app::{App, Call, Caller, Credential};
pub use action::Action;
pub use denied::Denials;
pub use list::{EntryPage, Query, list};
pub use state::{KeyOfApi, VersionOfApi, WholeApi, value};
pub use verify::{Verification, verify};

/// Parts of the audit entry of a call beside the caller and the change.
#[derive(Debug, Clone)]
pub struct AuditContext {
    pub action: Action,
    pub via: Via,
    pub request_id: Option<String>,
    pub address: Option<IpAddr>,
    /// True when a success of the call must have an entry.
    pub is_audited: bool,
    has_entry: Arc<AtomicBool>,
}

impl AuditContext {
    pub fn new(action: Action, via: Via) -> Self {
        Self {
            action,
            via,
            request_id: None,
            address: None,
            is_audited: false,
            has_entry: Arc::default(),
        }
    }
}

impl Default for AuditContext {
    fn default() -> Self {
        Self::new(Action::new("call", "run"), Via::Api)
    }
}

/// Check that a successful call has built its entry. It does not see whether the entry was written.
#[derive(Debug)]
pub struct AuditedCall {
    context: AuditContext,
    /// The repeat of a call whose first answer was lost has no entry of its own.
    may_be_repeat: bool,
}

impl AuditedCall {
    pub fn of(call: &Call) -> Self {
        Self {
            context: call.audit_context.clone(),
            may_be_repeat: call.caller.idempotency_id.is_some(),
        }
    }

    /// Reports a success whose use-case has built no entry, which is a fault of the use-case.
    pub fn check<T, E>(&self, answer: &Result<T, E>) {
        let AuditContext {
            action,
            is_audited,
            has_entry,
            ..
        } = &self.context;
        let is_missing = *is_audited && !has_entry.load(Ordering::Relaxed);
        let is_fault = is_missing && answer.is_ok() && !self.may_be_repeat;
        debug_assert!(!is_fault, "{action} has no entry in the audit log");
        if is_fault {
            tracing::error!(%action, "a call has no entry in the audit log");
        }
    }
}

impl Caller {
    /// Returns the caller as audit entries show it. A person who is no member has no role.
    pub fn principal(&self) -> Principal {
        Principal {
            kind: match self.credential {
                Credential::Key(_) => PrincipalType::ApiKey,
                Credential::Member(_) | Credential::Person(_) => PrincipalType::User,
            },
            id: self.credential.id().to_owned(),
            name: self.name.clone(),
            email: self.email.clone(),
            role: match self.credential {
                Credential::Key(_) | Credential::Member(_) => self.role.to_string(),
                Credential::Person(_) => String::new(),
            },
        }
    }
}

/// Thing that an entry is about.
#[derive(Debug, Clone, Default)]
pub struct Entity {
    pub id: Option<String>,
    pub name: Option<String>,
    pub environment_id: Option<EnvironmentId>,
}

impl Entity {
    /// Returns a thing of an environment.
    pub fn of(environment: &EnvironmentId, id: impl ToString) -> Self {
        Self {
            id: Some(id.to_string()),
            name: None,
            environment_id: Some(environment.clone()),
        }
    }

    pub fn named(mut self, name: impl ToString) -> Self {
        self.name = Some(name.to_string());
        self
    }
}

/// Resource whose changes have entries.
pub trait Audited: Sync {
    fn entity(&self) -> Entity;

    /// Returns the resource as a read gives it, without computed fields, and with its secrets
    /// masked.
    fn state(&self, app: &App) -> Result<Value>;
}

/// Writes the entry of a resource that the call makes.
pub async fn created(call: &Call, db: &mut Db, made: &impl Audited) -> Result<()> {
    let after = made.state(&call.app)?;
    record(call, db, made.entity(), None, Some(after)).await
}

/// Writes the entry of a resource that the call changes.
pub async fn updated<T: Audited>(call: &Call, db: &mut Db, before: &T, after: &T) -> Result<()> {
    let before = before.state(&call.app)?;
    let state = after.state(&call.app)?;
    record(call, db, after.entity(), Some(before), Some(state)).await
}

/// Writes the entry of a resource that the call deletes.
pub async fn deleted(call: &Call, db: &mut Db, found: &impl Audited) -> Result<()> {
    let before = found.state(&call.app)?;
    record(call, db, found.entity(), Some(before), None).await
}

/// Writes the entry of a call, in the transaction of its change.
pub async fn record(
    call: &Call,
    db: &mut Db,
    entity: Entity,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<()> {
    write(db, &entry(call, entity, before, after)).await
}

/// Writes the entry of work on the message log, in a transaction of its own, before the work.
pub async fn record_before_work(call: &Call, entity: Entity, after: Option<Value>) -> Result<()> {
    let mut tx = call.write().await?;
    record(call, &mut tx, entity, None, after).await?;
    Ok(tx.commit().await?)
}

/// Writes an entry that was made before.
pub async fn write(db: &mut Db, entry: &Entry) -> Result<()> {
    Ok(audit::insert(db, entry).await?)
}

/// Makes the entry of a call. It is written in the transaction of the change.
pub fn entry(call: &Call, entity: Entity, before: Option<Value>, after: Option<Value>) -> Entry {
    call.audit_context.has_entry.store(true, Ordering::Relaxed);
    Entry {
        before: before.map(|state| state.to_string()),
        after: after.map(|state| state.to_string()),
        ..of_caller(&call.caller, &call.audit_context, entity, Status::Done)
    }
}

fn of_caller(caller: &Caller, context: &AuditContext, entity: Entity, status: Status) -> Entry {
    let actor = caller.principal();
    of(&caller.account_id, actor, context, entity, status)
}

/// Makes an entry of one call, without what was before and after.
fn of(
    account: &AccountId,
    actor: Principal,
    context: &AuditContext,
    entity: Entity,
    status: Status,
) -> Entry {
    Entry {
        id: AuditEntryId::generate(),
        account_id: account.clone(),
        at: Timestamp::now(),
        action: context.action.to_string(),
        entity_type: context.action.entity_type.clone(),
        entity_id: entity.id,
        entity_name: entity.name,
        environment_id: entity.environment_id,
        actor,
        via: context.via,
        status,
        before: None,
        after: None,
        request_id: context.request_id.clone(),
        address: context.address.map(|address| address.to_string()),
        calls: 1,
    }
}

/// Writes the entry of an act of the service itself that makes or does something.
pub async fn by_system(
    db: &mut Db,
    account: &AccountId,
    action: Action,
    entity: Entity,
    after: Option<Value>,
) -> Result<(), StoreError> {
    changed_by_system(db, account, action, entity, None, after).await
}

/// Writes the entry of an act of the service itself.
pub async fn changed_by_system(
    db: &mut Db,
    account: &AccountId,
    action: Action,
    entity: Entity,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<(), StoreError> {
    let context = AuditContext::new(action, Via::System);
    let actor = Principal::system();
    let entry = Entry {
        before: before.map(|state| state.to_string()),
        after: after.map(|state| state.to_string()),
        ..of(account, actor, &context, entity, Status::Done)
    };
    debug_assert!(
        action::known().any(|known| known == entry.action),
        "{} is no action that the log can be asked for",
        entry.action
    );
    audit::insert(db, &entry).await
}
