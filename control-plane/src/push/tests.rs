//! The whole of push: a real store, the real service, and nodes that follow a script.

mod node;
mod node_record;
mod refused;
mod registration;
mod restored;
mod silence;
mod subscription;
mod table;

use std::pin::pin;

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, NodeId};
use kanat_plan_stream::PLAN_SCHEMA;
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::{
    EnvironmentState, Heartbeat, Hello, Load, Nack, NodeMessage, Rejection, SnapshotRequest,
};
use kanat_store::environment::{self, Environment};
use kanat_store::{account, node as saved};
use tokio::sync::mpsc;
use tonic::Code;

use super::nodes::Status;
use super::{Node as NodeState, Rollout};
use node::{Control, Node};

/// Ids of resources.
fn ids(resources: &[kanat_proto::node::v1::Resource]) -> Vec<&str> {
    resources
        .iter()
        .map(|resource| resource.id.as_str())
        .collect()
}

impl Control {
    /// Returns when what is known of the nodes is as wanted.
    async fn known(&self, wanted: impl Fn(&[NodeState]) -> bool) -> Vec<NodeState> {
        let mut changed = self.hub.context.nodes.watch();
        loop {
            let nodes = self.hub.nodes();
            if wanted(&nodes) {
                return nodes;
            }
            changed.changed().await.unwrap();
        }
    }

    async fn account(&self) -> AccountId {
        account::first(&mut self.store.read().await.unwrap())
            .await
            .unwrap()
            .unwrap()
            .id
    }

    /// A node that holds what is published.
    async fn up_to_date(&self) -> Node {
        // Its first look at the environments is behind it: a session reads the store then.
        self.hub
            .context
            .environments
            .subscribe()
            .wait_for(|known| !known.is_empty())
            .await
            .unwrap();
        let mut node = self.connect(self.hello("node_1")).await;
        let (begin, _) = node.take_snapshot().await;
        assert_eq!(self.applied(begin.generation).await, Rollout::Everywhere);
        node
    }
}

#[tokio::test]
async fn the_first_message_of_a_stream_is_a_hello() {
    let control = Control::start().await;
    let (out, messages) = mpsc::channel(1);
    out.send(NodeMessage {
        kind: Some(Out::Heartbeat(Heartbeat::default())),
    })
    .await
    .unwrap();
    assert_eq!(
        control.sync(messages).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    let nameless = Hello {
        node_id: String::new(),
        ..control.hello("node_1")
    };
    assert_eq!(
        control.try_connect(nameless).await.err().unwrap().code(),
        Code::InvalidArgument
    );
    assert!(control.hub.nodes().is_empty());
}

#[tokio::test]
async fn a_second_hello_ends_the_stream() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    node.say(Out::Hello(control.hello("node_1"))).await;
    assert_eq!(
        node.pushed().await.unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn a_node_that_cannot_be_served_gets_the_reason() {
    let control = Control::start().await;
    let elsewhere = Hello {
        environments: vec!["nowhere".to_owned()],
        ..control.hello("node_1")
    };
    let refused = control.try_connect(elsewhere).await.err().unwrap();
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!(refused.message(), "environment \"nowhere\" does not exist");
    let newer = Hello {
        min_plan_schema: PLAN_SCHEMA + 1,
        max_plan_schema: PLAN_SCHEMA + 2,
        ..control.hello("node_1")
    };
    let refused = control.try_connect(newer).await.err().unwrap();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_node_serves_the_environments_that_it_names_or_all() {
    let control = Control::start().await;
    let named = Hello {
        environments: vec!["staging".to_owned()],
        ..control.hello("node_1")
    };
    let node = control.connect(named).await;
    let names: Vec<_> = node
        .welcome
        .environments
        .iter()
        .map(|environment| environment.name.as_str())
        .collect();
    assert_eq!(names, ["staging"]);
    let mut all = control
        .connect(Hello {
            environments: Vec::new(),
            ..control.hello("node_2")
        })
        .await;
    assert_eq!(all.welcome.environments.len(), 3);
    for _ in 0..3 {
        assert!(all.take_snapshot().await.1.is_empty());
    }
}

#[tokio::test]
async fn a_new_node_gets_a_snapshot_and_then_what_changes() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    control.put("flow/2", "b").await;
    let mut node = control.up_to_date().await;
    assert_eq!(node.held.keys().collect::<Vec<_>>(), ["flow/1", "flow/2"]);

    let generation = control.put("flow/3", "c").await;
    let delta = node.take_delta().await;
    assert_eq!(delta.from_generation, 2);
    assert_eq!(delta.generation, 3);
    assert_eq!(ids(&delta.upserts), vec!["flow/3"]);
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);

    control.remove("flow/1").await;
    let delta = node.take_delta().await;
    assert_eq!(delta.upserts, Vec::new());
    assert_eq!(delta.removals, vec!["flow/1".to_owned()]);
}

#[tokio::test]
async fn a_large_set_comes_in_chunks() {
    let control = Control::start().await;
    control.put("flow/1", &"x".repeat(600_000)).await;
    let node = control.up_to_date().await;
    assert_eq!(node.held.len(), 1);
}

#[tokio::test]
async fn a_change_is_pending_until_the_node_has_answered() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    let generation = control.put("flow/1", "a").await;
    let delta = node.delta().await;
    assert!(
        !control
            .hub
            .context
            .nodes
            .is_applied(&control.environment, &control.version(generation).await)
    );
    node.held
        .insert("flow/1".to_owned(), kanat_plan_stream::Hash::of(b"a"));
    node.ack(delta.nonce, &delta.environment_id, delta.generation)
        .await;
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);
}

