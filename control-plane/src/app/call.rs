//! A call of the management API, and the steps that use-cases of all resources have in common: find
//! the resource, know a repeat of the call, compare the revision.

use std::sync::Arc;

use kanat_model::{Error, Result};
use kanat_store::{Db, Tx};

use crate::app::audit::{AuditContext, AuditedCall};
use crate::app::{App, Caller, IfMatch, PublishTransaction};

/// A call: its caller, and what it says beside its message.
pub struct Call {
    pub app: Arc<App>,
    pub caller: Caller,
    pub if_match: IfMatch,
    /// Trace context of the caller: its `traceparent`, and behind a space its `tracestate`.
    pub trace_context: Option<String>,
    /// Parts of the audit entry of the call beside the caller and the change.
    pub audit_context: AuditContext,
}

/// An id by which calls name a resource.
pub trait ResourceId: AsRef<str> + From<String> + Sync {
    type Resource: Send;

    /// Name of the kind, for errors.
    const NOUN: &'static str;

    /// Returns the resource, if the caller's account or environment has it.
    fn find(
        &self,
        db: &mut Db,
        caller: &Caller,
    ) -> impl Future<Output = Result<Option<Self::Resource>, kanat_store::Error>> + Send;
}

/// A resource that says with each change which revision it is.
pub trait ResourceRevision {
    fn revision(&self) -> u64;
}

/// Implements [`ResourceId`] for an id, by the function of the store that reads its resource, and
/// the caller's field that the function is narrowed by. Implements [`ResourceRevision`] for the
/// resource, where the field of its revision is given.
macro_rules! resource {
    ($noun:literal, $id:ty, $row:ty, $get:path, $owner:ident $(, $revision:ident)?) => {
        impl $crate::app::call::ResourceId for $id {
            type Resource = $row;
            const NOUN: &'static str = $noun;

            async fn find(
                &self,
                db: &mut kanat_store::Db,
                caller: &$crate::app::Caller,
            ) -> Result<Option<$row>, kanat_store::Error> {
                $get(db, &caller.$owner, self).await
            }
        }

        $(impl $crate::app::call::ResourceRevision for $row {
            fn revision(&self) -> u64 {
                self.$revision.into()
            }
        })?
    };
}
pub(crate) use resource;

impl Call {
    /// Begins to read the store.
    pub async fn read(&self) -> Result<Tx> {
        Ok(self.app.store.read().await?)
    }

    /// Begins a transaction that nodes hear nothing of.
    pub async fn write(&self) -> Result<Tx> {
        Ok(self.app.store.begin().await?)
    }

    /// Begins a change of what the nodes of the caller's environment run.
    pub async fn change(&self) -> Result<PublishTransaction<'_>> {
        PublishTransaction::begin(&self.app, &self.caller.environment_id).await
    }

    /// Returns a check that a successful call has made its audit entry.
    pub fn audited(&self) -> AuditedCall {
        AuditedCall::of(self)
    }

    /// Returns the resource of this id, read within `db`.
    pub async fn existing<I: ResourceId>(&self, db: &mut Db, id: &I) -> Result<I::Resource> {
        let found = id.find(db, &self.caller).await?;
        found.ok_or_else(|| Error::not_found(I::NOUN, id.as_ref()))
    }

    /// Returns the resource of this id, read in a transaction of its own.
    pub async fn get<I: ResourceId>(&self, id: &I) -> Result<I::Resource> {
        self.existing(&mut *self.read().await?, id).await
    }

    /// Returns the resource that this call has made before a crash kept it from being answered.
    pub async fn made<I: ResourceId>(&self, db: &mut Db) -> Result<Option<I::Resource>> {
        match self.caller.find_idempotent_result(db).await? {
            Some(id) => self.existing(db, &I::from(id)).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the resource that this call changes, and whether this call has changed it before a
    /// crash kept it from being answered; otherwise it is at the revision that the caller means.
    pub async fn load_for_change<I: ResourceId<Resource: ResourceRevision>>(
        &self,
        db: &mut Db,
        id: &I,
    ) -> Result<(I::Resource, bool)> {
        let found = self.existing(db, id).await?;
        let is_repeat = self.caller.repeats(db, id).await?;
        if !is_repeat {
            self.if_match.check(found.revision())?;
        }
        Ok((found, is_repeat))
    }

    /// Returns the resource that this call changes, at the revision that the caller means; `None`
    /// where this call has changed it before a crash kept it from being answered.
    pub async fn load_for_change_unless_repeated<I: ResourceId<Resource: ResourceRevision>>(
        &self,
        db: &mut Db,
        id: &I,
    ) -> Result<Option<I::Resource>> {
        if self.caller.repeats(db, id).await? {
            return Ok(None);
        }
        let found = self.existing(db, id).await?;
        self.if_match.check(found.revision())?;
        Ok(Some(found))
    }
}
