//! Lookup tables in parts, which is how nodes get them: the part of a key, the number of parts of a
//! table, the split of a table, and changes of its entries. The parts are resources beside the
//! table's own, which is its head: it has the number of parts and none of the entries. A change of
//! one entry costs one part and the head, on both ends of the stream.

use std::collections::BTreeMap;

use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;

use crate::{Kind, plan_schema};

/// Encoded bytes of the entries of a part when a table is split.
const PART_BYTES: usize = 16 << 10;

/// Factor by which the parts may grow, on average, before the table is split anew. A part is sent
/// and written whole, and has to stay below 64 KiB.
const MAX_GROWTH: usize = 2;

/// Factor by which the parts may shrink, on average, before the table is split anew.
const MAX_SHRINKAGE: usize = 4;

/// Upper bound of the encoding overhead of a small entry, in bytes.
const ENTRY_OVERHEAD: usize = 8;

/// Size of a table, or of some of its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of entries.
    pub entries: usize,
    /// Bytes of all keys and values.
    pub text_bytes: usize,
}

impl Size {
    /// The size of these entries.
    pub fn of(entries: &[Entry]) -> Self {
        let text_bytes = entries
            .iter()
            .map(|entry| entry.key.len() + entry.value.len());
        Self {
            entries: entries.len(),
            text_bytes: text_bytes.sum(),
        }
    }

    fn encoded_bytes(self) -> usize {
        self.text_bytes + self.entries * ENTRY_OVERHEAD
    }
}

/// Change of one entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Key of the entry.
    pub key: String,
    /// The value that the entry gets; `None` removes the entry.
    pub value: Option<String>,
}

/// Returns the entries after `edits`, in the order of their keys. Of edits of one key, the last one
/// counts.
pub fn edited(entries: Vec<Entry>, edits: impl IntoIterator<Item = Edit>) -> Vec<Entry> {
    let before = entries
        .into_iter()
        .map(|entry| (entry.key, Some(entry.value)));
    let after = edits.into_iter().map(|edit| (edit.key, edit.value));
    let entries: BTreeMap<_, _> = before.chain(after).collect();
    entries
        .into_iter()
        .filter_map(|(key, value)| Some(Entry { key, value: value? }))
        .collect()
}

/// Returns the number of parts that a table of this size is split into; at least 1.
pub fn count(size: Size) -> u32 {
    let parts = size.encoded_bytes().div_ceil(PART_BYTES).max(1);
    u32::try_from(parts).unwrap_or(u32::MAX)
}

/// Returns whether `parts` is still a good number of parts for a table of this size; `false` for 0,
/// with which former builds publish small tables.
pub fn is_balanced(parts: u32, size: Size) -> bool {
    let usual = parts as usize * PART_BYTES;
    let is_large_enough = parts == 1 || size.encoded_bytes() >= usual / MAX_SHRINKAGE;
    parts > 0 && is_large_enough && size.encoded_bytes() <= usual * MAX_GROWTH
}

/// Returns the number of the part that has `key`. It is the same in every build, for ever.
pub fn of_key(key: &str, parts: u32) -> u32 {
    // FNV-1a, with its bits mixed once more.
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    // Less than `parts`, which is a u32.
    (mixed % u64::from(parts.max(1))) as u32
}

/// Returns the id of a part: its resource id without the kind.
pub fn part_id(table: &str, parts: u32, part: u32) -> String {
    format!("{table}/{parts}/{part}")
}

/// Returns the resource ids of all parts of a table.
pub fn resource_ids(table: &str, parts: u32) -> impl Iterator<Item = String> {
    (0..parts).map(move |part| Kind::LookupPart.resource_id(part_id(table, parts, part)))
}

/// The plan schema of tables in parts.
const PARTS_SCHEMA: u32 = 2;

/// Returns the body of a head or of a part, with the plan schema that it requires.
pub fn encode(table: &LookupTable) -> Vec<u8> {
    plan_schema::encode(table, PARTS_SCHEMA)
}

