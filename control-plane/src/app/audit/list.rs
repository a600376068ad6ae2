//! Lists of the audit log.

use kanat_model::audit::{Status, Via};
use kanat_model::id::{AuditEntryId, EnvironmentId};
use kanat_model::nearest::suggestion;
use kanat_model::page::Page;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::audit::{self, Entry, Filter, Position, Unreadable};
use kanat_store::environment;

use crate::app::audit::action;
use crate::app::{Call, beyond_binding};

/// Filters and page that a caller asks for; texts as they came.
#[derive(Debug, Default)]
pub struct Query {
    pub action: Option<String>,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
    pub user_id: Option<String>,
    /// Id or name.
    pub environment: Option<String>,
    pub status: Option<String>,
    pub via: Option<String>,
    pub request_id: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    /// `nextCursor` of the page before, in the place of an offset.
    pub cursor: Option<String>,
}

/// A page of entries.
#[derive(Debug)]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    pub total: u64,
    pub next: Option<AuditEntryId>,
}

/// The account's entries, newest first; of a key that is bound to an environment, those of it.
pub async fn list(call: &Call, query: Query, page: Page) -> Result<EntryPage> {
    let mut tx = call.read().await?;
    let account = &call.caller.account_id;
    let bound = call.caller.bound_to.clone();
    let wanted = match &query.environment {
        None => None,
        Some(text) => Some(match environment::find(&mut tx, account, text).await? {
            Some(found) => found.id,
            // One that was deleted has entries all the same.
            None if text.starts_with(&format!("{}_", EnvironmentId::PREFIX)) => {
                EnvironmentId::from(text.as_str())
            }
            None => {
                let problem = format!("there is no environment {text:?}");
                return Err(Error::field("environmentId", problem));
            }
        }),
    };
    if let (Some(bound), Some(wanted)) = (&bound, &wanted)
        && bound != wanted
    {
        return Err(beyond_binding());
    }
    let filter = Filter {
        environment_id: wanted.or(bound),
        status: word("status", query.status, Status::parse, "done or denied")?,
        via: word(
            "via",
            query.via,
            Via::parse,
            "api, cli, console, mcp or system",
        )?,
        since: instant("since", query.since)?,
        until: instant("until", query.until)?,
        action: known("action", query.action, action::known())?,
        entity_type: known("entityType", query.entity_type, action::entity_types())?,
        entity_id: query.entity_id,
        actor_id: query.user_id,
        request_id: query.request_id,
    };
    let cursor = query.cursor.map(AuditEntryId::from);
    if let Some(cursor) = &cursor
        && !cursor
            .as_str()
            .starts_with(&format!("{}_", AuditEntryId::PREFIX))
    {
        return Err(Error::field(
            "cursor",
            "is no nextCursor of a page of this list",
        ));
    }
    let position = match &cursor {
        Some(id) => Position::After(id),
        None => Position::Offset(page.offset),
    };
    let total = audit::count(&mut tx, account, &filter).await?;
    // One more tells whether there is another page.
    let mut entries = audit::list(&mut tx, account, &filter, position, page.limit + 1).await?;
    let has_more = entries.len() > page.limit as usize;
    entries.truncate(page.limit as usize);
    let next = entries
        .last()
        .filter(|_| has_more)
        .map(|entry| match entry {
            Ok(entry) => entry.id.clone(),
            Err(unreadable) => unreadable.id.clone(),
        });
    let readable = entries.into_iter().filter_map(|entry| match entry {
        Ok(entry) => Some(entry),
        Err(Unreadable { id, reason }) => {
            tracing::error!(entry.id = %id, %reason, "an entry of the audit log was changed");
            None
        }
    });
    Ok(EntryPage {
        entries: readable.collect(),
        total,
        next,
    })
}

/// Returns a word that is one of `known`.
fn known<'k>(
    field: &str,
    text: Option<String>,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Result<Option<String>> {
    match text {
        Some(text) if !known.clone().any(|word| word == text) => {
            let suggestion = suggestion(&text, known);
            let problem = format!("{text:?} is not one of the audit log{suggestion}");
            Err(Error::field(field, problem))
        }
        text => Ok(text),
    }
}

fn word<T>(
    field: &str,
    text: Option<String>,
    parse: fn(&str) -> Option<T>,
    known: &str,
) -> Result<Option<T>> {
    let parsed = text.map(|text| {
        parse(&text).ok_or_else(|| Error::field(field, format!("{text:?} is not {known}")))
    });
    parsed.transpose()
}

fn instant(field: &str, text: Option<String>) -> Result<Option<Timestamp>> {
    let parsed = text.map(|text| {
        let message = || format!("{text:?} is no instant, as in 2026-01-31T08:15:00Z");
        Timestamp::parse(&text).ok_or_else(|| Error::field(field, message()))
    });
    parsed.transpose()
}
