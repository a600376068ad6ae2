//! Use-cases by resource: the order of checks and effects of each call. What they know of the wire
//! is nothing.

pub mod account;
pub mod adapter;
pub mod api_key;
pub mod audit;
pub mod batch_job;
pub mod bootstrap;
pub mod call;
pub mod change;
pub mod connector;
pub mod consumer_key;
pub mod environment;
mod faults;
pub mod flow;
mod formula;
mod grace;
mod json;
pub mod kept_answer;
pub mod kept_key;
pub mod language;
pub mod lookup_table;
pub mod member;
pub mod message;
mod name;
pub mod node;
pub mod policy;
pub mod published_api;
pub mod schedule;
pub mod search;
pub mod secret;
#[cfg(test)]
pub mod testing;
mod timetable;
mod users;

use std::sync::Arc;

use kanat_auth::{Role, Sealer};
use kanat_mail::Mailer;
use kanat_message_log::{MessageLog, Tenant};
use kanat_model::id::{AccountId, ApiKeyId, EnvironmentId, MemberId};
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_net::outbound;
use kanat_store::{Db, Store, done_call};
use tokio::sync::Notify;

use crate::PublicUrl;
use crate::identity::{Identity, IdentityProviders};
use crate::push::Hub;
use crate::retention::Retention;
use crate::tasks::Tasks;
pub(crate) use call::resource;
pub use call::{Call, ResourceRevision};
pub use change::{ChangeResult, PublishTransaction};

/// State that the use-cases share; clones share all of it.
#[derive(Clone)]
pub struct App {
    pub store: Store,
    pub log: Arc<dyn MessageLog>,
    pub hub: Arc<Hub>,
    /// Its jobs, and work that goes on when its caller has gone.
    pub tasks: Tasks,
    pub deploy_queues: flow::DeployQueues,
    /// Told when there is a new batch job.
    pub batch_jobs: Arc<Notify>,
    pub sealer: Arc<Sealer>,
    pub master_keys: Arc<secret::MasterKeys>,
    /// For calls that users direct, such as connection tests.
    pub outbound: outbound::Client,
    pub public_url: PublicUrl,
    pub api_url: PublicUrl,
    /// Processes that run adapters in tests.
    pub adapters: kanat_script::Pool,
    pub denials: Arc<audit::Denials>,
    pub identities: IdentityProviders,
    pub retention: Retention,
    /// Client of the mail server, if the operator has named one.
    pub mailer: Option<Mailer>,
}

/// Caller of a use-case and the environment of the call. The account is that of the API key, and
/// for a person the one account of the deployment. No request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub role: Role,
    pub credential: Credential,
    /// Name of the key or of the person, for records of what the caller did.
    pub name: String,
    /// E-mail address of the person.
    pub email: Option<String>,
    /// The only environment that the key opens, if it is bound to one.
    pub bound_to: Option<EnvironmentId>,
    /// When the credential ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// Hash that identifies a call with an idempotency key: its repeats have the same one, and no
    /// other call has it.
    pub idempotency_id: Option<String>,
}

/// Credential of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    Key(ApiKeyId),
    /// A token of a member.
    Member(MemberId),
    /// A verified token of a person who may be no member.
    Person(Arc<Identity>),
}

impl Credential {
    /// Returns a text that no other credential has: the id, or the issuer and the subject.
    pub fn id(&self) -> &str {
        match self {
            Self::Key(id) => id.as_str(),
            Self::Member(id) => id.as_str(),
            Self::Person(person) => person.key(),
        }
    }
}

impl Caller {
    /// Returns what the caller is called in errors.
    pub fn noun(&self) -> &'static str {
        match self.credential {
            Credential::Key(_) => "key",
            Credential::Member(_) => "member",
            Credential::Person(_) => "person",
        }
    }

    /// Errors when the key is bound to an environment: the call is about the whole account.
    pub fn refuse_if_bound(&self) -> Result<()> {
        match self.bound_to {
            Some(_) => Err(beyond_binding()),
            None => Ok(()),
        }
    }

    /// Returns the account and the environment that messages belong to.
    pub fn tenant(&self) -> Tenant {
        Tenant {
            account_id: self.account_id.clone(),
            environment_id: self.environment_id.clone(),
        }
    }

    /// Returns the result that this call recorded before a crash kept it from being answered: the
    /// id of what it made, or another text that identifies it.
    pub async fn find_idempotent_result(&self, db: &mut Db) -> Result<Option<String>> {
        match &self.idempotency_id {
            Some(call) => {
                Ok(done_call::made(db, call, Timestamp::now().before(kept_answer::WINDOW)).await?)
            }
            None => Ok(None),
        }
    }

    /// Returns whether this call has made its change of `id` before a crash kept it from being
    /// answered, and records it otherwise, in the transaction that makes it.
    pub async fn repeats(&self, db: &mut Db, id: impl AsRef<str>) -> Result<bool> {
        if self.find_idempotent_result(db).await?.is_some() {
            return Ok(true);
        }
        self.record_idempotent_result(db, id).await?;
        Ok(false)
    }

    /// Records what this call makes under its idempotency key, if it has one. Belongs into the
    /// transaction that makes it.
    pub async fn record_idempotent_result(&self, db: &mut Db, made: impl AsRef<str>) -> Result<()> {
        match &self.idempotency_id {
            Some(call) => Ok(done_call::note(db, call, made.as_ref(), Timestamp::now()).await?),
            None => Ok(()),
        }
    }
}

/// The error of a call that reaches beyond the environment that its key is bound to.
pub fn beyond_binding() -> Error {
    Error::new(
        Code::PermissionDenied,
        "this key is bound to one environment and cannot reach beyond it",
    )
}

/// The change that an update makes of an optional value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FieldUpdate<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T> FieldUpdate<T> {
    /// Returns the value that is set, if one is.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// Changes `current`.
    pub fn apply(self, current: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *current = None,
            Self::Set(value) => *current = Some(value),
        }
    }
}

/// The revision that a caller means to change (`If-Match`); none when any will do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IfMatch(pub Option<String>);

impl IfMatch {
    /// Errors when what is stored is of another revision.
    pub fn check(&self, revision: u64) -> Result<()> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        let mut wanted = wanted
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
        let revision = revision.to_string();
        if wanted.any(|tag| tag == "*" || tag.split('-').next() == Some(&revision)) {
            return Ok(());
        }
        Err(Error::new(
            Code::Aborted,
            "it was changed meanwhile: read it again, then change it",
        ))
    }
}

/// The tag of a resource as it is now, without quotes.
pub fn etag(resource: &impl ResourceRevision) -> String {
    resource.revision().to_string()
}

/// The tag of one view of a revision: it tells views apart, and as good as the revision's own which
/// one is meant.
pub fn etag_of_view(revision: u64, view: u32) -> String {
    format!("{revision}-{view:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_update_is_refused() {
        for taken in [
            None,
            Some("3"),
            Some("\"3\""),
            Some("W/\"3\""),
            Some("\"1\", \"3\""),
            Some("3-00c0ffee"),
            Some("*"),
        ] {
            assert_eq!(
                IfMatch(taken.map(str::to_owned)).check(3),
                Ok(()),
                "{taken:?}"
            );
        }
        for refused in ["2", "\"33\"", "", "-3", "33-00c0ffee", "\"2\", \"4\""] {
            assert_eq!(
                IfMatch(Some(refused.to_owned())).check(3).unwrap_err().code,
                Code::Aborted,
                "{refused}"
            );
        }
    }
}
