//! Bodies and changes of lookup tables, back and forth.

use kanat_proto::plan::v1::Head;

use super::*;

fn body(version: u32, entries: &[(&str, &str)]) -> Vec<u8> {
    let entries = entries.iter().map(|(key, value)| Entry {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    let id = "lkp_1".to_owned();
    let name = "countries".to_owned();
    LookupTable {
        id,
        name,
        version,
        entries: entries.collect(),
        ..LookupTable::default()
    }
    .encode_to_vec()
}

fn change(version: u32, upserts: &[(&str, &str)], removals: &[&str]) -> TableChange {
    let upserts = upserts.iter().map(|(key, value)| TableEntry {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    let removals = removals.iter().map(|key| (*key).to_owned()).collect();
    TableChange {
        version,
        upserts: upserts.collect(),
        removals,
        ..TableChange::default()
    }
}

#[test]
fn a_change_leads_from_one_body_to_the_other_byte_for_byte() {
    let large = "x".repeat(300);
    let some = [
        ("b", "1"),
        ("d", ""),
        ("d\u{e9}", large.as_str()),
        ("f", "3"),
        ("z", large.as_str()),
    ];
    for (entries, expected) in [
        (
            vec![
                ("b", "1"),
                ("d", ""),
                ("d\u{e9}", &large),
                ("f", "4"),
                ("z", &large),
            ],
            change(8, &[("f", "4")], &[]),
        ),
        (
            vec![
                ("b", "1"),
                ("d", "x"),
                ("d\u{e9}", &large),
                ("f", ""),
                ("z", &large),
            ],
            change(8, &[("d", "x"), ("f", "")], &[]),
        ),
        (
            vec![
                ("a", "0"),
                ("b", "1"),
                ("d", ""),
                ("d\u{e9}", &large),
                ("f", "3"),
                ("z", &large),
            ],
            change(8, &[("a", "0")], &[]),
        ),
        (
            vec![("d", ""), ("d\u{e9}", &large), ("z", &large), ("zz", "9")],
            change(8, &[("zz", "9")], &["b", "f"]),
        ),
        (some.to_vec(), change(8, &[], &[])),
    ] {
        let from = body(7, &some);
        let to = body(8, &entries);
        assert_eq!(between(&from, &to), Some(expected.clone()));
        assert_eq!(changed(&from, &expected), Ok(to));
    }
}

#[test]
fn a_table_begins_and_ends_without_entries() {
    let empty = body(1, &[]);
    let one = body(2, &[("a", "1")]);
    assert_eq!(
        changed(&empty, &change(2, &[("a", "1")], &[])),
        Ok(one.clone())
    );
    assert_eq!(changed(&one, &change(1, &[], &["a"])), Ok(empty.clone()));
    assert_eq!(
        size(&empty),
        Ok(Size {
            entries: 0,
            text_bytes: 0
        })
    );
    assert_eq!(
        size(&one),
        Ok(Size {
            entries: 1,
            text_bytes: 2
        })
    );
    assert_eq!(between(&empty, &one), None, "the table itself is as good");
}

#[test]
fn what_is_not_only_a_change_of_entries_is_none() {
    let from = body(1, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    assert_eq!(
        between(&from, &body(2, &[("a", "2"), ("b", "3"), ("c", "4")])),
        None,
        "most of it is another"
    );
    let renamed = LookupTable {
        name: "other".to_owned(),
        ..LookupTable::decode(from.as_slice()).unwrap()
    };
    assert_eq!(between(&from, &renamed.encode_to_vec()), None);
    let newer = [from.clone(), Head { plan_schema: 2 }.encode_to_vec()].concat();
    assert_eq!(between(&from, &newer), None);
    assert_eq!(changed(&newer, &change(2, &[], &[])), Err(Unreadable));
    assert_eq!(
        changed(&body(1, &[("b", ""), ("a", "")]), &change(2, &[], &[])),
        Err(Unreadable),
        "keys have their order"
    );
    for cut in 1..from.len() {
        // No panic, whatever comes.
        let _ = (
            between(&from[..cut], &from),
            changed(&from[..cut], &change(2, &[("x", "1")], &["a"])),
        );
    }
}

#[test]
fn several_changes_are_one() {
    let hashed = |from: u8, hash: u8, change| TableChange {
        from_hash: vec![from],
        hash: vec![hash],
        ..change
    };
    let steps = [
        hashed(1, 2, change(2, &[("a", "1"), ("b", "2")], &["c"])),
        hashed(2, 3, change(3, &[("c", "3")], &["a"])),
        hashed(3, 4, change(4, &[("b", "4")], &[])),
    ];
    let one = merged(&steps).unwrap();
    assert_eq!(
        one,
        hashed(1, 4, change(4, &[("b", "4"), ("c", "3")], &["a"]))
    );
    let from = body(1, &[("c", "0"), ("d", "5")]);
    let by_steps = steps
        .iter()
        .fold(from.clone(), |body, step| changed(&body, step).unwrap());
    assert_eq!(changed(&from, &one), Ok(by_steps));
    assert_eq!(merged([]), None);
}
