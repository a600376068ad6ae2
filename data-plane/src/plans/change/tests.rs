//! Adapters and lookup tables as resources: found by name and id, refused alone, waited for by the
//! flows that name them.

use kanat_mapping::{AdapterRef, Lookup, Tables};
use kanat_model::adapter;
use kanat_model::id::EnvironmentId;
use kanat_proto::plan::v1::{Adapter as AdapterPlan, FlowPlan, LookupTable};
use kanat_script::Scripts;
use prost::Message;

use super::*;
use crate::plans::tests::control::{resource, table_plan};

fn adapter(id: &str, name: &str, kind: &str) -> Resource {
    let id = id.to_owned();
    let name = name.to_owned();
    let kind = kind.to_owned();
    let plan = AdapterPlan {
        id: id.clone(),
        name,
        version: 1,
        kind,
        code: format!("const transform = () => '{id}'"),
    };
    resource(Kind::Adapter, &id, &plan)
}

fn flow(adapter: &str) -> Resource {
    let plan = FlowPlan {
        flow_id: "flw_1".to_owned(),
        environment_id: "env_1".to_owned(),
        adapter: adapter.to_owned(),
        ..FlowPlan::default()
    };
    resource(Kind::Flow, "flw_1", &plan)
}

/// A lookup table; one with parts lacks them, and is refused.
fn table(id: &str, name: &str, parts: u32) -> Resource {
    let table = LookupTable {
        parts,
        ..table_plan(id, name)
    };
    resource(Kind::LookupTable, id, &table)
}

fn applied(current: &Environment, upserts: Vec<Resource>, removals: &[&str]) -> CompiledChange {
    let removals = removals.iter().map(|id| (*id).to_owned()).collect();
    compile_change(
        current,
        EnvironmentChange {
            epoch: EpochId::new("e"),
            generation: current.generation + 1,
            upserts,
            removals,
        },
    )
}

fn empty() -> Environment {
    Environment::empty(EnvironmentId::new("env_1"), EpochId::new("e"))
}

fn id_of(environment: &Environment, named: AdapterRef<'_>) -> Option<String> {
    environment.adapter(named).map(|adapter| adapter.id.clone())
}

#[test]
fn adapters_are_found_by_name_and_by_id_and_may_swap_their_names() {
    let first = applied(
        &empty(),
        vec![
            adapter("adp_1", "a", "transform"),
            adapter("adp_2", "b", "source"),
        ],
        &[],
    )
    .environment;
    assert_eq!(
        id_of(&first, AdapterRef::Name("a")).as_deref(),
        Some("adp_1")
    );
    assert_eq!(
        first
            .adapter(AdapterRef::Id("adp_2"))
            .map(|adapter| adapter.kind),
        Some(adapter::Kind::Source)
    );
    let swapped = vec![
        adapter("adp_1", "b", "transform"),
        adapter("adp_2", "a", "source"),
    ];
    let swapped = applied(&first, swapped, &[]).environment;
    assert_eq!(
        id_of(&swapped, AdapterRef::Name("a")).as_deref(),
        Some("adp_2")
    );
    assert_eq!(
        id_of(&swapped, AdapterRef::Name("b")).as_deref(),
        Some("adp_1")
    );
    assert_eq!(
        id_of(&first, AdapterRef::Name("a")).as_deref(),
        Some("adp_1"),
        "the former set is as it was"
    );
    let removed = applied(&swapped, Vec::new(), &["adapter/adp_1"]).environment;
    assert_eq!(id_of(&removed, AdapterRef::Name("b")), None);
    assert_eq!(id_of(&removed, AdapterRef::Id("adp_1")), None);
}

