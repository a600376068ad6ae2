//! Lookup tables, whose entries are in parts.

use kanat_plan_stream::{Kind, parts};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;

use super::*;

const PARTS: u32 = 5;

/// A table named `eu` as former builds publish it, with its entries in its own resource, of which
/// `name` has this value.
fn former(version: u32, name: &str) -> Resource {
    control::resource(Kind::LookupTable, "lt_1", &table(version, name))
}

fn table(version: u32, name: &str) -> LookupTable {
    let filler = |n: u32| Entry {
        key: format!("filler {n:03}"),
        value: "x".repeat(100),
    };
    let name = Entry {
        key: "name".to_owned(),
        value: name.to_owned(),
    };
    LookupTable {
        id: "lt_1".to_owned(),
        name: "eu".to_owned(),
        version,
        entries: (0..500).map(filler).chain([name]).collect(),
        ..LookupTable::default()
    }
}

/// The head of the table, and each of its parts.
fn in_parts(version: u32, name: &str) -> Vec<Resource> {
    let head = LookupTable {
        parts: PARTS,
        entries: Vec::new(),
        ..table(version, name)
    };
    let parts = parts::split(table(1, name), PARTS);
    std::iter::once(encoded(Kind::LookupTable, &head))
        .chain(parts.iter().map(|part| encoded(Kind::LookupPart, part)))
        .collect()
}

fn encoded(kind: Kind, table: &LookupTable) -> Resource {
    let body = parts::encode(table);
    Resource {
        id: kind.resource_id(&table.id),
        hash: Hash::of(&body).to_vec(),
        body: body.into(),
    }
}

#[tokio::test]
async fn a_table_changes_by_one_of_its_parts_and_is_found_so_after_a_restart() {
    let (folder, mut control, mut stream, node, mut set) = running().await;
    set.extend(in_parts(1, "one"));
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("one"));
    let begun_with = node.plans.load();
    let part = 3 + parts::of_key("name", PARTS) as usize;
    let next = in_parts(2, "two");
    let upserts = [&next[0], &next[part - 2]].map(Clone::clone);
    set[2] = next[0].clone();
    set[part] = next[part - 2].clone();
    stream.delta(2, &upserts, &[], &set).await;
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
        "a message that began with the former plans ends with them"
    );
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    let stream = control.stream().await;
    assert_eq!(stream.hello.states[0].set_hash, control::set_hash(&set));
    assert_eq!(node.table("eu").as_deref(), Some("two"));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_table_of_a_former_build_runs_until_it_is_published_in_parts() {
    let (folder, mut control, mut stream, node, mut set) = running().await;
    set.push(former(1, "one"));
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("one"));
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    let mut stream = control.stream().await;
    assert_eq!(node.table("eu").as_deref(), Some("one"));
    set.truncate(2);
    set.extend(in_parts(2, "two"));
    stream.delta(2, &set[2..], &[], &set).await;
    stream.acked(3, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("two"));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_table_that_lacks_a_part_is_refused_and_the_former_one_stays() {
    let (_folder, _control, mut stream, node, set) = running().await;
    let mut running = set.clone();
    let mut sent = set;
    running.push(former(1, "one"));
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
