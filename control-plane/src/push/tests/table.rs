//! Lookup tables, which change part by part.

use kanat_plan_stream::{Kind, MIN_PLAN_SCHEMA, parts};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;
use prost::Message;

use super::*;

const TABLE: &str = "lookup_table/lt_1";

const PARTS: u32 = 3;

/// The resources of a table whose entry `name` has this value: its parts, then its head.
fn table(name: &str) -> Vec<(String, Vec<u8>)> {
    let filler = |n: u32| Entry {
        key: format!("filler {n:03}"),
        value: "x".repeat(100),
    };
    let name = Entry {
        key: "name".to_owned(),
        value: name.to_owned(),
    };
    let table = LookupTable {
        id: "lt_1".to_owned(),
        name: "eu".to_owned(),
        version: 1,
        parts: PARTS,
        entries: (0..500).map(filler).chain([name]).collect(),
        ..LookupTable::default()
    };
    let head = LookupTable {
        entries: Vec::new(),
        ..table.clone()
    };
    let parts = parts::split(table, PARTS).into_iter();
    let parts = parts.map(|part| (Kind::LookupPart.resource_id(&part.id), parts::encode(&part)));
    parts
        .chain([(TABLE.to_owned(), parts::encode(&head))])
        .collect()
}

impl Control {
    async fn put_table(&self) {
        for (id, body) in table("one") {
            self.put(&id, body).await;
        }
    }

    /// Changes the part that has the entry, and returns its resource id and the generation.
    async fn change_part(&self, name: &str) -> (String, u64) {
        let (id, body) = table(name).swap_remove(parts::of_key("name", PARTS) as usize);
        let generation = self.put(&id, body).await;
        (id, generation)
    }
}

#[tokio::test]
async fn a_change_of_an_entry_is_a_delta_of_its_part_also_after_missed_changes() {
    let mut control = Control::start().await;
    control.put_table().await;
    let mut node = control.connect(control.hello("node_1")).await;
    let (begin, resources) = node.take_snapshot().await;
    assert_eq!(resources.len(), 4);
    let former = node.state(begin.generation);

    let (part, generation) = control.change_part("two").await;
    let delta = node.take_delta().await;
    assert_eq!(ids(&delta.upserts), [part.as_str()]);
    assert!(delta.encoded_len() < 64 << 10, "{}", delta.encoded_len());
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);

    control.read(control.change_part("three").await.1).await;
    let hello = Hello {
        states: vec![former],
        ..control.hello("node_1")
    };
    let mut node = control.connect(hello.clone()).await;
    assert_eq!(ids(&node.take_delta().await.upserts), [part.as_str()]);

    // A process that has not seen the change happen does the same.
    control.restart();
    let mut node = control.connect(hello).await;
    assert_eq!(ids(&node.take_delta().await.upserts), [part.as_str()]);
}

#[tokio::test]
async fn a_build_that_knows_no_parts_is_refused_the_table_with_both_versions_named() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    control.put_table().await;
    let mut node = control
        .connect(Hello {
            max_plan_schema: MIN_PLAN_SCHEMA,
            ..control.hello("node_1")
        })
        .await;
    assert_eq!(ids(&node.take_snapshot().await.1), ["flow/1"]);
    let (_, generation) = control.change_part("two").await;
    assert_eq!(ids(&node.take_delta().await.upserts), [""; 0]);
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);
    let [(_, message)] = control.hub.rejections(TABLE).try_into().unwrap();
    assert_eq!(
        message,
        "it requires plan schema 2, and the build of the node runs 1 to 1"
    );
}
