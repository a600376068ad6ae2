//! Pushes to a node, case by case.

use bytes::Bytes;
use kanat_model::id::EnvironmentId;
use kanat_plan_stream::{PlanSchemaRange, plan_schema};
use kanat_proto::node::v1::ResourceHash;
use kanat_proto::plan::v1::Head;
use prost::Message;

use super::super::refusals::Refusals;
use super::super::set::{ResourceChange, ResourceEntry};
use super::*;

fn entry(body: &'static str) -> ResourceEntry {
    ResourceEntry::new(Bytes::from_static(body.as_bytes()))
}

fn set(generation: u64, resources: &[(&str, &'static str)]) -> Arc<PlanSet> {
    let entries = resources
        .iter()
        .map(|(id, body)| ((*id).to_owned(), entry(body)));
    Arc::new(PlanSet::new(EpochId::from("epoch_1"), generation, entries))
}

fn put(set: &PlanSet, id: &str, body: &'static str) -> Arc<PlanSet> {
    Arc::new(set.with_changes(
        set.generation + 1,
        [(id.to_owned(), ResourceChange::Upsert(entry(body)))],
    ))
}

fn state(generation: u64, resources: &[(&str, &str)]) -> EnvironmentState {
    let hashes: Vec<_> = resources
        .iter()
        .map(|(id, body)| (*id, Hash::of(body.as_bytes())))
        .collect();
    EnvironmentState {
        environment_id: "env_1".to_owned(),
        epoch: "epoch_1".to_owned(),
        generation,
        set_hash: SetHash::of(hashes.iter().copied()).to_vec(),
        resources: hashes
            .iter()
            .map(|(id, h)| ResourceHash {
                id: (*id).to_owned(),
                hash: h.to_vec(),
            })
            .collect(),
    }
}

fn next(sync: &mut EnvironmentSync, set: &Arc<PlanSet>, nonce: u64) -> Option<Push> {
    sync.next(
        set,
        &Refusals::default().withheld(
            &EnvironmentId::from("env_1"),
            "1.0.0",
            plan_schema::SUPPORTED,
        ),
        nonce,
    )
}

fn ack(push: &Push) -> Ack {
    Ack {
        nonce: push.nonce,
        generation: push.set.generation,
        set_hash: push.set_hash.to_vec(),
        ..Ack::default()
    }
}

fn applied(generation: u64) -> SyncOutcome {
    SyncOutcome::Applied {
        generation,
        refused: Vec::new(),
    }
}

/// The ids of a delta: upserts, then removals.
fn delta(push: &Push) -> (Vec<&str>, Vec<&str>) {
    match &push.kind {
        PushKind::Delta {
            upserts, removals, ..
        } => (
            upserts.iter().map(|r| r.id.as_str()).collect(),
            removals.iter().map(String::as_str).collect(),
        ),
        PushKind::Snapshot(_) => panic!("a snapshot where a delta was expected"),
    }
}

fn is_snapshot(push: &Push) -> bool {
    matches!(push.kind, PushKind::Snapshot(_))
}

#[test]
fn a_node_that_holds_nothing_gets_a_snapshot() {
    let set = set(3, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(None, &set);
    let push = next(&mut sync, &set, 1).unwrap();
    assert!(is_snapshot(&push));
    assert_eq!(push.set_hash, set.hash);
    assert_eq!(sync.handle_ack(&ack(&push)), applied(3));
    assert_eq!(next(&mut sync, &set, 2).map(|push| push.nonce), None);
}

/// It holds so much that naming it would not fit into a message.
#[test]
fn a_node_that_says_only_which_set_it_holds_goes_on_from_it_or_gets_a_snapshot() {
    let first = set(3, &[("flow/1", "a"), ("flow/2", "b")]);
    let unnamed = EnvironmentState {
        resources: Vec::new(),
        ..state(3, &[("flow/1", "a"), ("flow/2", "b")])
    };
    let mut sync = EnvironmentSync::new(Some(&unnamed), &first);
    assert_eq!(next(&mut sync, &first, 1).map(|push| push.nonce), None);
    let second = put(&first, "flow/1", "a2");
    assert_eq!(
        delta(&next(&mut sync, &second, 2).unwrap()),
        (vec!["flow/1"], vec![])
    );

    let mut behind = EnvironmentSync::new(Some(&unnamed), &second);
    assert!(is_snapshot(&next(&mut behind, &second, 1).unwrap()));
    let other = EnvironmentState {
        epoch: "epoch_2".to_owned(),
        ..unnamed
    };
    let mut of_another_database = EnvironmentSync::new(Some(&other), &first);
    assert!(is_snapshot(
        &next(&mut of_another_database, &first, 1).unwrap()
    ));
}

#[test]
fn a_heartbeat_with_another_set_of_the_same_generation_brings_a_snapshot() {
    let first = set(3, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(None, &first);
    let push = next(&mut sync, &first, 1).unwrap();
    // It may be live already, and not answered yet.
    assert_eq!(
        sync.handle_heartbeat(&state(3, &[("flow/1", "b")])),
        SyncOutcome::NoEffect
    );
    assert_eq!(sync.handle_ack(&ack(&push)), applied(3));
    for told in [state(3, &[("flow/1", "a")]), state(2, &[("flow/1", "b")])] {
        assert_eq!(sync.handle_heartbeat(&told), SyncOutcome::NoEffect);
    }
    assert!(next(&mut sync, &first, 2).is_none());
    assert_eq!(
        sync.handle_heartbeat(&state(3, &[("flow/1", "b")])),
        SyncOutcome::Mismatch
    );
    assert!(is_snapshot(&next(&mut sync, &first, 2).unwrap()));
}

#[test]
fn a_node_that_was_away_gets_what_changed_meanwhile() {
    let set = set(5, &[("flow/1", "a"), ("flow/2", "b2"), ("flow/3", "c")]);
    let mut sync = EnvironmentSync::new(
        Some(&state(
            4,
            &[("flow/1", "a"), ("flow/2", "b"), ("flow/9", "z")],
        )),
        &set,
    );
    let push = next(&mut sync, &set, 1).unwrap();
    assert_eq!(delta(&push), (vec!["flow/2", "flow/3"], vec!["flow/9"]));
    assert_eq!(push.set_hash, set.hash);
    assert_eq!(sync.handle_ack(&ack(&push)), applied(5));
    let version = SetVersion {
        epoch: EpochId::from("epoch_1"),
        generation: 5,
    };
    assert_eq!(sync.version(), Some(version));
}

#[test]
fn a_node_of_another_epoch_ahead_or_with_a_hash_that_does_not_fit_gets_a_snapshot() {
    let set = set(5, &[("flow/1", "a")]);
    let good = state(5, &[("flow/1", "a")]);
    assert!(next(&mut EnvironmentSync::new(Some(&good), &set), &set, 1).is_none());
    let other_epoch = EnvironmentState {
        epoch: "epoch_2".to_owned(),
        ..good.clone()
    };
    let ahead = EnvironmentState {
        generation: 6,
        ..good.clone()
    };
    let other_hash = EnvironmentState {
        set_hash: vec![1; 32],
        ..good
    };
    for state in [other_epoch, ahead, other_hash] {
        assert!(is_snapshot(
            &next(&mut EnvironmentSync::new(Some(&state), &set), &set, 1).unwrap()
        ));
    }
}

#[test]
fn one_push_waits_for_its_answer_and_later_changes_merge() {
    let first = set(1, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(Some(&state(1, &[("flow/1", "a")])), &first);
    let second = put(&first, "flow/2", "b");
    let push = next(&mut sync, &second, 1).unwrap();
    assert_eq!(
        sync.target(),
        Some((&second.epoch, 2, second.hash)),
        "what is under way is wanted"
    );
    let third = put(&second, "flow/3", "c");
    let fourth = put(&third, "flow/3", "c2");
    assert!(next(&mut sync, &third, 2).is_none());
    assert!(next(&mut sync, &fourth, 2).is_none());
    assert_eq!(sync.handle_ack(&ack(&push)), applied(2));
    assert_eq!(
        sync.target(),
        Some((&second.epoch, 2, second.hash)),
        "and no more than was sent"
    );
    let push = next(&mut sync, &fourth, 2).unwrap();
    assert_eq!(delta(&push), (vec!["flow/3"], vec![]));
    assert_eq!(push.set.generation, 4);
    assert_eq!(push.set_hash, fourth.hash);
}

#[test]
fn an_answer_to_another_push_says_nothing() {
    let set = set(1, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(None, &set);
    let push = next(&mut sync, &set, 7).unwrap();
    let stale = Ack {
        nonce: 6,
        ..ack(&push)
    };
    assert_eq!(sync.handle_ack(&stale), SyncOutcome::NoEffect);
    assert_eq!(sync.handle_ack(&ack(&push)), applied(1));
    assert_eq!(sync.handle_ack(&ack(&push)), SyncOutcome::NoEffect);
}

#[test]
fn a_refused_resource_is_withheld_until_it_changes() {
    let environment = EnvironmentId::from("env_1");
    let refusals = Refusals::default();
    let before = set(1, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(Some(&state(1, &[("flow/1", "a")])), &before);
    let bad = put(&put(&before, "flow/1", "bad"), "flow/2", "b");
    let push = next(&mut sync, &bad, 1).unwrap();

    let old = Hash::of(b"a");
    let refused = Hash::of(b"bad");
    let rejection = Rejection {
        resource_id: "flow/1".to_owned(),
        hash: refused.to_vec(),
        message: "no such transform".to_owned(),
        running_hash: old.to_vec(),
    };
    let running = SetHash::of([("flow/1", old), ("flow/2", Hash::of(b"b"))]);
    let nack = Nack {
        nonce: 1,
        generation: 3,
        set_hash: running.to_vec(),
        rejections: vec![rejection],
        ..Nack::default()
    };
    let refusal = Refusal {
        hash: refused,
        message: "no such transform".to_owned(),
    };
    assert_eq!(
        sync.handle_nack(&nack),
        SyncOutcome::Applied {
            generation: 3,
            refused: vec![("flow/1".to_owned(), refusal.clone())],
        }
    );
    refusals.note((&environment, 3), "1.0.0", "flow/1", refusal);
    assert_eq!(sync.set_hash(), Some(running));
    assert_eq!(push.set_hash, bad.hash);

    // It is not sent again, also not with the next change, whose set hash knows what the node runs
    // instead.
    let withheld = refusals.withheld(&environment, "1.0.0", plan_schema::SUPPORTED);
    assert!(sync.next(&bad, &withheld, 2).is_none());
    let more = put(&bad, "flow/3", "c");
    let push = sync.next(&more, &withheld, 2).unwrap();
    assert_eq!(delta(&push), (vec!["flow/3"], vec![]));
    assert_eq!(push.set_hash, running.toggled("flow/3", Hash::of(b"c")));
    assert_eq!(sync.handle_ack(&ack(&push)), applied(4));
    assert_eq!(
        sync.deviations().map(|(id, _)| id).collect::<Vec<_>>(),
        ["flow/1"]
    );

    // Another content of it is sent, and another build gets this one.
    let mended = put(&more, "flow/1", "good");
    let push = sync.next(&mended, &withheld, 3).unwrap();
    assert_eq!(delta(&push), (vec!["flow/1"], vec![]));
    assert_eq!(push.set_hash, mended.hash);
    assert!(
        !refusals
            .withheld(&environment, "1.1.0", plan_schema::SUPPORTED)
            .contains("flow/1", &entry("bad"))
    );
    refusals.forget(&environment, 4);
    assert!(
        !refusals
            .withheld(&environment, "1.0.0", plan_schema::SUPPORTED)
            .contains("flow/1", &entry("bad"))
    );
}

#[test]
fn a_node_that_ends_up_elsewhere_gets_a_snapshot_and_the_second_time_its_stream_ends() {
    let before = set(1, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(Some(&state(1, &[("flow/1", "a")])), &before);
    let after = put(&before, "flow/2", "b");
    let push = next(&mut sync, &after, 1).unwrap();
    assert_eq!(
        sync.handle_ack(&Ack {
            set_hash: vec![9; 32],
            ..ack(&push)
        }),
        SyncOutcome::Mismatch
    );
    let push = next(&mut sync, &after, 2).unwrap();
    assert!(is_snapshot(&push));
    assert_eq!(
        sync.handle_ack(&Ack {
            set_hash: vec![9; 32],
            ..ack(&push)
        }),
        SyncOutcome::Mismatch
    );
    let push = next(&mut sync, &after, 3).unwrap();
    assert_eq!(
        sync.handle_ack(&Ack {
            set_hash: vec![9; 32],
            ..ack(&push)
        }),
        SyncOutcome::Broken
    );
}

#[test]
fn a_set_that_was_refused_whole_is_not_sent_again_before_it_changes() {
    let empty = set(0, &[]);
    assert!(!empty.allows_empty());
    let mut sync = EnvironmentSync::new(
        Some(&EnvironmentState {
            epoch: "epoch_9".to_owned(),
            ..state(8, &[])
        }),
        &empty,
    );
    let push = next(&mut sync, &empty, 1).unwrap();
    let rejections = vec![Rejection {
        message: "not meant".to_owned(),
        ..Rejection::default()
    }];
    let nack = Nack {
        nonce: push.nonce,
        generation: 8,
        rejections,
        ..Nack::default()
    };
    assert_eq!(
        sync.handle_nack(&nack),
        SyncOutcome::Refused("not meant".to_owned())
    );
    assert!(next(&mut sync, &empty, 2).is_none());
    assert_eq!(
        sync.refusal(),
        Some("not meant"),
        "it is not asked for again"
    );
    assert_eq!(sync.target(), None, "it is not asked for again");
    let push = next(&mut sync, &put(&empty, "flow/1", "a"), 2).unwrap();
    assert_eq!(sync.handle_ack(&ack(&push)), applied(1));
    assert_eq!(sync.refusal(), None);
}

#[test]
fn the_last_removal_goes_out_as_an_empty_set_that_is_meant() {
    let before = set(4, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(Some(&state(4, &[("flow/1", "a")])), &before);
    let after = Arc::new(before.with_changes(5, [("flow/1".to_owned(), ResourceChange::Removal)]));
    let push = next(&mut sync, &after, 1).unwrap();
    assert!(is_snapshot(&push));
    assert!(push.set.is_empty() && push.set.allows_empty());
}

#[test]
fn a_node_that_asks_gets_a_snapshot() {
    let set = set(1, &[("flow/1", "a")]);
    let mut sync = EnvironmentSync::new(Some(&state(1, &[("flow/1", "a")])), &set);
    assert!(next(&mut sync, &set, 1).is_none());
    sync.require_snapshot();
    assert!(is_snapshot(&next(&mut sync, &set, 1).unwrap()));
}

#[test]
fn what_takes_a_newer_build_is_withheld_and_keeps_its_former_version() {
    let environment = EnvironmentId::from("env_1");
    let refusals = Refusals::default();
    let of_build = |max| refusals.withheld(&environment, "1.0.0", PlanSchemaRange { min: 1, max });
    let newer = ResourceEntry::new(Head { plan_schema: 2 }.encode_to_vec().into());
    let before = set(1, &[("flow/1", "a")]);
    let after =
        Arc::new(before.with_changes(2, [("flow/1".to_owned(), ResourceChange::Upsert(newer))]));
    let after = put(&after, "flow/2", "b");

    let mut sync = EnvironmentSync::new(Some(&state(1, &[("flow/1", "a")])), &before);
    let push = sync.next(&after, &of_build(1), 1).unwrap();
    assert_eq!(delta(&push), (vec!["flow/2"], vec![]));
    let running = SetHash::of([("flow/1", Hash::of(b"a")), ("flow/2", Hash::of(b"b"))]);
    assert_eq!(push.set_hash, running);
    assert_eq!(sync.handle_ack(&ack(&push)), applied(3));
    let (id, entry) = sync.deviations().next().unwrap();
    let message = of_build(1).message(id, entry).unwrap();
    assert_eq!(id, "flow/1");
    assert_eq!(
        message.as_str(),
        "it requires plan schema 2, and the build of the node runs 1 to 1"
    );
    assert!(
        sync.next(&after, &of_build(1), 2).is_none(),
        "not again and again"
    );

    // One that holds nothing gets the rest, and a newer build gets all.
    let push = EnvironmentSync::new(None, &after)
        .next(&after, &of_build(1), 1)
        .unwrap();
    let PushKind::Snapshot(sent) = &push.kind else {
        panic!("a snapshot is expected")
    };
    assert_eq!(
        sent.iter().map(|(id, _)| id).collect::<Vec<_>>(),
        ["flow/2"]
    );
    assert_eq!(push.set_hash, SetHash::of([("flow/2", Hash::of(b"b"))]));
    let another = EnvironmentSync::new(None, &after)
        .next(&after, &of_build(1), 1)
        .unwrap();
    assert!(
        matches!(&another.kind, PushKind::Snapshot(same) if Arc::ptr_eq(same, sent)),
        "encoded once for all of them"
    );
    assert_eq!(
        EnvironmentSync::new(None, &after)
            .next(&after, &of_build(2), 1)
            .unwrap()
            .set_hash,
        after.hash
    );
}
