//! Lookup tables that change by their entries.

use kanat_plan_stream::{Kind, parts, table};
use kanat_proto::node::v1::{TableChange, TableEntry};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;

use super::*;

/// A large table named `eu`, whose entry `name` has this value.
fn large(version: u32, name: &str) -> Resource {
    let filler = |n: u32| Entry {
        key: format!("filler {n:03}"),
        value: "x".repeat(100),
    };
    let entries = (0..500)
        .map(filler)
        .chain([Entry {
            key: "name".to_owned(),
            value: name.to_owned(),
        }])
        .collect();
    let table = LookupTable {
        id: "lt_1".to_owned(),
        name: "eu".to_owned(),
        version,
        entries,
        ..LookupTable::default()
    };
    control::resource(Kind::LookupTable, "lt_1", &table)
}

/// The way from one body to another.
fn change(from: &Resource, to: &Resource) -> TableChange {
    let from_hash = from.hash.clone();
    let hash = to.hash.clone();
    let change = table::between(&from.body, &to.body).unwrap();
    TableChange {
        resource_id: to.id.clone(),
        from_hash,
        hash,
        ..change
    }
}

#[tokio::test]
async fn a_table_changes_by_its_entries_and_is_found_so_after_a_restart() {
    let (folder, mut control, mut stream, node, mut set) = running().await;
    assert!(stream.hello.takes_table_changes);
    set.push(large(1, "one"));
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    let begun_with = node.plans.load();
    for (generation, name) in [(2, "two"), (3, "three")] {
        let former = std::mem::replace(&mut set[2], large(generation, name));
        stream
            .table_change(generation.into(), &change(&former, &set[2]), &set)
            .await;
        stream.acked(u64::from(generation) + 1, &set).await;
        assert_eq!(node.table("eu").as_deref(), Some(name));
    }
    let former = begun_with
        .environment(&environment())
        .unwrap()
        .lookup("eu", "name");
    assert_eq!(
        former,
        Lookup::Value("one"),
        "who began with the former plans ends with them"
    );
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    let stream = control.stream().await;
    assert_eq!(stream.hello.states[0].set_hash, control::set_hash(&set));
    assert_eq!(node.table("eu").as_deref(), Some("three"));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_change_of_entries_that_does_not_fit_what_the_node_has_asks_for_a_snapshot() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    set.push(large(1, "one"));
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    let mut next = set.clone();
    next[2] = large(2, "two");
    let sound = change(&set[2], &next[2]);
    let entry = TableEntry {
        key: "name".to_owned(),
        value: "forged".to_owned(),
    };
    for wrong in [
        TableChange {
            from_hash: vec![7; 32],
            ..sound.clone()
        },
        TableChange {
            upserts: vec![entry],
            ..sound.clone()
        },
        TableChange {
            version: 3,
            ..sound.clone()
        },
        TableChange {
            resource_id: "lookup_table/lt_9".to_owned(),
            ..sound.clone()
        },
        TableChange {
            resource_id: "flow/flw_1".to_owned(),
            from_hash: set[0].hash.clone(),
            ..sound.clone()
        },
    ] {
        stream.table_change(2, &wrong, &next).await;
        assert!(
            matches!(stream.answer().await, In::SnapshotRequest(_)),
            "{wrong:?}"
        );
        assert_eq!(node.table("eu").as_deref(), Some("one"));
    }
    stream.snapshot("env_1", 3, &next).await;
    stream.acked(3, &next).await;
    assert_eq!(node.table("eu").as_deref(), Some("two"));
    drop(stream);
    node.stop().await;
}

/// The table named `eu` in parts: its own resource, and each part.
fn in_parts(version: u32, name: &str) -> Vec<Resource> {
    let whole = large(version, name);
    let table = LookupTable {
        parts: 5,
        ..LookupTable::decode(whole.body).unwrap()
    };
    let head = parts::head(&table);
    let own = Resource {
        hash: Hash::of(&head).to_vec(),
        body: head.into(),
        ..whole
    };
    let part = |part: LookupTable| control::resource(Kind::LookupPart, &part.id, &part);
    std::iter::once(own)
        .chain(
            parts::split(
                LookupTable {
                    version: 1,
                    ..table
                },
                5,
            )
            .into_iter()
            .map(part),
        )
        .collect()
}

#[tokio::test]
async fn a_table_in_parts_changes_by_one_of_them_and_is_found_so_after_a_restart() {
    let (folder, mut control, mut stream, node, mut set) = running().await;
    set.extend(in_parts(1, "one"));
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("one"));
    let begun_with = node.plans.load();
    let changed = 3 + parts::of_key("name", 5) as usize;
    let next = LookupTable::decode(set[changed].body.clone()).unwrap();
    let entries = next
        .entries
        .into_iter()
        .map(|entry| match entry.key.as_str() {
            "name" => Entry {
                value: "two".to_owned(),
                ..entry
            },
            _ => entry,
        });
    let next = LookupTable {
        version: 2,
        entries: entries.collect(),
        ..next
    };
    let next = control::resource(Kind::LookupPart, &next.id, &next);
    let step = change(&set[changed], &next);
    (set[2], set[changed]) = (in_parts(2, "two").remove(0), next);
    stream.table_change_with(2, &step, &set[2..3], &set).await;
    stream.acked(3, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("two"));
    let found = |key: &str| match node
        .plans
        .load()
        .environment(&environment())
        .unwrap()
        .lookup("eu", key)
    {
        Lookup::Value(value) => Some(value.len()),
        Lookup::NoTable | Lookup::NoKey => None,
    };
    assert!(
        (0..500).all(|n| found(&format!("filler {n:03}")) == Some(100)),
        "every key is found in its part"
    );
    assert_eq!(found("filler 500"), None);
    let former = begun_with
        .environment(&environment())
        .unwrap()
        .lookup("eu", "name");
    assert_eq!(
        former,
        Lookup::Value("one"),
        "who began with the former plans ends with them"
    );
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    let mut stream = control.stream().await;
    assert_eq!(stream.hello.states[0].set_hash, control::set_hash(&set));
    assert_eq!(node.table("eu").as_deref(), Some("two"));

    // It shrinks, and is whole again.
    let whole = large(3, "three");
    let gone: Vec<_> = set[3..].iter().map(|part| part.id.clone()).collect();
    set.truncate(2);
    set.push(whole);
    stream
        .delta(
            3,
            &set[2..],
            &gone.iter().map(String::as_str).collect::<Vec<_>>(),
            &set,
        )
        .await;
    stream.acked(4, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("three"));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_table_that_lacks_a_part_is_refused_and_the_former_one_stays() {
    let (_folder, _control, mut stream, node, set) = running().await;
    let mut running = set.clone();
    let mut sent = set;
    running.push(large(1, "one"));
    stream.delta(1, &running[2..], &[], &running).await;
    stream.acked(2, &running).await;
    let mut parts = in_parts(2, "two");
    let lost = parts.remove(3);
    sent.extend(parts.clone());
    stream.delta(2, &parts, &[], &sent).await;
    running.extend(parts.split_off(1));
    let reasons = stream.nacked(3, &["lookup_table/lt_1"], &running).await;
    assert_eq!(
        reasons,
        [format!("its part {:?} is not in the set", lost.id)]
    );
    assert_eq!(node.table("eu").as_deref(), Some("one"));
    drop(stream);
    node.stop().await;
}
