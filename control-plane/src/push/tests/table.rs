//! Lookup tables that change by their entries.

use kanat_plan_stream::{Kind, parts};
use kanat_proto::node::v1::{Delta, TableChange, TableEntry};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;
use prost::Message;

use super::*;

const TABLE: &str = "lookup_table/lt_1";

/// A large table, whose entry `name` has this value.
fn body(version: u32, name: &str) -> Vec<u8> {
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
    LookupTable {
        id: "lt_1".to_owned(),
        name: "eu".to_owned(),
        version,
        entries,
        ..LookupTable::default()
    }
    .encode_to_vec()
}

fn changes(delta: &Delta) -> Vec<(u32, &[TableEntry])> {
    let change = |change: &TableChange| (change.version, delta.tables[0].upserts.as_slice());
    delta.tables.iter().map(change).collect()
}

fn name(value: &str) -> TableEntry {
    TableEntry {
        key: "name".to_owned(),
        value: value.to_owned(),
    }
}

#[tokio::test]
async fn a_changed_table_goes_by_its_entries_to_builds_that_take_them_and_whole_to_others() {
    let control = Control::start().await;
    control.put(TABLE, body(1, "one")).await;
    let mut newer = control
        .connect(Hello {
            takes_table_changes: true,
            ..control.hello("node_1")
        })
        .await;
    let mut older = control.connect(control.hello("node_2")).await;
    newer.take_snapshot().await;
    older.take_snapshot().await;
    let generation = control.put(TABLE, body(2, "two")).await;
    let delta = newer.take_delta().await;
    assert_eq!(ids(&delta.upserts), [""; 0]);
    assert_eq!(changes(&delta), vec![(2, [name("two")].as_slice())]);
    assert!(delta.encoded_len() < 500, "{} bytes", delta.encoded_len());
    let delta = older.take_delta().await;
    assert_eq!(ids(&delta.upserts), vec![TABLE]);
    assert_eq!(delta.tables.len(), 0);
    assert_eq!(control.applied(generation).await, Applied::Everywhere);
}

#[tokio::test]
async fn a_node_that_is_a_few_changes_behind_gets_one_and_one_that_lost_its_footing_all() {
    let mut control = Control::start().await;
    let hello = |control: &Control| Hello {
        takes_table_changes: true,
        ..control.hello("node_1")
    };
    control.put(TABLE, body(1, "one")).await;
    let mut node = control.connect(hello(&control)).await;
    node.take_snapshot().await;
    let behind = node.state(1);
    control.put(TABLE, body(2, "two")).await;
    let first = node.delta().await;
    for (version, name) in [(3, "three"), (4, "four")] {
        control
            .read(control.put(TABLE, body(version, name)).await)
            .await;
    }
    node.held.insert(
        TABLE.to_owned(),
        kanat_plan_stream::Hash::of(&body(2, "two")),
    );
    node.ack(first.nonce, &first.environment_id, first.generation)
        .await;
    assert_eq!(
        changes(&node.take_delta().await),
        [(4, [name("four")].as_slice())]
    );

    let mut node = control
        .connect(Hello {
            states: vec![behind.clone()],
            ..hello(&control)
        })
        .await;
    assert_eq!(
        changes(&node.take_delta().await),
        [(4, [name("four")].as_slice())]
    );

    // What it took in is not what it should be.
    control.put(TABLE, body(5, "five")).await;
    let delta = node.delta().await;
    node.ack(delta.nonce, &delta.environment_id, delta.generation)
        .await;
    assert_eq!(ids(&node.take_snapshot().await.1), [TABLE]);

    // A process that has not seen the change happen has only the whole.
    control.restart();
    let mut node = control
        .connect(Hello {
            states: vec![behind],
            ..hello(&control)
        })
        .await;
    assert_eq!(ids(&node.take_delta().await.upserts), [TABLE]);
}

/// What a large table is when it is in parts, whose entry `name` has this value.
fn in_parts(name: &str) -> Vec<(String, Vec<u8>)> {
    let table = LookupTable {
        parts: 3,
        ..LookupTable::decode(body(1, name).as_slice()).unwrap()
    };
    let parts = parts::split(table.clone(), 3).into_iter();
    let parts = parts.map(|part| (Kind::LookupPart.resource_id(&part.id), part.encode_to_vec()));
    parts
        .chain([(TABLE.to_owned(), parts::head(&table))])
        .collect()
}

