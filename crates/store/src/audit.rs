//! The audit log of an account: entries, which are written in the transaction of what they tell,
//! and are never changed. Their chain is in `audit/chain.rs`.

pub mod chain;

use kanat_model::Timestamp;
use kanat_model::audit::{Principal, Status, Via};
use kanat_model::id::{AccountId, AuditEntryId, EnvironmentId};
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use crate::column::Value;
use crate::record::{FromRow, RowExt, record};
use crate::{Db, Error, Result};

record! {
    /// One request, or one act of the service itself.
    pub struct Entry in "audit_entry" {
        pub id: AuditEntryId,
        pub account_id: AccountId,
        pub at: Timestamp,
        /// As in `flow.deploy`.
        pub action: String,
        pub entity_type: String,
        pub entity_id: Option<String>,
        pub entity_name: Option<String>,
        /// None for what belongs to the account.
        pub environment_id: Option<EnvironmentId>,
        pub actor: Principal {
            kind as "actor_type", id as "actor_id", name as "actor_name", email as "actor_email",
            role as "actor_role"
        },
        pub via: Via,
        pub status: Status,
        /// JSON text, here and below.
        pub before: Option<String> as "state_before",
        pub after: Option<String> as "state_after",
        pub request_id: Option<String>,
        /// IP address of the caller.
        pub address: Option<String>,
        /// Number of calls that the entry tells.
        pub calls: u64,
    }
}

/// An entry as the database has it, where somebody may have changed its row.
pub type StoredEntry = Result<Entry, Unreadable>;

/// An entry whose row has a value that no build has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub id: AuditEntryId,
    /// For an operator.
    pub reason: String,
}

impl FromRow for StoredEntry {
    const COLUMNS: &'static [&'static [&'static str]] = Entry::COLUMNS;

    fn read(row: &AnyRow, position: usize) -> Result<Self> {
        let unreadable = |error: Error| {
            let id = row.column("id")?;
            let reason = error.to_string();
            Ok(Err(Unreadable { id, reason }))
        };
        Entry::read(row, position).map_or_else(unreadable, |entry| Ok(Ok(entry)))
    }
}

/// Entries that are looked for; what is `None` is not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub action: Option<String>,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
    pub actor_id: Option<String>,
    pub environment_id: Option<EnvironmentId>,
    pub status: Option<Status>,
    pub via: Option<Via>,
    pub request_id: Option<String>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}

/// Part of a list of entries.
#[derive(Debug, Clone, Copy)]
pub enum Position<'a> {
    Offset(u32),
    /// Behind the entry of this id, newest first.
    After(&'a AuditEntryId),
}

const PENDING: &str = "INSERT INTO audit_pending (entry_id, account_id) VALUES ($1, $2)";

/// Writes an entry, which is chained later.
pub async fn insert(db: &mut Db, entry: &Entry) -> Result<()> {
    db.insert(entry).await?;
    db.run(PENDING, &[&entry.id, &entry.account_id]).await
}

impl Filter {
    /// Returns the conditions of a statement, and the values that they bind. Only columns that are
    /// compared are named, so that an index of theirs is used.
    fn conditions<'a>(&'a self, account: &'a AccountId) -> (String, Vec<&'a dyn Value>) {
        let mut text = "FROM audit_entry WHERE account_id = $1".to_owned();
        let mut values: Vec<&dyn Value> = vec![account];
        let mut compare = |comparison: &str, value: Option<&'a dyn Value>| {
            if let Some(value) = value {
                values.push(value);
                text.push_str(&format!(" AND {comparison} ${}", values.len()));
            }
        };
        compare("action =", value(&self.action));
        compare("entity_type =", value(&self.entity_type));
        compare("entity_id =", value(&self.entity_id));
        compare("actor_id =", value(&self.actor_id));
        compare("environment_id =", value(&self.environment_id));
        compare("status =", value(&self.status));
        compare("via =", value(&self.via));
        compare("request_id =", value(&self.request_id));
        compare("at >=", value(&self.since));
        compare("at <", value(&self.until));
        (text, values)
    }
}

fn value<T: Value>(option: &Option<T>) -> Option<&dyn Value> {
    option.as_ref().map(|value| value as &dyn Value)
}

/// Counts the entries that a filter finds.
pub async fn count(db: &mut Db, account: &AccountId, filter: &Filter) -> Result<u64> {
    let (from, values) = filter.conditions(account);
    let text = format!("SELECT COUNT(*) AS total {from}");
    db.one(AssertSqlSafe(text), &values).await
}

/// Reads entries that a filter finds, newest first.
pub async fn list(
    db: &mut Db,
    account: &AccountId,
    filter: &Filter,
    position: Position<'_>,
    limit: u32,
) -> Result<Vec<StoredEntry>> {
    let (from, mut values) = filter.conditions(account);
    let number = values.len() + 1;
    let (after, offset) = match &position {
        Position::After(id) => {
            values.push(*id);
            (format!(" AND id < ${number}"), String::new())
        }
        Position::Offset(offset) => {
            values.push(offset);
            (String::new(), format!(" OFFSET ${number}"))
        }
    };
    values.push(&limit);
    let columns = Entry::COLUMNS.concat().join(", ");
    let number = number + 1;
    let text = format!("SELECT {columns} {from}{after} ORDER BY id DESC LIMIT ${number}{offset}");
    db.all(AssertSqlSafe(text), &values).await
}
