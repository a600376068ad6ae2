//! Lookup tables that change by their entries.

use kanat_plan_stream::{Kind, table};
use kanat_proto::node::v1::{TableChange, TableEntry};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;

use super::*;

/// A large table named `eu`, whose entry `name` has this value.
fn large(version: u32, name: &str) -> Resource {
    let filler = |n: u32| Entry { key: format!("filler {n:03}"), value: "x".repeat(100) };
    let entries = (0..500).map(filler).chain([Entry { key: "name".to_owned(), value: name.to_owned() }]).collect();
    let table = LookupTable { id: "lt_1".to_owned(), name: "eu".to_owned(), version, entries };
    control::resource(Kind::LookupTable, "lt_1", &table)
}

/// The way from one body to another.
fn change(from: &Resource, to: &Resource) -> TableChange {
    let (from_hash, hash) = (from.hash.clone(), to.hash.clone());
    let change = table::between(&from.body, &to.body).unwrap();
    TableChange { resource_id: to.id.clone(), from_hash, hash, ..change }
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
        stream.table_change(generation.into(), &change(&former, &set[2]), &set).await;
        stream.acked(u64::from(generation) + 1, &set).await;
        assert_eq!(node.table("eu").as_deref(), Some(name));
    }
    let former = begun_with.environment(&environment()).unwrap().lookup("eu", "name");
    assert_eq!(former, Lookup::Value("one"), "who began with the former plans ends with them");
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
    let entry = TableEntry { key: "name".to_owned(), value: "forged".to_owned() };
    for wrong in [
        TableChange { from_hash: vec![7; 32], ..sound.clone() },
        TableChange { upserts: vec![entry], ..sound.clone() },
        TableChange { version: 3, ..sound.clone() },
        TableChange { resource_id: "lookup_table/lt_9".to_owned(), ..sound.clone() },
        TableChange { resource_id: "flow/flw_1".to_owned(), from_hash: set[0].hash.clone(), ..sound.clone() },
    ] {
        stream.table_change(2, &wrong, &next).await;
        assert!(matches!(stream.answer().await, In::SnapshotRequest(_)), "{wrong:?}");
        assert_eq!(node.table("eu").as_deref(), Some("one"));
    }
    stream.snapshot("env_1", 3, &next).await;
    stream.acked(3, &next).await;
    assert_eq!(node.table("eu").as_deref(), Some("two"));
    drop(stream);
    node.stop().await;
}
