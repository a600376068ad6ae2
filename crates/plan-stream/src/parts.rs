//! Large lookup tables in parts: which part has a key, how many parts a table has, a table taken
//! apart and put together again. The parts are resources beside the table's own, which says how
//! many there are and grows by one version with every change: what a change of one entry costs, at
//! either end, is the one part and the table's few words.

use kanat_proto::plan::v1::{Head, LookupTable};
use prost::Message;

use crate::Kind;
use crate::table::Unreadable;

/// The plan schema that it takes to run a table in parts.
pub const SCHEMA: u32 = 2;

/// Bytes of keys and values that a table may have before it is taken apart.
const WHOLE_BYTES: usize = 64 << 10;

/// The same of a part when a table is taken apart.
const PART_BYTES: usize = 16 << 10;

/// How far the parts may become larger or smaller than that, on average, before the table is taken
/// apart anew: it costs the whole table, once for very many changes.
const SLACK: usize = 4;

/// How many parts a table of that many bytes of keys and values is made of; 0 when it stays whole.
pub fn count(text_bytes: usize) -> u32 {
    if text_bytes <= WHOLE_BYTES {
        0
    } else {
        u32::try_from(text_bytes.div_ceil(PART_BYTES)).unwrap_or(u32::MAX)
    }
}

/// Whether a table that is in `parts` may stay so with that many bytes of keys and values.
pub fn suits(parts: u32, text_bytes: usize) -> bool {
    match parts {
        0 => text_bytes <= WHOLE_BYTES,
        parts => {
            let usual = parts as usize * PART_BYTES;
            (usual / SLACK..=usual * SLACK).contains(&text_bytes)
        }
    }
}

/// Which of the parts has `key`: the same in every build, for ever.
pub fn of_key(key: &str, parts: u32) -> u32 {
    // FNV-1a, with its bits mixed once more.
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    // Less than `parts`, which is a u32.
    (mixed % u64::from(parts.max(1))) as u32
}

/// What stands after the kind in the resource id of a part.
pub fn part_id(table: &str, parts: u32, part: u32) -> String {
    format!("{table}/{parts}/{part}")
}

/// The table that the part with this [`part_id`] is of; `None` when it is no such id.
pub fn table_of(part_id: &str) -> Option<&str> {
    let mut from_the_end = part_id.rsplitn(3, '/').skip(2);
    from_the_end.next()
}

/// The resource ids of all parts of a table.
pub fn resource_ids(table: &str, parts: u32) -> impl Iterator<Item = String> {
    (0..parts).map(move |part| Kind::LookupPart.resource_id(part_id(table, parts, part)))
}

/// The table's own resource, as the body of one in parts; its entries are left out.
pub fn head(table: &LookupTable) -> Vec<u8> {
    let own = LookupTable {
        entries: Vec::new(),
        ..table.clone()
    };
    let mut body = own.encode_to_vec();
    body.extend(
        Head {
            plan_schema: SCHEMA,
        }
        .encode_to_vec(),
    );
    body
}

/// Reads the table's own resource; `None` when it is not in parts, or not readable.
pub fn read_head(body: &[u8]) -> Option<LookupTable> {
    // Of one that is whole, the entries are not read.
    let in_parts = crate::schema::of(body) >= SCHEMA;
    in_parts
        .then(|| LookupTable::decode(body).ok())?
        .filter(|table| table.parts > 0)
}

/// The parts of a table whose entries are in order of their keys, by their numbers.
pub fn split(table: LookupTable, parts: u32) -> Vec<LookupTable> {
    let LookupTable {
        id,
        version,
        entries,
        ..
    } = table;
    let empty = LookupTable {
        version,
        ..LookupTable::default()
    };
    let mut split: Vec<_> = (0..parts)
        .map(|part| LookupTable {
            id: part_id(&id, parts, part),
            ..empty.clone()
        })
        .collect();
    for entry in entries {
        split[of_key(&entry.key, parts) as usize]
            .entries
            .push(entry);
    }
    split
}

