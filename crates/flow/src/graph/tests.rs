//! Drawings of graphs.

use super::*;
use crate::check::tests::FULL;

#[test]
fn draws_what_a_message_passes_through() {
    let graph = of(&crate::parse(FULL).unwrap());
    insta::assert_snapshot!("mermaid", graph.to_mermaid());
    insta::assert_snapshot!("dot", graph.to_dot());
}

#[test]
fn draws_a_small_flow_without_what_it_lacks() {
    let yaml = "flow: f\nsource: {trigger: manual}\ntarget: {connector: erp, endpoint: \
                /x}\non_error: {retry: 0x fixed(1s)}\n";
    let graph = of(&crate::parse(yaml).unwrap());
    let nodes: Vec<_> = graph
        .nodes
        .iter()
        .map(|node| (node.kind, node.label.as_str()))
        .collect();
    assert_eq!(
        nodes,
        [
            ("source", "manual"),
            ("target", "POST /x on erp"),
            ("dead_letter", "dead letter")
        ]
    );
    let edges: Vec<_> = graph
        .edges
        .iter()
        .map(|e| format!("{} {} {}", e.from, e.to, e.label))
        .collect();
    assert_eq!(edges, ["source target ", "target dead_letter on failure"]);
}

#[test]
fn no_label_breaks_out_of_its_quotes() {
    let yaml = "flow: f\nsource: {trigger: manual}\nwhen: source.a == '\"]; click x \
                \"#<b>\\\\'\ntarget: {connector: erp, endpoint: /x}\n";
    let graph = of(&crate::parse(yaml).unwrap());
    assert!(
        graph
            .to_mermaid()
            .lines()
            .all(|line| line.matches('"').count() % 2 == 0 && !line.contains("<b>"))
    );
    assert!(graph.to_dot().contains(r#"\""#));
}
