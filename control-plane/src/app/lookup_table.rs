//! Use-cases of lookup tables. One request that modifies a table is one step of its version, and
//! one push to the nodes.

pub(crate) mod csv;
mod entries;
mod publish;

use kanat_model::id::LookupTableId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_plan_stream::Kind;
use kanat_plan_stream::parts::Edit;
use kanat_store::lookup_table::entry::{self, Entry};
use kanat_store::lookup_table::{self, LookupTable};

use crate::app::audit::{self, Audited};
use crate::app::{Call, ChangeResult, PublishTransaction, name, resource, users};
use crate::push::Rollout;

resource!(
    "lookup table",
    LookupTableId,
    LookupTable,
    lookup_table::get,
    environment_id,
    version
);

/// Makes an empty table.
pub async fn create(
    call: &Call,
    name: &str,
    description: String,
) -> Result<ChangeResult<LookupTable>> {
    let now = Timestamp::now();
    let table = LookupTable {
        id: LookupTableId::generate(),
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        name: name::check("name", name)?,
        description: name::check_text("description", description)?,
        version: 1,
        entries_count: 0,
        created_at: now,
        updated_at: now,
    };
    let mut change = call.change().await?;
    if let Some(made) = call.made::<LookupTableId>(&mut change).await? {
        return change.answer_repeat(made).await;
    }
    lookup_table::insert(&mut change, &table).await?;
    call.caller
        .record_idempotent_result(&mut change, &table.id)
        .await?;
    publish::whole(&mut change, &table).await?;
    audit::created(call, &mut change, &table).await?;
    change.commit(table).await
}

/// The environment's tables, newest first.
pub async fn list(call: &Call, search: &str, page: Page) -> Result<ListPage<LookupTable>> {
    let mut tx = call.read().await?;
    Ok(lookup_table::list(&mut tx, &call.caller.environment_id, search, page).await?)
}

/// A table with the first `limit` entries that have `search` in key or value.
pub async fn get(
    call: &Call,
    id: &LookupTableId,
    search: &str,
    limit: u32,
) -> Result<(LookupTable, Vec<Entry>)> {
    let mut tx = call.read().await?;
    let table = call.existing(&mut tx, id).await?;
    let entries = entry::find(&mut tx, id, search, limit).await?;
    Ok((table, entries))
}

/// Takes a table out of service; not while a deployed flow reads it.
pub async fn delete(call: &Call, id: &LookupTableId) -> Result<ChangeResult<()>> {
    let mut change = call.change().await?;
    let Some(table) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        return change.answer_repeat(()).await;
    };
    let is_read = format!("lookup table {:?} is read by", table.name);
    users::refuse(
        &call.app,
        &mut change,
        &Kind::LookupTable.resource_id(id),
        &is_read,
        "",
    )
    .await?;
    lookup_table::delete(
        &mut change,
        &call.caller.environment_id,
        id,
        Timestamp::now(),
    )
    .await?;
    publish::remove(&mut change, id).await?;
    audit::deleted(call, &mut change, &table).await?;
    change.commit(()).await
}

/// Adds or overwrites entries; of entries with one key the last one counts.
pub async fn upsert(
    call: &Call,
    id: &LookupTableId,
    entries: Vec<Entry>,
) -> Result<ChangeResult<LookupTable>> {
    let entries = entries::check(entries)?;
    let mut change = call.change().await?;
    let (table, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        return change.answer_repeat(table).await;
    }
    let told = entries::Edits::of(&mut change, id, &entries).await?;
    entry::upsert(&mut change, id, &entries).await?;
    let edits = entries.into_iter().map(|Entry { key, value }| Edit {
        key,
        value: Some(value),
    });
    commit_edits(call, change, &table, told, edits.collect()).await
}

/// Ends a change of entries: tells it in the audit log, and publishes it.
async fn commit_edits(
    call: &Call,
    mut change: PublishTransaction<'_>,
    table: &LookupTable,
    told: entries::Edits,
    edits: Vec<Edit>,
) -> Result<ChangeResult<LookupTable>> {
    let entity = table.entity();
    audit::record(
        call,
        &mut change,
        entity,
        Some(told.before),
        Some(told.after),
    )
    .await?;
    let table = publish::modified(&mut change, table, edits).await?;
    change.commit(table).await
}

/// Adds or overwrites one entry.
pub async fn set(
    call: &Call,
    id: &LookupTableId,
    entry: Entry,
) -> Result<ChangeResult<LookupTable>> {
    entries::check_one(&entry)?;
    upsert(call, id, vec![entry]).await
}

/// Deletes one entry.
pub async fn delete_entry(
    call: &Call,
    id: &LookupTableId,
    key: &str,
) -> Result<ChangeResult<LookupTable>> {
    let mut change = call.change().await?;
    let (table, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        return change.answer_repeat(table).await;
    }
    let former = entry::get(&mut change, id, key).await?;
    if !entry::delete(&mut change, id, key).await? {
        return Err(Error::new(
            Code::NotFound,
            format!("lookup table {:?} has no key {key:?}", table.name),
        )
        .with_resource("lookup table", table.name));
    }
    let told = entries::Edits::of_removal(key, former);
    let removal = Edit {
        key: key.to_owned(),
        value: None,
    };
    commit_edits(call, change, &table, told, vec![removal]).await
}

/// Adds or overwrites the entries of a CSV text with the columns `key` and `value`. A text without
/// entries changes nothing.
pub async fn import(
    call: &Call,
    id: &LookupTableId,
    text: &str,
) -> Result<ChangeResult<LookupTable>> {
    let entries = csv::read(text)?;
    if entries.is_empty() {
        let table = call.get(id).await?;
        call.if_match.check(u64::from(table.version))?;
        audit::record_before_work(call, table.entity(), None).await?;
        return Ok(ChangeResult {
            value: table,
            applied: Rollout::Everywhere,
        });
    }
    upsert(call, id, entries).await
}

/// All entries as CSV with the columns `key` and `value`.
pub async fn export(call: &Call, id: &LookupTableId) -> Result<String> {
    let mut tx = call.read().await?;
    let table = call.existing(&mut tx, id).await?;
    let entries = entry::all(&mut tx, id).await?;
    drop(tx);
    audit::record_before_work(call, table.entity(), None).await?;
    csv::write(&entries)
}