#[tokio::test]
async fn without_nodes_a_change_is_everywhere() {
    let control = Control::start().await;
    let generation = control.put("flow/1", "a").await;
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);
}

#[tokio::test]
async fn a_change_is_not_live_before_the_node_of_the_process_has_come() {
    let control = Control::start().await;
    control.hub.expect_own_node();
    let version = control.version(control.put("flow/1", "a").await).await;
    let mut applied = pin!(
        control
            .hub
            .wait_until_applied(&control.environment, &version)
    );
    assert!(
        futures::poll!(applied.as_mut()).is_pending(),
        "nobody runs it"
    );
    let mut node = control.connect(control.hello("node_1")).await;
    assert!(
        futures::poll!(applied.as_mut()).is_pending(),
        "it has no plans yet"
    );
    node.take_snapshot().await;
    assert_eq!(applied.await, Rollout::Everywhere);
    drop(node);
    control
        .known(|nodes| nodes[0].status == Status::Disconnected)
        .await;
    let generation = control.put("flow/1", "b").await;
    assert_eq!(
        control.applied(generation).await,
        Rollout::Everywhere,
        "one that has gone is not waited for"
    );
}

#[tokio::test]
async fn a_node_of_another_process_does_not_stand_for_the_node_of_the_process() {
    let control = Control::start().await;
    control.hub.expect_own_node();
    let version = control.version(control.put("flow/1", "a").await).await;
    let _other = registration::connect(&control, "join", "node_2")
        .await
        .unwrap();
    let nodes = &control.hub.context.nodes;
    assert!(nodes.is_applied(&control.environment, &version));
    let mut applied = pin!(
        control
            .hub
            .wait_until_applied(&control.environment, &version)
    );
    assert!(futures::poll!(applied.as_mut()).is_pending());
    let mut node = control.connect(control.hello("node_1")).await;
    node.take_snapshot().await;
    assert_eq!(applied.await, Rollout::Everywhere);
}

#[tokio::test]
async fn sixteen_snapshots_are_prepared_at_once_and_the_next_one_waits_for_its_turn() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    let sixteen = control
        .hub
        .context
        .encode_permits
        .acquire_many(16)
        .await
        .unwrap();
    assert_eq!(control.hub.context.encode_permits.available_permits(), 0);
    let mut node = control.connect(control.hello("node_1")).await;
    let set = control.read_since(None).await.unwrap();
    let mut encoding = pin!(control.hub.context.encode(set));
    assert!(futures::poll!(encoding.as_mut()).is_pending());
    drop(sixteen);
    encoding.await;
    node.take_snapshot().await;
}

#[tokio::test]
async fn one_push_waits_for_its_answer_while_later_changes_merge() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    control.put("flow/1", "a").await;
    let first = node.delta().await;
    control.put("flow/2", "b").await;
    control.put("flow/1", "a2").await;
    let last = control.put("flow/3", "c").await;
    control.read(last).await;
    node.held
        .insert("flow/1".to_owned(), kanat_plan_stream::Hash::of(b"a"));
    node.ack(first.nonce, &first.environment_id, first.generation)
        .await;
    let merged = node.take_delta().await;
    assert_eq!(merged.from_generation, first.generation);
    assert_eq!(merged.generation, last);
    assert_eq!(ids(&merged.upserts), ["flow/1", "flow/2", "flow/3"]);
}