impl Control {
    async fn put_in_parts(&self) {
        for (id, body) in in_parts("one") {
            self.put(&id, body).await;
        }
    }

    /// Changes the one part that has the entry.
    async fn change_part(&self, name: &str) -> u64 {
        let (id, body) = in_parts(name).swap_remove(parts::of_key("name", 3) as usize);
        self.put(&id, body).await
    }

    /// A node that has taken what there is.
    async fn taking(&self, hello: Hello) -> Node {
        let mut node = self.connect(hello).await;
        node.take_snapshot().await;
        node
    }

    /// What a node of this build says.
    fn hello_of_today(&self) -> Hello {
        Hello {
            max_plan_schema: parts::SCHEMA,
            takes_table_changes: true,
            ..self.hello("node_1")
        }
    }

    /// What one of the build before says, which knows no parts.
    fn hello_of_before(&self) -> Hello {
        Hello {
            takes_table_changes: true,
            ..self.hello("node_2")
        }
    }
}

#[tokio::test]
async fn nobody_waits_for_a_table_that_is_made_whole_for_a_build_of_before() {
    let control = Control::start().await;
    control.put_in_parts().await;
    let mut newer = control.taking(control.hello_of_today()).await;
    let mut before = control.taking(control.hello_of_before()).await;
    let mut long_before = control.taking(control.hello("node_3")).await;
    assert_eq!(newer.held.len(), 4);
    assert_eq!(before.held.len(), 1);
    assert_eq!(long_before.held.len(), 1);

    // As if it took for ever.
    let sixteen = control.hub.snapshots.acquire_many(16).await.unwrap();
    let mut generation = 0;
    for value in ["two", "three", "four"] {
        generation = control.change_part(value).await;
        let delta = newer.take_delta().await;
        assert_eq!(delta.generation, generation);
        assert_eq!(changes(&delta), vec![(1, [name(value)].as_slice())]);
    }
    drop(sixteen);

    // All that came meanwhile, at once.
    let delta = before.take_delta().await;
    assert_eq!(delta.generation, generation);
    assert_eq!(changes(&delta), vec![(1, [name("four")].as_slice())]);
    assert_eq!(ids(&delta.upserts), [""; 0]);
    assert_eq!(delta.tables[0].resource_id.as_str(), TABLE);
    let delta = long_before.take_delta().await;
    assert_eq!(delta.generation, generation);
    assert_eq!(ids(&delta.upserts), vec![TABLE]);
    assert_eq!(delta.upserts[0].body, body(1, "four"));
    assert_eq!(control.applied(generation).await, Applied::Everywhere);
}

#[tokio::test]
async fn a_table_is_not_made_whole_again_while_it_is_on_its_way() {
    let control = Control::start().await;
    control.put_in_parts().await;
    let mut newer = control.taking(control.hello_of_today()).await;
    let mut older = control.taking(control.hello_of_before()).await;
    let first = control.change_part("two").await;
    newer.take_delta().await;
    let on_its_way = older.delta().await;
    assert_eq!(on_its_way.generation, first);

    let _sixteen = control.hub.snapshots.acquire_many(16).await.unwrap();
    let tasks = control.hub.tasks.len();
    for value in ["three", "four"] {
        control.change_part(value).await;
        newer.take_delta().await;
    }
    assert_eq!(
        control.hub.tasks.len(),
        tasks,
        "nobody waits for his turn to make it"
    );
}

#[tokio::test]
async fn a_node_of_before_that_another_control_plane_brought_further_waits_for_what_it_has() {
    let mut control = Control::start().await;
    control.put_in_parts().await;
    let mut before = control.taking(control.hello_of_before()).await;
    let generation = control.change_part("two").await;
    before.take_delta().await;
    let state = before.state(generation);
    control.restart();
    let hello = Hello {
        states: vec![state],
        ..control.hello_of_before()
    };
    let mut before = control.connect(hello).await;
    let generation = control.change_part("three").await;
    let delta = before.take_delta().await;
    assert_eq!(delta.generation, generation);
    assert_eq!(delta.upserts.len() + delta.tables.len(), 1);
}
