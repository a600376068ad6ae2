//! The audit log: each use-case that changes something writes an entry in the transaction of the
//! change, by [`created`], [`updated`], [`deleted`] or [`done`]. Work on the message log writes it
//! before the work. Entries are chained soon after (`audit/chain.rs`), so that a change of the log
//! itself is found (`audit/verify.rs`).

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

/// Origin of a call: what its entry tells beside the caller and the change.
#[derive(Debug, Clone)]
pub struct Origin {
    pub action: Action,
    pub via: Via,
    pub request_id: Option<String>,
    pub address: Option<IpAddr>,
    /// True when a success of the call must have an entry.
    pub is_audited: bool,
    has_entry: Arc<AtomicBool>,
}

impl Origin {
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

impl Default for Origin {
    fn default() -> Self {
        Self::new(Action::new("call", "run"), Via::Api)
    }
}

/// Check that a success has its entry.
#[derive(Debug)]
pub struct AuditedCall {
    origin: Origin,
    /// The repeat of a call whose first answer was lost has no entry of its own.
    may_be_repeat: bool,
}

impl AuditedCall {
    pub fn of(call: &Call) -> Self {
        Self {
            origin: call.origin.clone(),
            may_be_repeat: call.caller.call.is_some(),
        }
    }

    /// Reports a success without an entry, which is a fault of its use-case.
    pub fn check<T, E>(&self, answer: &Result<T, E>) {
        let Origin {
            action,
            is_audited,
            has_entry,
            ..
        } = &self.origin;
        let is_missing = *is_audited && !has_entry.load(Ordering::Relaxed);
        let is_fault = is_missing && answer.is_ok() && !self.may_be_repeat;
        debug_assert!(!is_fault, "{action} has no entry in the audit log");
        if is_fault {
            tracing::error!(%action, "a call has no entry in the audit log");
        }
    }
}

impl Caller {
    /// Returns the caller as records of what it did tell it.
    pub fn principal(&self) -> Principal {
        Principal {
            kind: match self.credential {
                Credential::Key(_) => PrincipalType::ApiKey,
                Credential::Member(_) | Credential::Person(_) => PrincipalType::User,
            },
            id: self.credential.id().to_owned(),
            name: self.name.clone(),
            email: self.email.clone(),
            role: self.role.to_string(),
        }
    }
}

/// Thing that an entry is about.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    pub id: Option<String>,
    pub name: Option<String>,
    pub environment_id: Option<EnvironmentId>,
}

impl Subject {
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
    fn subject(&self) -> Subject;

    /// Returns the resource as a read gives it, without computed fields, and with its secrets
    /// masked.
    fn state(&self, app: &App) -> Result<Value>;
}

/// Writes the entry of a resource that the call makes.
pub async fn created(call: &Call, db: &mut Db, made: &impl Audited) -> Result<()> {
    let after = made.state(&call.app)?;
    done(call, db, made.subject(), None, Some(after)).await
}

/// Writes the entry of a resource that the call changes.
pub async fn updated<T: Audited>(call: &Call, db: &mut Db, before: &T, after: &T) -> Result<()> {
    let before = before.state(&call.app)?;
    let state = after.state(&call.app)?;
    done(call, db, after.subject(), Some(before), Some(state)).await
}

/// Writes the entry of a resource that the call deletes.
pub async fn deleted(call: &Call, db: &mut Db, found: &impl Audited) -> Result<()> {
    let before = found.state(&call.app)?;
    done(call, db, found.subject(), Some(before), None).await
}

/// Writes the entry of a call.
pub async fn done(
    call: &Call,
    db: &mut Db,
    subject: Subject,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<()> {
    write(db, &entry(call, subject, before, after)).await
}

/// Writes the entry of work on the message log, in a transaction of its own, before the work.
pub async fn begun(call: &Call, subject: Subject, after: Option<Value>) -> Result<()> {
    let mut tx = call.write().await?;
    done(call, &mut tx, subject, None, after).await?;
    Ok(tx.commit().await?)
}

/// Writes an entry that was made before.
pub async fn write(db: &mut Db, entry: &Entry) -> Result<()> {
    Ok(audit::insert(db, entry).await?)
}

/// Makes the entry of a call. It is written in the transaction of the change.
pub fn entry(call: &Call, subject: Subject, before: Option<Value>, after: Option<Value>) -> Entry {
    call.origin.has_entry.store(true, Ordering::Relaxed);
    Entry {
        before: before.map(|state| state.to_string()),
        after: after.map(|state| state.to_string()),
        ..of_caller(&call.caller, &call.origin, subject, Status::Done)
    }
}

fn of_caller(caller: &Caller, origin: &Origin, subject: Subject, status: Status) -> Entry {
    let actor = caller.principal();
    of(&caller.account_id, actor, origin, subject, status)
}

/// Makes an entry of one call, without what was before and after.
fn of(
    account: &AccountId,
    actor: Principal,
    origin: &Origin,
    subject: Subject,
    status: Status,
) -> Entry {
    Entry {
        id: AuditEntryId::generate(),
        account_id: account.clone(),
        at: Timestamp::now(),
        action: origin.action.to_string(),
        entity_type: origin.action.entity_type.clone(),
        entity_id: subject.id,
        entity_name: subject.name,
        environment_id: subject.environment_id,
        actor,
        via: origin.via,
        status,
        before: None,
        after: None,
        request_id: origin.request_id.clone(),
        address: origin.address.map(|address| address.to_string()),
        calls: 1,
    }
}

/// Writes the entry of an act of the service itself that makes or does something.
pub async fn by_system(
    db: &mut Db,
    account: &AccountId,
    action: Action,
    subject: Subject,
    after: Option<Value>,
) -> Result<(), StoreError> {
    changed_by_system(db, account, action, subject, None, after).await
}

/// Writes the entry of an act of the service itself.
pub async fn changed_by_system(
    db: &mut Db,
    account: &AccountId,
    action: Action,
    subject: Subject,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<(), StoreError> {
    let origin = Origin::new(action, Via::System);
    let actor = Principal::system();
    let entry = Entry {
        before: before.map(|state| state.to_string()),
        after: after.map(|state| state.to_string()),
        ..of(account, actor, &origin, subject, Status::Done)
    };
    debug_assert!(
        action::known().any(|known| known == entry.action),
        "{} is no action that the log can be asked for",
        entry.action
    );
    audit::insert(db, &entry).await
}
