//! Use-cases of lookup tables. One request that modifies a table is one step of its version, and
//! one push to the nodes.

pub(crate) mod csv;
mod entries;
mod publish;

use kanat_model::id::LookupTableId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, Timestamp};
use kanat_plan_stream::Kind;
use kanat_plan_stream::parts::Edit;
use kanat_store::lookup_table::entry::{self, Entry};
use kanat_store::lookup_table::{self, LookupTable};
use kanat_store::published_api::uses;
use kanat_store::{Db, flow_use};

use crate::app::{App, Caller, Change, ChangeResult, IfMatch, etag, name};
use crate::push::Rollout;

/// Makes an empty table.
pub async fn create(
    app: &App,
    caller: &Caller,
    name: &str,
    description: String,
) -> Result<ChangeResult<LookupTable>, Error> {
    let now = Timestamp::now();
    let table = LookupTable {
        id: LookupTableId::generate(),
        account_id: caller.account_id.clone(),
        environment_id: caller.environment_id.clone(),
        name: name::check("name", name)?,
        description: name::check_text("description", description)?,
        version: 1,
        entries_count: 0,
        created_at: now,
        updated_at: now,
    };
    let mut change = Change::begin(app, &caller.environment_id).await?;
    if let Some(made) = caller.made_before(change.db()).await? {
        let made = existing(change.db(), caller, &LookupTableId::from(made)).await?;
        return change.commit(made).await;
    }
    lookup_table::insert(change.db(), &table).await?;
    caller.note_made(change.db(), table.id.as_str()).await?;
    publish::whole(&mut change, &table).await?;
    change.commit(table).await
}

/// The environment's tables, newest first.
pub async fn list(
    app: &App,
    caller: &Caller,
    search: &str,
    page: Page,
) -> Result<ListPage<LookupTable>, Error> {
    let mut tx = app.store.read().await?;
    Ok(lookup_table::list(&mut tx, &caller.environment_id, search, page).await?)
}

/// A table with the first `limit` entries that have `search` in key or value.
pub async fn get(
    app: &App,
    caller: &Caller,
    id: &LookupTableId,
    search: &str,
    limit: u32,
) -> Result<(LookupTable, Vec<Entry>), Error> {
    let mut tx = app.store.read().await?;
    let table = existing(&mut tx, caller, id).await?;
    let entries = entry::find(&mut tx, id, search, limit).await?;
    Ok((table, entries))
}

/// Takes a table out of service; not while a deployed flow reads it.
pub async fn delete(
    app: &App,
    caller: &Caller,
    id: &LookupTableId,
    if_match: &IfMatch,
) -> Result<ChangeResult<()>, Error> {
    let mut change = Change::begin(app, &caller.environment_id).await?;
    if caller.repeats(change.db(), id.as_str()).await? {
        return change.commit(()).await;
    }
    let table = existing(change.db(), caller, id).await?;
    if_match.check(u64::from(table.version))?;
    let users = flow_use::users(change.db(), &Kind::LookupTable.resource_id(id)).await?;
    if !users.is_empty() {
        let users = users.join(", ");
        return Err(Error::precondition(format!(
            "lookup table {:?} is read by deployed flows: {users}",
            table.name
        )));
    }
    let users = uses::users(change.db(), &Kind::LookupTable.resource_id(id)).await?;
    if !users.is_empty() {
        let users = users.join(", ");
        let message = format!(
            "lookup table {:?} is read by the answers of published APIs: {users}",
            table.name
        );
        return Err(Error::precondition(message));
    }
    lookup_table::delete(change.db(), &caller.environment_id, id, Timestamp::now()).await?;
    publish::remove(&mut change, id).await?;
    change.commit(()).await
}

/// Adds or overwrites entries; of entries with one key the last one counts.
pub async fn upsert(
    app: &App,
    caller: &Caller,
    id: &LookupTableId,
    entries: Vec<Entry>,
    if_match: &IfMatch,
) -> Result<ChangeResult<LookupTable>, Error> {
    let entries = entries::check(entries)?;
    let mut change = Change::begin(app, &caller.environment_id).await?;
    let table = existing(change.db(), caller, id).await?;
    if caller.repeats(change.db(), id.as_str()).await? {
        return change.commit(table).await;
    }
    if_match.check(u64::from(table.version))?;
    entry::upsert(change.db(), id, &entries).await?;
    let edits = entries.into_iter().map(|Entry { key, value }| Edit {
        key,
        value: Some(value),
    });
    let table = publish::modified(&mut change, &table, edits.collect()).await?;
    change.commit(table).await
}

/// Adds or overwrites one entry.
pub async fn set(
    app: &App,
    caller: &Caller,
    id: &LookupTableId,
    entry: Entry,
    if_match: &IfMatch,
) -> Result<ChangeResult<LookupTable>, Error> {
    entries::check_one(&entry)?;
    upsert(app, caller, id, vec![entry], if_match).await
}

/// Deletes one entry.
pub async fn delete_entry(
    app: &App,
    caller: &Caller,
    id: &LookupTableId,
    key: &str,
    if_match: &IfMatch,
) -> Result<ChangeResult<LookupTable>, Error> {
    let mut change = Change::begin(app, &caller.environment_id).await?;
    let table = existing(change.db(), caller, id).await?;
    if caller.repeats(change.db(), id.as_str()).await? {
        return change.commit(table).await;
    }
    if_match.check(u64::from(table.version))?;
    if !entry::delete(change.db(), id, key).await? {
        return Err(Error::new(
            Code::NotFound,
            format!("lookup table {:?} has no key {key:?}", table.name),
        )
        .with_resource("lookup table", table.name));
    }
    let removal = Edit {
        key: key.to_owned(),
        value: None,
    };
    let table = publish::modified(&mut change, &table, vec![removal]).await?;
    change.commit(table).await
}

/// Adds or overwrites the entries of a CSV text with the columns `key` and `value`. A text without
/// entries changes nothing.
pub async fn import(
    app: &App,
    caller: &Caller,
    id: &LookupTableId,
    text: &str,
    if_match: &IfMatch,
) -> Result<ChangeResult<LookupTable>, Error> {
    let entries = csv::read(text)?;
    if entries.is_empty() {
        let table = existing(&mut *app.store.read().await?, caller, id).await?;
        if_match.check(u64::from(table.version))?;
        return Ok(ChangeResult {
            value: table,
            applied: Rollout::Everywhere,
        });
    }
    upsert(app, caller, id, entries, if_match).await
}

/// All entries as CSV with the columns `key` and `value`.
pub async fn export(app: &App, caller: &Caller, id: &LookupTableId) -> Result<String, Error> {
    let mut tx = app.store.read().await?;
    existing(&mut tx, caller, id).await?;
    let entries = entry::all(&mut tx, id).await?;
    csv::write(&entries)
}

/// The tag of a table as it now is.
pub fn table_etag(table: &LookupTable) -> String {
    etag(u64::from(table.version))
}

async fn existing(db: &mut Db, caller: &Caller, id: &LookupTableId) -> Result<LookupTable, Error> {
    let found = lookup_table::get(db, &caller.environment_id, id).await?;
    found.ok_or_else(|| Error::not_found("lookup table", id.as_str()))
}
