//! Values of columns: the form in which the databases hold the types of the model.

use std::collections::BTreeMap;

use kanat_model::audit::{PrincipalType, Via};
use kanat_model::batch_job::Status as BatchJobStatus;
use kanat_model::environment::Promoters;
use kanat_model::flow::Status as FlowStatus;
use kanat_model::id::{self, EnvironmentId};
use kanat_model::policy::Severity;
use kanat_model::published_api::{
    Auth, Cors, Method, OAuth2, OnTimeout, Validation, VersionStatus,
};
use kanat_model::schedule::RunStatus;
use kanat_model::search::Kind;
use kanat_model::{Timestamp, adapter, audit};
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, Decode, Encode, Type};

/// A statement and the values that are bound to it.
pub(crate) type Statement<'q> = Query<'q, Any, AnyArguments>;

/// Value that a statement binds.
pub(crate) trait Value: Sync {
    fn bind<'q>(&self, statement: Statement<'q>) -> Statement<'q>;
}

/// Value of a column.
pub(crate) trait Column: Sized + Sync {
    /// Type that the databases have.
    type Stored: Type<Any> + for<'q> Encode<'q, Any> + for<'r> Decode<'r, Any> + 'static;

    fn stored(&self) -> Self::Stored;

    /// Returns the value that is stored so.
    ///
    /// # Errors
    /// No build that this one knows stored it. The error is the stored value in words.
    fn parse(stored: Self::Stored) -> Result<Self, String>;
}

impl<T: Column> Value for T {
    fn bind<'q>(&self, statement: Statement<'q>) -> Statement<'q> {
        statement.bind(self.stored())
    }
}

impl Value for &str {
    fn bind<'q>(&self, statement: Statement<'q>) -> Statement<'q> {
        statement.bind(*self)
    }
}

impl Value for &[u8] {
    fn bind<'q>(&self, statement: Statement<'q>) -> Statement<'q> {
        statement.bind(*self)
    }
}

/// `NULL` is `None`.
impl<T: Column> Column for Option<T>
where
    T::Stored: for<'q> Encode<'q, Any>,
{
    type Stored = Option<T::Stored>;

    fn stored(&self) -> Self::Stored {
        self.as_ref().map(T::stored)
    }

    fn parse(stored: Self::Stored) -> Result<Self, String> {
        stored.map(T::parse).transpose()
    }
}

macro_rules! columns {
    ($($type:ty as $stored:ty: $write:expr, $read:expr;)*) => {$(
        impl Column for $type {
            type Stored = $stored;

            fn stored(&self) -> $stored {
                let write: fn(&Self) -> $stored = $write;
                write(self)
            }

            fn parse(stored: $stored) -> Result<Self, String> {
                let read: fn($stored) -> Result<Self, String> = $read;
                read(stored)
            }
        }
    )*};
}

columns! {
    String as String: String::clone, Ok;
    Vec<u8> as Vec<u8>: Vec::clone, Ok;
    [u8; 32] as Vec<u8>: |hash| hash.to_vec(), hash;
    i64 as i64: |number| *number, Ok;
    i32 as i32: |number| *number, Ok;
    u32 as i64: |number| i64::from(*number), whole;
    u64 as i64: |number| i64::try_from(*number).unwrap_or(i64::MAX), whole;
    bool as i64: |flag| i64::from(*flag), |number| Ok(number != 0);
    Timestamp as i64: |time| time.as_millis(), |millis| Ok(Self::from_millis(millis));
    Vec<EnvironmentId> as String: |ids| joined(ids), |text| Ok(split(&text));
}

/// Ids are their texts.
macro_rules! ids {
    ($($id:ident),* $(,)?) => {
        columns! { $(id::$id as String: |id| id.as_str().to_owned(), |text| Ok(text.into());)* }
    };
}

ids!(
    AccountId,
    AdapterId,
    ApiKeyId,
    AuditEntryId,
    BatchJobId,
    BootId,
    ConsumerKeyId,
    EnvironmentId,
    EpochId,
    FlowId,
    HealthChangeId,
    InstanceId,
    LookupTableId,
    MemberId,
    MessageId,
    NodeId,
    PolicyId,
    PublishedApiId,
    ScheduleId,
);

/// Words of the API.
macro_rules! words {
    ($($word:ty),* $(,)?) => {
        columns! {
            $($word as String: |word| word.as_str().to_owned(),
                |text| Self::parse(&text).ok_or(text);)*
        }
    };
}

words!(
    adapter::Kind,
    audit::Status,
    Auth,
    BatchJobStatus,
    FlowStatus,
    Kind,
    Method,
    OnTimeout,
    PrincipalType,
    RunStatus,
    Promoters,
    Severity,
    Validation,
    VersionStatus,
    Via,
);

/// Settings are JSON.
macro_rules! json {
    ($($settings:ty),* $(,)?) => {
        columns! {
            $($settings as String: |settings| serde_json::json!(settings).to_string(),
                |text| serde_json::from_str(&text).map_err(|_| text);)*
        }
    };
}

json!(
    BTreeMap<String, String>,
    Cors,
    OAuth2,
    Vec<(String, String)>,
);

fn hash(bytes: Vec<u8>) -> Result<[u8; 32], String> {
    bytes
        .try_into()
        .map_err(|bytes: Vec<u8>| format!("{} bytes", bytes.len()))
}

fn whole<T: TryFrom<i64>>(number: i64) -> Result<T, String> {
    number.try_into().map_err(|_| number.to_string())
}

/// Ids have no commas.
fn joined(ids: &[EnvironmentId]) -> String {
    let ids: Vec<_> = ids.iter().map(EnvironmentId::as_str).collect();
    ids.join(",")
}

fn split(text: &str) -> Vec<EnvironmentId> {
    let ids = text.split(',').filter(|id| !id.is_empty());
    ids.map(EnvironmentId::from).collect()
}