#[tokio::test]
async fn a_refused_resource_is_listed_and_not_sent_again_to_that_build() {
    let control = Control::start().await;
    control.put("flow/1", "good").await;
    let mut node = control.up_to_date().await;
    let generation = control.put("flow/1", "bad").await;
    node.refuse("flow/1", "no such transform").await;
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);
    let node_id = NodeId::from("node_1");
    assert_eq!(
        control.hub.rejections("flow/1"),
        [(node_id.clone(), "no such transform".to_owned())]
    );

    // What comes next leaves it out.
    let generation = control.put("flow/2", "b").await;
    assert_eq!(ids(&node.take_delta().await.upserts), ["flow/2"]);

    // So does the next stream of that build, which still shows it; another build gets it.
    let state = node.state(generation);
    let mut node = control
        .connect(Hello {
            states: vec![state.clone()],
            ..control.hello("node_1")
        })
        .await;
    let newer = Hello {
        build: "1.0.1".to_owned(),
        states: vec![state],
        ..control.hello("node_2")
    };
    let mut newer = control.connect(newer).await;
    assert_eq!(ids(&newer.take_delta().await.upserts), ["flow/1"]);
    control
        .known(|nodes| {
            nodes.len() == 2 && nodes.iter().all(|node| node.status == Status::Connected)
        })
        .await;
    assert_eq!(
        control.hub.rejections("flow/1"),
        [(node_id, "no such transform".to_owned())]
    );

    // Once it changed it is sent, and nothing is refused any more.
    let generation = control.put("flow/1", "mended").await;
    assert_eq!(ids(&node.take_delta().await.upserts), ["flow/1"]);
    newer.take_delta().await;
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);
    assert!(control.hub.rejections("flow/1").is_empty());
}

#[tokio::test]
async fn a_set_that_is_refused_as_a_whole_is_listed_until_another_is_taken() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    control.put("flow/1", "a").await;
    let delta = node.delta().await;
    let rejections = vec![Rejection {
        message: "not meant".to_owned(),
        ..Rejection::default()
    }];
    let nonce = delta.nonce;
    let environment_id = delta.environment_id.clone();
    let set_hash = node.set_hash().to_vec();
    let generation = delta.from_generation;
    node.say(Out::Nack(Nack {
        nonce,
        environment_id,
        generation,
        set_hash,
        rejections,
    }))
    .await;
    let rejected = |node: &NodeState| node.environments[&control.environment].rejected.clone();
    let nodes = control.known(|nodes| !rejected(&nodes[0]).is_empty()).await;
    let whole = &rejected(&nodes[0])[0];
    assert_eq!(
        whole.resource_id,
        format!("environment/{}", control.environment)
    );
    assert_eq!(
        whole.message,
        "the whole set was refused, and the one before it runs: not meant"
    );
    control.put("flow/1", "b").await;
    node.take_delta().await;
    control.known(|nodes| rejected(&nodes[0]).is_empty()).await;
}

#[tokio::test]
async fn a_node_that_comes_back_gets_what_it_missed() {
    let mut control = Control::start().await;
    control.put("flow/1", "a").await;
    let node = control.up_to_date().await;
    let state = node.state(1);
    drop(node);
    control.put("flow/2", "b").await;
    control.restart();
    let mut node = control
        .connect(Hello {
            states: vec![state],
            ..control.hello("node_1")
        })
        .await;
    let delta = node.take_delta().await;
    assert_eq!(delta.from_generation, 1);
    assert_eq!(delta.generation, 2);
    assert_eq!(ids(&delta.upserts), vec!["flow/2"]);
}

#[tokio::test]
async fn another_epoch_a_node_ahead_and_a_wrong_hash_mean_a_snapshot() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    let good = control.up_to_date().await.state(1);
    let other_epoch = EnvironmentState {
        epoch: "epoch_of_another".to_owned(),
        ..good.clone()
    };
    let ahead = EnvironmentState {
        generation: 9,
        ..good.clone()
    };
    let wrong = EnvironmentState {
        set_hash: vec![0; 32],
        ..good
    };
    for state in [other_epoch, ahead, wrong] {
        let mut node = control
            .connect(Hello {
                states: vec![state],
                ..control.hello("node_1")
            })
            .await;
        let (begin, resources) = node.take_snapshot().await;
        assert_eq!(begin.generation, 1);
        assert_eq!(ids(&resources), vec!["flow/1"]);
    }
}

#[tokio::test]
async fn a_node_that_asks_gets_a_snapshot() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    let mut node = control.up_to_date().await;
    let environment_id = control.environment.to_string();
    node.say(Out::SnapshotRequest(SnapshotRequest {
        environment_id,
        reason: "test".to_owned(),
    }))
    .await;
    assert_eq!(ids(&node.take_snapshot().await.1), ["flow/1"]);
}