#[test]
fn an_adapter_of_an_unknown_type_is_refused_and_the_former_one_stays() {
    let first = applied(&empty(), vec![adapter("adp_1", "a", "transform")], &[]).environment;
    let refused = applied(&first, vec![adapter("adp_1", "c", "filter")], &[]);
    assert_eq!(
        refused.rejections[0].message,
        "\"filter\" is no type of an adapter"
    );
    assert_eq!(
        id_of(&refused.environment, AdapterRef::Name("a")).as_deref(),
        Some("adp_1")
    );
}

#[test]
fn an_adapter_keeps_its_name_when_the_one_that_had_it_before_is_removed_or_renamed() {
    let first = applied(&empty(), vec![adapter("adp_1", "a", "transform")], &[]).environment;
    // The rename is refused: the first adapter stays with its name, which the second one takes.
    let refused = applied(&first, vec![adapter("adp_1", "b", "filter")], &[]).environment;
    let taken = applied(&refused, vec![adapter("adp_2", "a", "transform")], &[]).environment;
    assert_eq!(
        id_of(&taken, AdapterRef::Name("a")).as_deref(),
        Some("adp_2")
    );
    let removed = applied(&taken, Vec::new(), &["adapter/adp_1"]).environment;
    assert_eq!(
        id_of(&removed, AdapterRef::Name("a")).as_deref(),
        Some("adp_2")
    );
    let renamed = applied(&taken, vec![adapter("adp_1", "b", "transform")], &[]).environment;
    assert_eq!(
        id_of(&renamed, AdapterRef::Name("a")).as_deref(),
        Some("adp_2")
    );
    assert_eq!(
        id_of(&renamed, AdapterRef::Name("b")).as_deref(),
        Some("adp_1")
    );
}

#[test]
fn a_table_keeps_its_name_when_the_one_that_had_it_before_is_removed() {
    let found = |environment: &Environment| match environment.lookup("a", "name") {
        Lookup::Value(id) => Some(id.to_owned()),
        Lookup::NoTable | Lookup::NoKey => None,
    };
    let first = applied(&empty(), vec![table("lt_1", "a", 0)], &[]).environment;
    let refused = applied(&first, vec![table("lt_1", "b", 2)], &[]).environment;
    assert_eq!(found(&refused).as_deref(), Some("lt_1"));
    let taken = applied(&refused, vec![table("lt_2", "a", 0)], &[]).environment;
    assert_eq!(found(&taken).as_deref(), Some("lt_2"));
    let removed = applied(&taken, Vec::new(), &["lookup_table/lt_1"]).environment;
    assert_eq!(found(&removed).as_deref(), Some("lt_2"));
}

#[test]
fn a_flow_waits_for_the_adapter_that_it_names() {
    let refused = applied(&empty(), vec![flow("adp_1")], &[]);
    assert_eq!(
        refused.rejections[0].message,
        "adapter \"adp_1\" is not in the set"
    );
    let together = applied(
        &empty(),
        vec![flow("adp_1"), adapter("adp_1", "a", "target")],
        &[],
    );
    assert!(
        together.rejections.is_empty() && together.flows.len() == 1,
        "{:?}",
        together.rejections
    );
}

#[test]
fn a_set_that_is_too_large_to_be_named_has_its_hash_alone_in_the_hello() {
    let adapters = vec![
        adapter("adp_1", "a", "transform"),
        adapter("adp_2", "b", "source"),
    ];
    let environment = applied(&empty(), adapters, &[]).environment;
    let mut enough = 1_000;
    let named = environment.full_state(&mut enough);
    assert_eq!(named.resources.len(), 2);
    assert_eq!(&named.set_hash, &environment.set_hash.to_vec());
    assert!(
        named.encoded_len() <= 1_000 - enough + 200,
        "what it took of the room is what it takes"
    );
    let mut little = 60;
    let unnamed = environment.full_state(&mut little);
    assert_eq!(unnamed.resources.len(), 0, "not even a part of them");
    assert_eq!(little, 60, "not even a part of them");
    assert_eq!(unnamed.generation, named.generation);
    assert_eq!(unnamed.set_hash, named.set_hash);
}
