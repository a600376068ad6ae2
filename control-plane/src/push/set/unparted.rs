//! A set as builds take it that know no lookup tables in parts: such tables are whole in it. The
//! next one is made of the one before and of what changed, by walking a changed table once; nothing
//! of a table is taken apart for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use kanat_plan_stream::{Kind, parts, table};
use kanat_proto::node::v1::TableChange;
use kanat_proto::plan::v1::LookupTable;

use super::{Entry, Set};

/// A set, and what such builds get in its place.
#[derive(Debug, Clone)]
pub struct Unparted {
    of: Arc<Set>,
    set: Arc<Set>,
}

impl Unparted {
    /// Of a set that nothing is known of.
    pub fn new(of: &Arc<Set>) -> Self {
        let changes = of.iter().filter_map(|(id, entry)| match Kind::parse(id) {
            Some((Kind::LookupPart, _)) => Some((id.to_owned(), None)),
            Some((Kind::LookupTable, _)) => {
                Some((id.to_owned(), Some(whole(of, entry.parted(id)?, None)?)))
            }
            Some(_) | None => None,
        });
        let changes: Vec<_> = changes.collect();
        let set = if changes.is_empty() {
            Arc::clone(of)
        } else {
            Arc::new(of.with(of.generation, changes))
        };
        Self {
            of: Arc::clone(of),
            set,
        }
    }

    /// Of the set that came after it.
    #[must_use]
    pub fn next(&self, of: &Arc<Set>) -> Self {
        if self.of.epoch != of.epoch {
            return Self::new(of);
        }
        let mut tables = BTreeSet::new();
        let mut changes = Vec::new();
        for id in self.of.differing(of) {
            let former = self.of.get(id);
            let entry = of.get(id);
            if former.map(|entry| entry.hash) == entry.map(|entry| entry.hash) {
                continue;
            }
            match Kind::parse(id) {
                Some((Kind::LookupPart, part)) => {
                    tables.extend(
                        parts::table_of(part).map(|table| Kind::LookupTable.resource_id(table)),
                    );
                }
                Some((Kind::LookupTable, _)) => {
                    tables.insert(id.to_owned());
                }
                Some(_) | None => changes.push((id.to_owned(), entry.cloned())),
            }
        }
        changes.extend(tables.into_iter().map(|id| {
            let table = self.table(of, &id);
            (id, table)
        }));
        Self {
            of: Arc::clone(of),
            set: Arc::new(self.set.with(of.generation, changes)),
        }
    }

    /// Whether it is that of just this set.
    pub fn is_of(&self, set: &Arc<Set>) -> bool {
        Arc::ptr_eq(&self.of, set)
    }

    /// What goes to the nodes.
    pub fn set(&self) -> &Arc<Set> {
        &self.set
    }

    /// The table of this id as it is in `of`. One that lacks a part stays as it is, and is
    /// withheld.
    fn table(&self, of: &Set, id: &str) -> Option<Arc<Entry>> {
        let entry = of.get(id)?;
        let Some(head) = entry.parted(id) else {
            return Some(Arc::clone(entry));
        };
        let former = self
            .set
            .get(id)
            .filter(|former| former.schema < parts::SCHEMA);
        let patched = former.and_then(|former| self.patched(of, id, &head, former));
        patched
            .map(Arc::new)
            .or_else(|| whole(of, head, former))
            .or_else(|| Some(Arc::clone(entry)))
    }

    /// The table after the changes of its parts; `None` when it was not in the same parts, or the
    /// way of one is not known.
    fn patched(&self, of: &Set, id: &str, head: &LookupTable, former: &Entry) -> Option<Entry> {
        let before = self.of.get(id)?.parted(id)?;
        if (&before.name, before.parts) != (&head.name, head.parts) {
            return None;
        }
        let mut changes = Vec::new();
        for part in parts::resource_ids(&head.id, head.parts) {
            let before = self.of.get(&part)?;
            let after = of.get(&part)?;
            if before.hash != after.hash {
                changes.push(after.change_from(before.hash)?);
            }
        }
        // No two parts have a key in common.
        let entries = table::merged(&changes).unwrap_or_default();
        former.after(
            id,
            TableChange {
                version: head.version,
                ..entries
            },
        )
    }
}

