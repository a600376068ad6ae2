//! Resources that nodes get of a table: its head, and one for each part of its entries, so that a
//! change of one entry reads and writes one part. The number of parts follows from the table's
//! size.

use std::collections::BTreeMap;

use kanat_model::id::LookupTableId;
use kanat_model::{Result, Timestamp, saturated};
use kanat_plan_stream::Kind;
use kanat_plan_stream::parts::{self, Edit, Size};
use kanat_proto::plan::v1::{self as plan, lookup_table::Entry};
use kanat_store::lookup_table::{self, LookupTable, entry};

use super::entries;
use crate::app::PublishTransaction;

/// Publishes a table whose entries were edited, and returns it as it is now. Of the other entries,
/// only those of the same parts are read again.
pub async fn modified(
    change: &mut PublishTransaction<'_>,
    table: &LookupTable,
    edits: Vec<Edit>,
) -> Result<LookupTable> {
    let next = LookupTable {
        version: table.version + 1,
        ..table.clone()
    };
    let size = match edited_parts(change, &next, edits).await? {
        Some(size) => size,
        None => whole(change, &next).await?,
    };
    let count = saturated(size.entries);
    entries::check_count(count)?;
    entries::check_size(size.text_bytes)?;
    Ok(lookup_table::modified(change, &table.id, count, Timestamp::now()).await?)
}

/// Publishes all parts of a table, and returns its size.
pub async fn whole(change: &mut PublishTransaction<'_>, table: &LookupTable) -> Result<Size> {
    let entries: Vec<_> = entry::all(change, &table.id)
        .await?
        .into_iter()
        .map(|entry::Entry { key, value }| Entry { key, value })
        .collect();
    let size = Size::of(&entries);
    let parts = parts::count(size);
    let head = head(table, parts, size);
    let former = published_head(change, &table.id).await?;
    let former = former.map_or(0, |head| head.parts);
    let removals: Vec<_> = parts::resource_ids(&head.id, former)
        .filter(|_| former != parts)
        .collect();
    let mut bodies = vec![head_body(&head)];
    let table = plan::LookupTable { entries, ..head };
    bodies.extend(parts::split(table, parts).iter().map(part_body));
    change.put_and_remove(&bodies, &removals).await?;
    Ok(size)
}

/// Takes a table out of service.
pub async fn remove(change: &mut PublishTransaction<'_>, id: &LookupTableId) -> Result<()> {
    let parts = published_head(change, id).await?;
    let parts = parts.map_or(0, |head| head.parts);
    let own = Kind::LookupTable.resource_id(id);
    let removals: Vec<_> = std::iter::once(own)
        .chain(parts::resource_ids(id.as_str(), parts))
        .collect();
    change.put_and_remove(&[], &removals).await
}

/// Publishes the parts that have edited entries, and returns the size of the table. Returns `None`
/// when the whole table is to be published: a former build published it without parts, it has
/// outgrown its parts, or most of them have edited entries.
async fn edited_parts(
    change: &mut PublishTransaction<'_>,
    table: &LookupTable,
    edits: Vec<Edit>,
) -> Result<Option<Size>> {
    let Some(former) = published_head(change, &table.id).await? else {
        return Ok(None);
    };
    let parts = former.parts;
    let mut edits_by_part: BTreeMap<u32, Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        let part = parts::of_key(&edit.key, parts);
        edits_by_part.entry(part).or_default().push(edit);
    }
    if edits_by_part.len() > parts.div_ceil(2) as usize {
        return Ok(None);
    }
    let mut size = Size {
        entries: table.entries_count as usize,
        text_bytes: former.text_bytes as usize,
    };
    let mut bodies = Vec::new();
    for (number, edits) in edits_by_part {
        let id = parts::part_id(&former.id, parts, number);
        let Some(part) = change
            .published::<plan::LookupTable>(Kind::LookupPart, &id)
            .await?
        else {
            return Ok(None);
        };
        let before = Size::of(&part.entries);
        let part = plan::LookupTable {
            version: table.version,
            entries: parts::edited(part.entries, edits),
            ..part
        };
        let Some(after) = replaced(size, before, Size::of(&part.entries)) else {
            return Ok(None);
        };
        size = after;
        bodies.push(part_body(&part));
    }
    if !parts::is_balanced(parts, size) {
        return Ok(None);
    }
    bodies.push(head_body(&head(table, parts, size)));
    change.put_and_remove(&bodies, &[]).await?;
    Ok(Some(size))
}

async fn published_head(
    change: &mut PublishTransaction<'_>,
    id: &LookupTableId,
) -> Result<Option<plan::LookupTable>> {
    change.published(Kind::LookupTable, id).await
}

/// The table without its entries.
fn head(table: &LookupTable, parts: u32, size: Size) -> plan::LookupTable {
    plan::LookupTable {
        id: table.id.to_string(),
        name: table.name.clone(),
        version: table.version,
        parts,
        text_bytes: size.text_bytes as u64,
        ..plan::LookupTable::default()
    }
}

fn head_body(head: &plan::LookupTable) -> (String, Vec<u8>) {
    (Kind::LookupTable.resource_id(&head.id), parts::encode(head))
}

fn part_body(part: &plan::LookupTable) -> (String, Vec<u8>) {
    (Kind::LookupPart.resource_id(&part.id), parts::encode(part))
}

/// Returns the size of a table in which entries of the size `before` became those of `after`;
/// `None` when the table cannot have had them.
fn replaced(table: Size, before: Size, after: Size) -> Option<Size> {
    Some(Size {
        entries: (table.entries + after.entries).checked_sub(before.entries)?,
        text_bytes: (table.text_bytes + after.text_bytes).checked_sub(before.text_bytes)?,
    })
}