/// Splits a table, whose entries are in the order of their keys, into its parts by their numbers.
pub fn split(table: LookupTable, parts: u32) -> Vec<LookupTable> {
    let mut split: Vec<_> = (0..parts)
        .map(|part| LookupTable {
            id: part_id(&table.id, parts, part),
            version: table.version,
            ..LookupTable::default()
        })
        .collect();
    for entry in table.entries {
        split[of_key(&entry.key, parts) as usize]
            .entries
            .push(entry);
    }
    split
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn table(entries: usize) -> LookupTable {
        let entry = |n| Entry {
            key: format!("customer-{n:06}"),
            value: format!("region {n}"),
        };
        LookupTable {
            id: "lkp_1".to_owned(),
            name: "eu".to_owned(),
            version: 3,
            entries: (0..entries).map(entry).collect(),
            ..LookupTable::default()
        }
    }

    #[test]
    fn a_table_is_split_evenly_and_every_entry_is_in_the_part_of_its_key() {
        let table = table(10_000);
        let parts = split(table.clone(), 20);
        let ids: Vec<_> = parts
            .iter()
            .map(|part| Kind::LookupPart.resource_id(&part.id))
            .collect();
        assert_eq!(ids, resource_ids("lkp_1", 20).collect::<Vec<_>>());
        for (number, part) in (0..).zip(&parts) {
            assert!(part.entries.is_sorted_by(|a, b| a.key < b.key));
            assert!(part.entries.iter().all(|e| of_key(&e.key, 20) == number));
            assert!((400..600).contains(&part.entries.len()), "{}", part.id);
        }
        let all = parts.into_iter().flat_map(|part| part.entries);
        assert_eq!(Size::of(&all.collect::<Vec<_>>()), Size::of(&table.entries));
    }

    #[test]
    fn a_body_says_the_plan_schema_that_it_requires_and_reads_back() {
        let table = table(3);
        let body = encode(&table);
        assert_eq!(crate::plan_schema::required_by(&body), PARTS_SCHEMA);
        assert_eq!(LookupTable::decode(body.as_slice()), Ok(table));
    }

    #[test]
    fn edits_add_overwrite_and_remove_entries_in_the_order_of_keys() {
        let edit = |key: &str, value: Option<&str>| Edit {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let entries = [("b", "1"), ("d", "2"), ("f", "3")].map(|(key, value)| Entry {
            key: key.to_owned(),
            value: value.to_owned(),
        });
        let edits = [
            edit("f", Some("4")),
            edit("a", Some("")),
            edit("d", None),
            edit("none", None),
            edit("d\u{e9}", Some("5")),
            edit("f", Some("6")),
        ];
        let edited = edited(entries.into(), edits);
        let edited: Vec<_> = edited
            .iter()
            .map(|entry| (entry.key.as_str(), entry.value.as_str()))
            .collect();
        assert_eq!(
            edited,
            [("a", ""), ("b", "1"), ("d\u{e9}", "5"), ("f", "6")]
        );
    }

    #[test]
    fn a_key_has_its_part_for_ever() {
        let parts = ["", "DE", "customer-000097", "d\u{e9}"]
            .map(|key| [1, 7, 1_000].map(|parts| of_key(key, parts)));
        assert_eq!(parts, [[0, 1, 700], [0, 5, 767], [0, 2, 48], [0, 1, 559]]);
    }

    #[test]
    fn a_table_is_split_anew_only_when_its_size_became_another() {
        let size = |text_bytes| Size {
            entries: 0,
            text_bytes,
        };
        assert_eq!(count(size(0)), 1);
        assert_eq!(count(size(PART_BYTES)), 1);
        assert_eq!(count(size(PART_BYTES + 1)), 2);
        assert!(is_balanced(1, size(0)));
        assert!(!is_balanced(0, size(0)), "a table of a former build");
        for bytes in [PART_BYTES, 64 << 10, 1 << 20, 16 << 20] {
            let parts = count(size(bytes));
            for near in [bytes / 3, bytes, bytes * 2] {
                assert!(
                    is_balanced(parts, size(near)),
                    "{parts} parts, {near} bytes"
                );
            }
            assert!(!is_balanced(parts, size(bytes * 3)), "{parts} parts");
            assert!(
                parts == 1 || !is_balanced(parts, size(bytes / 5)),
                "{parts} parts"
            );
        }
    }

    #[test]
    fn a_part_of_a_million_small_entries_takes_less_than_64_kib() {
        let entry = |n| Entry {
            key: format!("{n:06}"),
            value: "1".to_owned(),
        };
        let table = LookupTable {
            entries: (0..1_000_000).map(entry).collect(),
            ..table(0)
        };
        let size = Size::of(&table.entries);
        let fewest = (1..).find(|parts| is_balanced(*parts, size)).unwrap();
        let parts = split(table, fewest);
        let largest = parts.iter().map(|part| encode(part).len()).max();
        assert!(largest < Some(64 << 10), "{largest:?} bytes");
    }
}