/// The table whole, for builds that know no parts.
///
/// # Errors
/// A part is none.
pub fn whole<'b>(
    head: &LookupTable,
    parts: impl IntoIterator<Item = &'b [u8]>,
) -> Result<Vec<u8>, Unreadable> {
    let mut entries = Vec::new();
    for part in parts {
        entries.extend(LookupTable::decode(part).map_err(|_| Unreadable)?.entries);
    }
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let LookupTable {
        id, name, version, ..
    } = head.clone();
    Ok(LookupTable {
        id,
        name,
        version,
        entries,
        ..LookupTable::default()
    }
    .encode_to_vec())
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::lookup_table::Entry;

    use super::*;

    fn table(entries: usize) -> LookupTable {
        let entry = |n| Entry {
            key: format!("customer-{n:06}"),
            value: format!("region {n}"),
        };
        let entries = (0..entries).map(entry).collect();
        LookupTable {
            id: "lkp_1".to_owned(),
            name: "eu".to_owned(),
            version: 3,
            entries,
            ..LookupTable::default()
        }
    }

    #[test]
    fn a_table_taken_apart_and_put_together_is_as_it_was() {
        let table = table(10_000);
        let head = LookupTable {
            parts: 20,
            text_bytes: 7,
            ..table.clone()
        };
        let body = super::head(&head);
        let parts = split(table.clone(), 20);
        assert_eq!(crate::schema::of(&body), SCHEMA);
        assert_eq!(
            read_head(&body),
            Some(LookupTable {
                entries: Vec::new(),
                ..head.clone()
            })
        );
        assert_eq!(read_head(&table.encode_to_vec()), None);
        assert!(
            parts
                .iter()
                .all(|part| part.entries.is_sorted_by(|a, b| a.key < b.key))
        );
        let sizes = parts.iter().map(|part| part.entries.len());
        assert!(
            sizes.clone().all(|size| (400..600).contains(&size)),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
        let ids: Vec<_> = parts
            .iter()
            .map(|part| Kind::LookupPart.resource_id(&part.id))
            .collect();
        assert_eq!(ids, resource_ids("lkp_1", 20).collect::<Vec<_>>());
        assert!(parts.iter().all(|part| table_of(&part.id) == Some("lkp_1")));
        assert_eq!(table_of("lkp_1"), None);
        assert_eq!(table_of("lkp_1/20"), None);
        let bodies: Vec<_> = parts.iter().map(Message::encode_to_vec).collect();
        assert_eq!(
            whole(&head, bodies.iter().map(Vec::as_slice)),
            Ok(table.encode_to_vec())
        );
        assert_eq!(whole(&head, [b"\xff".as_slice()]), Err(Unreadable));
    }

    #[test]
    fn a_key_has_its_part_for_ever() {
        let parts = ["", "DE", "customer-000097", "d\u{e9}"]
            .map(|key| [1, 7, 1_000].map(|parts| of_key(key, parts)));
        assert_eq!(parts, [[0, 1, 700], [0, 5, 767], [0, 2, 48], [0, 1, 559]]);
    }

    #[test]
    fn a_table_is_taken_apart_anew_only_when_its_size_became_another() {
        assert_eq!(count(0), 0);
        assert_eq!(count(WHOLE_BYTES), 0);
        assert_eq!(count(WHOLE_BYTES + 1), 5);
        for bytes in [WHOLE_BYTES + 1, 1 << 20, 16 << 20] {
            let parts = count(bytes);
            for near in [bytes / 3, bytes, bytes * 3] {
                assert!(suits(parts, near), "{parts} parts, {near} bytes");
            }
            for far in [0, bytes / 5, bytes * 5] {
                assert!(!suits(parts, far), "{parts} parts, {far} bytes");
            }
        }
        assert!(suits(0, 0) && suits(0, WHOLE_BYTES) && !suits(0, WHOLE_BYTES + 1));
    }
}
