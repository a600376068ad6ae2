//! A rename that the node refused: another resource may have the former name meanwhile.

use std::ops::ControlFlow;

use kanat_proto::plan::v1::{ApiVersion, LookupTable, PublishedApi};

use super::*;
use crate::plans::published::path::RequestPath;

/// Number of names. A restart that depended on the order of a hash map would get one of them wrong.
const NAMES: usize = 16;

/// A table that lacks its parts, and is refused.
fn refused_table(id: &str, name: &str) -> Resource {
    let table = LookupTable {
        version: 2,
        parts: 2,
        ..control::table_plan(id, name)
    };
    control::resource(Kind::LookupTable, id, &table)
}

fn version() -> ApiVersion {
    ApiVersion {
        label: "v1".to_owned(),
        number: 1,
        status: "active".to_owned(),
        flow_id: "flw_1".to_owned(),
        ..ApiVersion::default()
    }
}

/// A published API; one without versions is refused.
fn api(id: &str, path: &str, versions: &[ApiVersion]) -> Resource {
    let plan = PublishedApi {
        id: id.to_owned(),
        environment_id: "env_1".to_owned(),
        method: "POST".to_owned(),
        path: path.to_owned(),
        auth: "none".to_owned(),
        versions: versions.to_vec(),
        ..PublishedApi::default()
    };
    control::resource(Kind::PublishedApi, id, &plan)
}

/// Ids of two resources that have a name one after the other. Every second pair is in the other
/// order.
fn ids(prefix: &str, n: usize) -> [String; 2] {
    let mut ids = ["a", "b"].map(|half| format!("{prefix}_{n}{half}"));
    if n % 2 == 1 {
        ids.reverse();
    }
    ids
}

/// Checks that each table is found by the name that it took last.
fn check_tables(node: &Node) {
    for n in 0..NAMES {
        let [_, later] = ids("lt", n);
        assert_eq!(node.table(&format!("name {n}")), Some(later));
    }
}

fn api_at(node: &Node, path: &str) -> Option<String> {
    let snapshot = node.plans.load();
    let environment = snapshot.environment(&environment())?;
    let path = RequestPath::parse(path).unwrap();
    environment.routes.visit(&path.segments, &mut |apis| {
        ControlFlow::Break(apis[0].id.clone())
    })
}

#[tokio::test]
async fn a_restarted_node_finds_the_table_that_took_a_name_last() {
    let (folder, mut control, mut stream, node, mut set) = running().await;
    let table_of = |n: usize, id: &str| table(id, &format!("name {n}"));
    let former: Vec<_> = (0..NAMES).map(|n| table_of(n, &ids("lt", n)[0])).collect();
    set.extend(former.iter().cloned());
    stream.delta(1, &former, &[], &set).await;
    stream.acked(2, &set).await;

    let renamed: Vec<_> = (0..NAMES)
        .map(|n| refused_table(&ids("lt", n)[0], &format!("renamed {n}")))
        .collect();
    let announced: Vec<_> = set[..2].iter().chain(&renamed).cloned().collect();
    let refused: Vec<_> = renamed.iter().map(|table| table.id.as_str()).collect();
    stream.delta(2, &renamed, &[], &announced).await;
    stream.nacked(3, &refused, &set).await;

    let later: Vec<_> = (0..NAMES).map(|n| table_of(n, &ids("lt", n)[1])).collect();
    set.extend(later.iter().cloned());
    stream.delta(3, &later, &[], &set).await;
    stream.acked(4, &set).await;
    check_tables(&node);
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    check_tables(&node);
    // The first save of a process writes the whole set anew.
    let mut stream = control.stream().await;
    set.push(flow(&plan("flw_2", 1)));
    stream.delta(4, &set[set.len() - 1..], &[], &set).await;
    stream.acked(5, &set).await;
    check_tables(&node);
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    check_tables(&node);
    drop(control.stream().await);
    node.stop().await;
}

#[tokio::test]
async fn a_restarted_node_finds_the_api_that_took_a_path_last() {
    let (folder, mut control, mut stream, node, mut set) = running().await;
    let path_of = |n: usize| format!("path/{n}");
    let former: Vec<_> = (0..NAMES)
        .map(|n| api(&ids("api", n)[0], &path_of(n), &[version()]))
        .collect();
    set.extend(former.iter().cloned());
    stream.delta(1, &former, &[], &set).await;
    stream.acked(2, &set).await;

    // In one change, because a path that is taken is refused.
    let later: Vec<_> = (0..NAMES)
        .map(|n| api(&ids("api", n)[1], &path_of(n), &[version()]))
        .collect();
    let renamed: Vec<_> = (0..NAMES)
        .map(|n| api(&ids("api", n)[0], &format!("renamed/{n}"), &[]))
        .collect();
    let upserts: Vec<_> = later.iter().chain(&renamed).cloned().collect();
    let announced: Vec<_> = set[..2].iter().chain(&upserts).cloned().collect();
    set.extend(later.iter().cloned());
    let refused: Vec<_> = renamed.iter().map(|api| api.id.as_str()).collect();
    stream.delta(2, &upserts, &[], &announced).await;
    stream.nacked(3, &refused, &set).await;
    let check = |node: &Node| {
        for n in 0..NAMES {
            let [_, later] = ids("api", n);
            assert_eq!(api_at(node, &format!("/{}", path_of(n))), Some(later));
        }
    };
    check(&node);
    drop(stream);
    node.stop().await;

    let node = Node::start(&control, folder.path()).await;
    check(&node);
    drop(control.stream().await);
    node.stop().await;
}
