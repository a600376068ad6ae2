//! Denied calls. The first ones of a caller and an action in a minute have an entry each; the
//! others are counted, and told by one entry when the minute is over.

use std::collections::HashMap;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::AuditEntryId;
use kanat_store::audit::{self, Entry, Filter};
use parking_lot::Mutex;

use super::{AuditContext, Entity, Status, of_caller};
use crate::app::{App, Caller};

/// Calls of a minute that are told one by one.
const MAX_SINGLE_ENTRIES: u64 = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Denied calls of the last minute, by caller and action.
#[derive(Debug, Default)]
pub struct Denials(Mutex<HashMap<Kind, Window>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    caller: String,
    action: String,
}

#[derive(Debug)]
struct Window {
    /// By the clock of waits.
    ends_at: Timestamp,
    /// Calls with an entry of their own.
    single: u64,
    /// Further calls.
    counted: u64,
    last: Entry,
}

impl Denials {
    /// Counts a denied call, and returns its entry if it is told by one of its own. `is_full` is
    /// true if enough calls have one, also those of other processes.
    fn count(&self, entry: Entry, now: Timestamp, is_full: bool) -> Option<Entry> {
        let kind = Kind {
            caller: entry.actor.id.clone(),
            action: entry.action.clone(),
        };
        let mut windows = self.0.lock();
        let window = windows.entry(kind).or_insert_with(|| Window {
            ends_at: now.after(WINDOW),
            single: 0,
            counted: 0,
            last: entry.clone(),
        });
        if window.single < MAX_SINGLE_ENTRIES && !is_full {
            window.single += 1;
            return Some(entry);
        }
        window.counted += 1;
        window.last = entry;
        None
    }

    /// Ends the minutes that are over; returns an entry for each that has calls without one.
    fn ended(&self, now: Timestamp) -> Vec<Entry> {
        let mut windows = self.0.lock();
        let ended = windows.extract_if(|_, window| window.ends_at <= now);
        ended
            .filter(|(_, window)| window.counted > 0)
            .map(|(_, window)| Entry {
                id: AuditEntryId::generate(),
                calls: window.counted,
                ..window.last
            })
            .collect()
    }

    /// Returns when the next minute is over.
    fn next_end(&self) -> Option<Timestamp> {
        self.0.lock().values().map(|window| window.ends_at).min()
    }
}

/// Writes the entry of a denied call. That it cannot be written does not change the answer.
pub async fn denied(app: &App, caller: &Caller, context: &AuditContext, entity_id: Option<String>) {
    let is_of_environment =
        context.action.is_of_environment() && !caller.environment_id.as_str().is_empty();
    let entity = Entity {
        id: entity_id,
        name: None,
        environment_id: is_of_environment.then(|| caller.environment_id.clone()),
    };
    let now = Timestamp::steady();
    let mut entries = app.denials.ended(now);
    let entry = of_caller(caller, context, entity, Status::Denied);
    let is_full = is_full(app, &entry).await;
    entries.extend(app.denials.count(entry, now, is_full));
    write(app, &entries).await;
}

/// Returns whether the control planes of the database have told enough calls of this caller and
/// action one by one. A process alone counts in memory.
async fn is_full(app: &App, entry: &Entry) -> bool {
    if !app.store.is_shared() {
        return false;
    }
    let filter = Filter {
        actor_id: Some(entry.actor.id.clone()),
        action: Some(entry.action.clone()),
        status: Some(Status::Denied),
        since: Some(Timestamp::now().before(WINDOW)),
        ..Filter::default()
    };
    let written = async {
        let mut tx = app.store.read().await?;
        audit::count(&mut tx, &entry.account_id, &filter).await
    };
    written
        .await
        .is_ok_and(|written| written >= MAX_SINGLE_ENTRIES)
}

/// Writes the entries of minutes that are over; returns when the next one is.
pub async fn write_counts(app: &App) -> Option<Timestamp> {
    write(app, &app.denials.ended(Timestamp::steady())).await;
    app.denials.next_end()
}

/// Writes the entries of all minutes, before the process ends.
pub async fn write_all(app: &App) {
    let end = Timestamp::steady().after(WINDOW + WINDOW);
    write(app, &app.denials.ended(end)).await;
}

async fn write(app: &App, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let written = async {
        let mut tx = app.store.begin().await?;
        for entry in entries {
            audit::insert(&mut tx, entry).await?;
        }
        tx.commit().await
    };
    if let Err(error) = written.await {
        tracing::error!(%error, "denied calls cannot be written to the audit log");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kanat_auth::Role;

    use super::*;
    use crate::app::{Credential, testing};
    use crate::identity::{ClaimedRole, Identity};

    #[tokio::test]
    async fn beyond_ten_in_a_minute_denied_calls_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        let caller = testing::caller(&app, Role::Viewer).await;
        let context = AuditContext::default();
        let entry = || of_caller(&caller, &context, Entity::default(), Status::Denied);
        let denials = Denials::default();
        let now = Timestamp::from_millis(0);
        let told = (0..25).filter_map(|_| denials.count(entry(), now, false));
        assert_eq!(told.count(), 10);
        assert!(denials.ended(now).is_empty());
        let ended = denials.ended(now.after(WINDOW));
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].calls, 15);
        assert!(denials.count(entry(), now, false).is_some());
        assert!(denials.count(entry(), now, true).is_none());
    }

    #[tokio::test]
    async fn a_person_who_is_no_member_has_no_role() {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        let issuer = "https://issuer.example";
        let person = Identity::of(issuer, "eve", None, ClaimedRole::NotAsked);
        let mut caller = testing::caller(&app, Role::Viewer).await;
        caller.credential = Credential::Person(Arc::new(person));
        let context = AuditContext::default();
        let entry = of_caller(&caller, &context, Entity::default(), Status::Denied);
        assert_eq!(entry.actor.role, "");
        assert_eq!(entry.actor.id, "https://issuer.example eve");
    }
}