#[tokio::test]
async fn a_set_that_cannot_be_read_is_not_sent() {
    let control = Control::start().await;
    control.put("flow/1", "a").await;
    let mut node = control.up_to_date().await;
    control
        .put_sealed("flow/2", "b", b"sealed by nobody".to_vec())
        .await;
    let mended = control.put("flow/2", "b").await;
    let delta = node.take_delta().await;
    assert_eq!(delta.generation, mended);
    assert_eq!(ids(&delta.upserts), vec!["flow/2"]);
    assert_eq!(delta.removals.len(), 0);
}

#[tokio::test]
async fn an_empty_set_is_meant_only_when_something_was_removed() {
    let control = Control::start().await;
    let mut fresh = control.connect(control.hello("node_1")).await;
    assert!(!fresh.take_snapshot().await.0.allow_empty);
    control.put("flow/1", "a").await;
    fresh.take_delta().await;
    control.remove("flow/1").await;
    let (begin, resources) = fresh.take_snapshot().await;
    assert!(begin.allow_empty && resources.is_empty());
}

#[tokio::test]
async fn nodes_show_what_they_run_and_stay_listed_when_they_go() {
    let mut control = Control::start().await;
    let generation = control.put("flow/1", "a").await;
    let mut hello = control.hello("node_1");
    hello.address = "10.0.0.7:8080".to_owned();
    let mut node = control.connect(hello).await;
    node.take_snapshot().await;
    node.say(Out::Heartbeat(Heartbeat {
        load: Some(Load {
            in_flight: 3,
            ..Load::default()
        }),
        ..Heartbeat::default()
    }))
    .await;
    let known = control
        .known(|nodes| nodes.first().is_some_and(|node| node.in_flight == 3))
        .await;
    let running = &known[0].environments[&control.environment];
    assert_eq!(known[0].status, Status::Connected);
    assert_eq!(known[0].address.as_str(), "10.0.0.7:8080");
    assert_eq!(
        running.applied.as_ref().map(|applied| applied.generation),
        Some(generation)
    );
    assert_eq!(running.set_hash, node.set_hash());

    node.say(Out::Heartbeat(Heartbeat {
        load: Some(Load {
            draining: true,
            ..Load::default()
        }),
        ..Heartbeat::default()
    }))
    .await;
    control
        .known(|nodes| nodes[0].status == Status::Draining)
        .await;
    drop(node);
    control
        .known(|nodes| nodes[0].status == Status::Disconnected)
        .await;

    // It is written down when its session has ended, for the next process.
    control.tasks.close().await;
    control.restart();
    let written = saved::all(&mut control.store.read().await.unwrap())
        .await
        .unwrap();
    assert_eq!(written[0].id.as_str(), "node_1");
    assert_eq!(written[0].environments[0].generation, generation);
}

#[tokio::test]
async fn an_environment_that_comes_reaches_connected_nodes_and_one_that_they_did_not_name_does_not()
{
    let control = Control::start().await;
    let mut all = control
        .connect(Hello {
            environments: Vec::new(),
            ..control.hello("node_1")
        })
        .await;
    for _ in 0..3 {
        all.take_snapshot().await;
    }
    let mut one = control.connect(control.hello("node_2")).await;
    one.take_snapshot().await;
    let account = control.account().await;
    let canary = Environment::new(account, "canary".to_owned(), Timestamp::now());
    let mut tx = control.store.begin().await.unwrap();
    environment::insert(&mut tx, &canary).await.unwrap();
    tx.commit().await.unwrap();

    // It holds the set before it is told that it serves it: it is never without plans in between.
    let (begin, _) = all.take_snapshot().await;
    assert_eq!(begin.environment_id, canary.id.as_str());
    let mut names = all.rewelcomed().await;
    names.sort();
    assert_eq!(names, ["canary", "development", "production", "staging"]);
    let serves = |node: &NodeState| node.environments.contains_key(&canary.id);
    let nodes = control.known(|nodes| nodes.iter().any(serves)).await;
    assert_eq!(
        nodes
            .iter()
            .filter(|node| serves(node))
            .map(|node| node.id.as_str())
            .collect::<Vec<_>>(),
        ["node_1"]
    );
}

#[tokio::test]
async fn another_stream_of_the_same_node_takes_the_place_of_the_first() {
    let control = Control::start().await;
    let mut first = control.up_to_date().await;
    let mut second = control.connect(control.hello("node_1")).await;
    assert_eq!(first.pushed().await.unwrap_err().code(), Code::Aborted);
    second.take_snapshot().await;
    control
        .known(|nodes| nodes.len() == 1 && nodes[0].status == Status::Connected)
        .await;
    control.put("flow/1", "a").await;
    assert_eq!(ids(&second.take_delta().await.upserts), ["flow/1"]);
}
