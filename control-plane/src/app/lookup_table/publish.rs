//! What nodes get of a table: one resource, or, of a large one, a resource for each part of its
//! entries, so that a change of one entry reads and writes that part. Which it is follows from the
//! table's size.

use std::collections::BTreeMap;

use kanat_model::id::LookupTableId;
use kanat_model::{Error, Timestamp};
use kanat_plan_stream::table::{self, Size};
use kanat_plan_stream::{Kind, parts};
use kanat_proto::node::v1::TableChange;
use kanat_proto::plan::v1::{self as plan, lookup_table::Entry};
use kanat_store::lookup_table::{self, LookupTable, entry};
use prost::Message;

use super::entries;
use crate::app::Change;

/// Publishes a table of which these entries changed, and gives it as it is now. Entries that did
/// not change are not read again, but for those of the same part.
pub async fn modified(
    change: &mut Change<'_>,
    table: &LookupTable,
    entries: TableChange,
) -> Result<LookupTable, Error> {
    let next = LookupTable {
        version: table.version + 1,
        ..table.clone()
    };
    let entries = TableChange {
        version: next.version,
        ..entries
    };
    let size = match by_entries(change, &next, entries).await? {
        Some(size) => size,
        None => whole(change, &next).await?,
    };
    let count = u32::try_from(size.entries).unwrap_or(u32::MAX);
    entries::check_count(count)?;
    entries::check_size(size.text_bytes)?;
    Ok(lookup_table::modified(change.db(), &table.id, count, Timestamp::now()).await?)
}

/// Publishes all entries that a table has.
pub async fn whole(change: &mut Change<'_>, table: &LookupTable) -> Result<Size, Error> {
    let entries = entry::all(change.db(), &table.id).await?;
    let text_bytes = entries
        .iter()
        .map(|entry| entry.key.len() + entry.value.len())
        .sum();
    let size = Size {
        entries: entries.len(),
        text_bytes,
    };
    let parts = parts::count(text_bytes);
    let whole = plan::LookupTable {
        entries: entries
            .into_iter()
            .map(|entry::Entry { key, value }| Entry { key, value })
            .collect(),
        ..own(table, parts, size)
    };
    let former = former_parts(change, &table.id).await?;
    let gone = if former == parts { 0 } else { former };
    let removals: Vec<_> = parts::resource_ids(table.id.as_str(), gone).collect();
    let id = Kind::LookupTable.resource_id(&table.id);
    let bodies = match parts {
        0 => vec![(id, whole.encode_to_vec())],
        _ => {
            let own = (id, parts::head(&whole));
            let body = |part: plan::LookupTable| {
                (Kind::LookupPart.resource_id(&part.id), part.encode_to_vec())
            };
            std::iter::once(own)
                .chain(parts::split(whole, parts).into_iter().map(body))
                .collect()
        }
    };
    change.together(&bodies, &removals).await?;
    Ok(size)
}

/// Takes a table out of service.
pub async fn remove(change: &mut Change<'_>, id: &LookupTableId) -> Result<(), Error> {
    let parts = former_parts(change, id).await?;
    let own = Kind::LookupTable.resource_id(id);
    let removals: Vec<_> = std::iter::once(own)
        .chain(parts::resource_ids(id.as_str(), parts))
        .collect();
    change.together(&[], &removals).await
}

/// Changes what is published of a table; `None` when it is to be published anew: because another
/// build has written it, because it has outgrown its parts, and when so much changes that it is as
/// good.
async fn by_entries(
    change: &mut Change<'_>,
    table: &LookupTable,
    entries: TableChange,
) -> Result<Option<Size>, Error> {
    let Some(body) = change
        .published_body(Kind::LookupTable, table.id.as_str())
        .await?
    else {
        return Ok(None);
    };
    let Some(head) = parts::read_head(&body) else {
        let Ok(body) = table::changed(&body, &entries) else {
            return Ok(None);
        };
        let size = table::size(&body).map_err(|_| Error::internal())?;
        if !parts::suits(0, size.text_bytes) {
            return Ok(None);
        }
        change
            .put_body(Kind::LookupTable, table.id.as_str(), &body)
            .await?;
        return Ok(Some(size));
    };
    let by_part = by_part(entries, head.parts);
    if by_part.len() > head.parts as usize / 2 {
        return Ok(None);
    }
    let mut bodies = Vec::new();
    let mut before = Size::default();
    let mut after = Size::default();
    for (part, entries) in by_part {
        let id = parts::part_id(&head.id, head.parts, part);
        let Some(former) = change.published_body(Kind::LookupPart, &id).await? else {
            return Ok(None);
        };
        let Ok(next) = table::changed(&former, &entries) else {
            return Ok(None);
        };
        let (Ok(had), Ok(has)) = (table::size(&former), table::size(&next)) else {
            return Ok(None);
        };
        (before, after) = (sum(before, had), sum(after, has));
        bodies.push((Kind::LookupPart.resource_id(id), next));
    }
    let all = Size {
        entries: table.entries_count as usize,
        text_bytes: head.text_bytes as usize,
    };
    let size =
        replaced(all, before, after).filter(|size| parts::suits(head.parts, size.text_bytes));
    let Some(size) = size else { return Ok(None) };
    let own = parts::head(&own(table, head.parts, size));
    bodies.push((Kind::LookupTable.resource_id(&table.id), own));
    change.together(&bodies, &[]).await?;
    Ok(Some(size))
}

/// How many parts the table is published in; 0 when it is whole, or not published.
async fn former_parts(change: &mut Change<'_>, id: &LookupTableId) -> Result<u32, Error> {
    let body = change
        .published_body(Kind::LookupTable, id.as_str())
        .await?;
    Ok(body
        .and_then(|body| parts::read_head(&body))
        .map_or(0, |head| head.parts))
}

/// The table without its entries.
fn own(table: &LookupTable, parts: u32, size: Size) -> plan::LookupTable {
    plan::LookupTable {
        id: table.id.as_str().to_owned(),
        name: table.name.clone(),
        version: table.version,
        parts,
        text_bytes: if parts == 0 {
            0
        } else {
            size.text_bytes as u64
        },
        ..plan::LookupTable::default()
    }
}

fn by_part(entries: TableChange, parts: u32) -> BTreeMap<u32, TableChange> {
    let TableChange {
        version,
        upserts,
        removals,
        ..
    } = entries;
    let mut by_part: BTreeMap<u32, TableChange> = BTreeMap::new();
    let empty = || TableChange {
        version,
        ..TableChange::default()
    };
    for entry in upserts {
        let part = by_part
            .entry(parts::of_key(&entry.key, parts))
            .or_insert_with(empty);
        part.upserts.push(entry);
    }
    for key in removals {
        let part = by_part
            .entry(parts::of_key(&key, parts))
            .or_insert_with(empty);
        part.removals.push(key);
    }
    by_part
}

fn sum(a: Size, b: Size) -> Size {
    Size {
        entries: a.entries + b.entries,
        text_bytes: a.text_bytes + b.text_bytes,
    }
}

/// What all is when some of it was `before` and is `after`; `None` when that was not of it.
fn replaced(all: Size, before: Size, after: Size) -> Option<Size> {
    let Size {
        entries,
        text_bytes,
    } = sum(all, after);
    Some(Size {
        entries: entries.checked_sub(before.entries)?,
        text_bytes: text_bytes.checked_sub(before.text_bytes)?,
    })
}