/// The table of `head` with the entries of its parts; `None` when one is missing, or none.
fn whole(of: &Set, head: LookupTable, former: Option<&Arc<Entry>>) -> Option<Arc<Entry>> {
    let id = Kind::LookupTable.resource_id(&head.id);
    let parts: Option<Vec<_>> = parts::resource_ids(&head.id, head.parts)
        .map(|part| of.get(&part))
        .collect();
    let body = parts::whole(&head, parts?.into_iter().map(|part| part.body.as_ref())).ok()?;
    Some(Arc::new(match former {
        Some(former) => Entry::of_table_after(former, &id, body.into()),
        None => Entry::new(body.into()),
    }))
}

#[cfg(test)]
mod tests {
    use kanat_model::id::EpochId;
    use kanat_plan_stream::SetHash;
    use kanat_plan_stream::schema::of as schema_of;
    use kanat_proto::plan::v1::lookup_table::Entry as Row;
    use prost::Message;

    use super::super::Change;
    use super::*;

    const TABLE: &str = "lookup_table/lkp_1";
    const PARTS: u32 = 5;

    /// A table of that version, whose entry of that number was changed last.
    fn table(version: u32, changed: usize) -> LookupTable {
        let value = |n| {
            if n == changed {
                format!("of {version}")
            } else {
                "x".repeat(10)
            }
        };
        let rows = (0..500).map(|n| Row {
            key: format!("key {n:04}"),
            value: value(n),
        });
        let id = "lkp_1".to_owned();
        LookupTable {
            id,
            name: "eu".to_owned(),
            version,
            entries: rows.collect(),
            ..LookupTable::default()
        }
    }

    /// The resources of the table in parts.
    fn parted(table: &LookupTable, count: u32) -> Vec<(String, Vec<u8>)> {
        let head = parts::head(&LookupTable {
            parts: count,
            text_bytes: 9,
            ..table.clone()
        });
        let parts = parts::split(table.clone(), count).into_iter();
        let parts =
            parts.map(|part| (Kind::LookupPart.resource_id(&part.id), part.encode_to_vec()));
        parts.chain([(TABLE.to_owned(), head)]).collect()
    }

    fn first(resources: impl IntoIterator<Item = (String, Vec<u8>)>) -> Arc<Set> {
        let entries = resources
            .into_iter()
            .map(|(id, body)| (id, Entry::new(body.into())));
        Arc::new(Set::new(EpochId::from("epoch_1"), 1, entries))
    }

    /// The set after these resources came, as it is read from the store.
    fn after(set: &Arc<Set>, resources: impl IntoIterator<Item = (String, Vec<u8>)>) -> Arc<Set> {
        let changes = resources.into_iter().map(|(id, body)| {
            let entry = match set.get(&id) {
                Some(former) if id.starts_with("lookup") => {
                    Entry::of_table_after(former, &id, body.into())
                }
                _ => Entry::new(body.into()),
            };
            (id, Change::Upsert(entry))
        });
        Arc::new(set.changed(set.generation + 1, changes.collect::<Vec<_>>()))
    }

    #[track_caller]
    fn has(unparted: &Unparted, table: &LookupTable) {
        let entry = unparted.set().get(TABLE).unwrap();
        assert_eq!(entry.body.as_ref(), table.encode_to_vec().as_slice());
        assert_eq!(entry.schema, 1);
        assert_eq!(schema_of(&entry.body), 1);
        let set = unparted.set();
        assert!(
            set.iter().all(|(id, _)| !id.starts_with("lookup_part/")),
            "{set:?}"
        );
        assert_eq!(
            set.hash,
            SetHash::of(set.iter().map(|(id, entry)| (id, entry.hash)))
        );
    }

    #[test]
    fn a_build_that_knows_no_parts_gets_tables_whole() {
        let flow = || [("flow/1".to_owned(), b"a".to_vec())];
        let without = first(flow());
        assert!(
            Arc::ptr_eq(Unparted::new(&without).set(), &without),
            "there is nothing to make"
        );

        let before = first(flow().into_iter().chain(parted(&table(4, 7), PARTS)));
        let made = Unparted::new(&before);
        has(&made, &table(4, 7));
        assert_eq!(made.set().iter().count(), 2);

        let other = after(&before, [("flow/1".to_owned(), b"b".to_vec())]);
        let next = made.next(&other);
        assert!(
            Arc::ptr_eq(
                next.set().get(TABLE).unwrap(),
                made.set().get(TABLE).unwrap()
            ),
            "made once"
        );
        assert_eq!(next.set().get("flow/1").unwrap().body.as_ref(), b"b");
        assert!(next.is_of(&other) && next.set().generation == 2);
    }

