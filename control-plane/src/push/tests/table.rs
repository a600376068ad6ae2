//! Lookup tables that change by their entries.

use kanat_proto::node::v1::{Delta, TableChange, TableEntry};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;
use prost::Message;

use super::*;

const TABLE: &str = "lookup_table/lt_1";

/// A large table, whose entry `name` has this value.
fn body(version: u32, name: &str) -> Vec<u8> {
    let filler = |n: u32| Entry { key: format!("filler {n:03}"), value: "x".repeat(100) };
    let entries = (0..500).map(filler).chain([Entry { key: "name".to_owned(), value: name.to_owned() }]).collect();
    LookupTable { id: "lt_1".to_owned(), name: "eu".to_owned(), version, entries, ..LookupTable::default() }
        .encode_to_vec()
}

fn changes(delta: &Delta) -> Vec<(u32, &[TableEntry])> {
    let change = |change: &TableChange| (change.version, delta.tables[0].upserts.as_slice());
    delta.tables.iter().map(change).collect()
}

fn name(value: &str) -> TableEntry {
    TableEntry { key: "name".to_owned(), value: value.to_owned() }
}

#[tokio::test]
async fn a_changed_table_goes_by_its_entries_to_builds_that_take_them_and_whole_to_others() {
    let control = Control::start().await;
    control.put(TABLE, body(1, "one")).await;
    let mut newer = control.connect(Hello { takes_table_changes: true, ..control.hello("node_1") }).await;
    let mut older = control.connect(control.hello("node_2")).await;
    newer.take_snapshot().await;
    older.take_snapshot().await;
    let generation = control.put(TABLE, body(2, "two")).await;
    let delta = newer.take_delta().await;
    assert_eq!((ids(&delta.upserts), changes(&delta)), (Vec::new(), vec![(2, [name("two")].as_slice())]));
    assert!(delta.encoded_len() < 500, "{} bytes", delta.encoded_len());
    let delta = older.take_delta().await;
    assert_eq!((ids(&delta.upserts), delta.tables.len()), (vec![TABLE], 0));
    assert_eq!(control.applied(generation).await, Applied::Everywhere);
}

#[tokio::test]
async fn a_node_that_is_a_few_changes_behind_gets_one_and_one_that_lost_its_footing_all() {
    let mut control = Control::start().await;
    let hello = |control: &Control| Hello { takes_table_changes: true, ..control.hello("node_1") };
    control.put(TABLE, body(1, "one")).await;
    let mut node = control.connect(hello(&control)).await;
    node.take_snapshot().await;
    let behind = node.state(1);
    control.put(TABLE, body(2, "two")).await;
    let first = node.delta().await;
    for (version, name) in [(3, "three"), (4, "four")] {
        control.read(control.put(TABLE, body(version, name)).await).await;
    }
    node.held.insert(TABLE.to_owned(), kanat_plan_stream::Hash::of(&body(2, "two")));
    node.ack(first.nonce, &first.environment_id, first.generation).await;
    assert_eq!(changes(&node.take_delta().await), [(4, [name("four")].as_slice())]);

    let mut node = control.connect(Hello { states: vec![behind.clone()], ..hello(&control) }).await;
    assert_eq!(changes(&node.take_delta().await), [(4, [name("four")].as_slice())]);

    // What it took in is not what it should be.
    control.put(TABLE, body(5, "five")).await;
    let delta = node.delta().await;
    node.ack(delta.nonce, &delta.environment_id, delta.generation).await;
    assert_eq!(ids(&node.take_snapshot().await.1), [TABLE]);

    // A process that has not seen the change happen has only the whole.
    control.restart();
    let mut node = control.connect(Hello { states: vec![behind], ..hello(&control) }).await;
    assert_eq!(ids(&node.take_delta().await.upserts), [TABLE]);
}