    #[test]
    fn a_whole_table_changes_by_the_entries_of_its_parts() {
        let mut set = first(parted(&table(1, 1), PARTS));
        let first = Unparted::new(&set);
        let mut made = first.clone();
        for version in 2..6 {
            let next = table(version, version as usize * 31);
            set = after(&set, parted(&next, PARTS));
            made = made.next(&set);
            has(&made, &next);
        }
        // Several generations at once, and the way there for builds that take changes by entries.
        let jump = first.next(&set);
        has(&jump, &table(5, 155));
        for made in [made, jump] {
            let from = first.set().get(TABLE).unwrap();
            let to = made.set().get(TABLE).unwrap();
            let way = to.change_from(from.hash).unwrap();
            assert_eq!(way.version, 5);
            assert_eq!(way.resource_id.as_str(), TABLE);
            assert_eq!(
                table::changed(&from.body, &way).as_deref(),
                Ok(to.body.as_ref())
            );
        }
    }

    #[test]
    fn a_table_that_is_renamed_taken_apart_anew_put_together_or_gone_is_as_it_is_published() {
        let set = first(parted(&table(1, 1), PARTS));
        let made = Unparted::new(&set);
        let renamed = LookupTable {
            name: "us".to_owned(),
            ..table(2, 1)
        };
        let set = after(&set, parted(&renamed, PARTS));
        let made = made.next(&set);
        has(&made, &renamed);

        let again = after(&set, parted(&table(3, 1), 7));
        let removed = parts::resource_ids("lkp_1", PARTS);
        let set = Arc::new(again.changed(4, removed.map(|id| (id, Change::Removal))));
        let made = made.next(&set);
        has(&made, &table(3, 1));

        let whole = after(&set, [(TABLE.to_owned(), table(4, 1).encode_to_vec())]);
        let set = Arc::new(whole.changed(
            6,
            parts::resource_ids("lkp_1", 7).map(|id| (id, Change::Removal)),
        ));
        let made = made.next(&set);
        has(&made, &table(4, 1));

        let set = after(&set, parted(&table(5, 1), PARTS));
        let made = made.next(&set);
        has(&made, &table(5, 1));

        let gone = parts::resource_ids("lkp_1", PARTS).chain([TABLE.to_owned()]);
        let set = Arc::new(set.changed(9, gone.map(|id| (id, Change::Removal))));
        assert!(made.next(&set).set().is_empty());
    }

    #[test]
    fn a_table_that_lacks_a_part_is_not_sent_without_some_of_its_entries() {
        let set = first(
            parted(&table(1, 1), PARTS)
                .into_iter()
                .filter(|(id, _)| !id.ends_with("/3")),
        );
        let made = Unparted::new(&set);
        assert_eq!(
            made.set().get(TABLE).unwrap().schema,
            parts::SCHEMA,
            "withheld"
        );
        let set = after(&set, parted(&table(2, 2), PARTS));
        let made = made.next(&set);
        has(&made, &table(2, 2));
        let set = Arc::new(set.changed(3, [("lookup_part/lkp_1/5/3".to_owned(), Change::Removal)]));
        assert_eq!(
            made.next(&set).set().get(TABLE).unwrap().schema,
            parts::SCHEMA,
            "withheld"
        );
    }

    #[test]
    fn a_store_of_another_past_is_made_anew() {
        let set = first(parted(&table(1, 1), PARTS));
        let made = Unparted::new(&set);
        let entries = parted(&table(2, 3), PARTS)
            .into_iter()
            .map(|(id, body)| (id, Entry::new(body.into())));
        let other = Arc::new(Set::new(EpochId::from("epoch_2"), 1, entries));
        let next = made.next(&other);
        has(&next, &table(2, 3));
        assert_eq!(next.set().epoch, other.epoch);
    }
}
