//! Messages that wait: for a paused flow, for an earlier message of their key, for a restart of the
//! node.

use std::time::Duration;

use bytes::Bytes;
use kanat_message_log::{MessageLog, NewMessage, Placement, SavedPlan};
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{ErrorKind, Status, Trigger};
use kanat_plan_stream::saved;
use kanat_proto::plan::v1::{FlowPlan, SetVersion};
use prost::Message as _;

use super::control::{ACCOUNT, ENVIRONMENT, EPOCH};
use super::node::{Node, flow};
use super::target::{Target, status};

#[tokio::test]
async fn a_paused_flow_holds_its_messages_until_it_is_resumed() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("resting");
    plan.paused = true;
    node.deploy(&plan, &target.url).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(node.accepted("t-resting", format!("{{\"n\":{n}}}")).await);
    }
    for id in &ids {
        assert_eq!(node.message_when(id, |_| true).await.status, Status::Held);
    }
    assert!(target.received().is_empty());

    plan.paused = false;
    node.control.flow(&plan).await;
    for id in &ids {
        assert_eq!(node.finished(id).await.status, Status::Delivered);
    }
    assert_eq!(target.received().len(), 5);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn messages_of_one_ordering_key_go_out_one_after_another() {
    let node = Node::start().await;
    // The first attempt of each message fails: the next of its key must wait for the second attempt
    // all the same.
    let seen = std::sync::Mutex::new(std::collections::HashSet::new());
    let target = Target::answering(move |_, request| {
        let first = seen.lock().unwrap().insert(request.body.clone());
        status(if first { 500 } else { 200 })
    })
    .await;
    let mut plan = flow("ordered");
    plan.ordering_key = "source.key".to_owned();
    node.deploy(&plan, &target.url).await;
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(
            node.accepted("t-ordered", format!("{{\"key\":\"a\",\"n\":{n}}}"))
                .await,
        );
    }
    for id in &ids {
        assert_eq!(node.finished(id).await.status, Status::Delivered);
    }
    let bodies: Vec<String> = target
        .received()
        .iter()
        .map(|r| String::from_utf8(r.body.to_vec()).unwrap())
        .collect();
    let expected: Vec<String> = (0..4)
        .flat_map(|n| vec![format!("{{\"key\":\"a\",\"n\":{n}}}"); 2])
        .collect();
    assert_eq!(bodies, expected);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn what_one_start_leaves_the_next_one_delivers() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("later");
    plan.paused = true;
    node.deploy(&plan, &target.url).await;
    let id = node.accepted("t-later", "{}").await;
    plan.paused = false;
    let node = node.restart().await;
    node.control.flow(&plan).await;
    assert_eq!(node.finished(&id).await.status, Status::Delivered);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_message_runs_under_the_version_that_it_was_accepted_under() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("evolving");
    plan.paused = true;
    plan.target.as_mut().unwrap().endpoint = "/first".to_owned();
    node.deploy(&plan, &target.url).await;
    let first = node.accepted("t-evolving", "{}").await;
    plan.version = 2;
    plan.paused = false;
    plan.target.as_mut().unwrap().endpoint = "/second".to_owned();
    node.control.flow(&plan).await;
    let second = node.accepted("t-evolving", "{}").await;
    for (id, version) in [(&first, 1), (&second, 2)] {
        let message = node.finished(id).await;
        assert_eq!(message.status, Status::Delivered);
        assert_eq!(message.flow_version, version);
    }
    let mut paths: Vec<String> = target
        .received()
        .into_iter()
        .map(|request| request.path)
        .collect();
    paths.sort();
    assert_eq!(paths, ["/first", "/second"]);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn messages_of_a_deleted_flow_are_delivered_as_they_were_accepted() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("fleeting");
    plan.paused = true;
    node.deploy(&plan, &target.url).await;
    let id = node.accepted("t-fleeting", "{}").await;
    node.control.remove_flow("flw_fleeting").await;
    assert_eq!(node.finished(&id).await.status, Status::Delivered);
    assert_eq!(node.post("t-fleeting", "{}").await.status, 404);
    node.stop().await;
    target.stop().await;
}

/// A message that waits in the log for whoever runs its flow.
fn waiting(environment: &str, flow: &str, received_at: Timestamp) -> NewMessage {
    NewMessage {
        id: MessageId::generate(),
        account_id: AccountId::from(ACCOUNT),
        environment_id: EnvironmentId::from(environment),
        flow_id: FlowId::from(flow),
        flow_name: flow.to_owned(),
        flow_version: 1,
        trigger: Trigger::Webhook,
        raw_body: Bytes::from_static(b"{}"),
        payload: None,
        request: Bytes::from_static(b"{}"),
        received_at,
        ordering_key: None,
        dedupe_keys: Vec::new(),
        replay_of: None,
        batch_id: None,
        max_attempts: 1,
        traceparent: None,
        place: Placement::Queued,
    }
}

/// Marks a flow in the log as deleted by a change.
async fn mark_deleted(log: &dyn MessageLog, flow: &str, epoch: &str, generation: u64) {
    let deletion = SetVersion {
        epoch: epoch.to_owned(),
        generation,
    };
    let mark = SavedPlan::tombstone(FlowId::from(flow), deletion.encode_to_vec().into());
    log.save_plans(vec![mark]).await.unwrap();
}

#[tokio::test]
async fn a_node_without_a_flow_leaves_its_messages_to_others_until_it_runs_the_deletion() {
    let node = Node::start().await;
    let target = Target::start().await;
    mark_deleted(&*node.log, "flw_new", EPOCH, 1_000).await;
    let message = waiting(ENVIRONMENT, "flw_new", Timestamp::now());
    let id = message.id.clone();
    let mut changed = node.log.changed();
    node.log.append(message).await.unwrap();
    while node.log.stats().claimed == 0 {
        changed.changed().await.unwrap();
    }
    let left = node
        .message_when(&id, |message| message.status != Status::Processing)
        .await;
    assert_eq!(left.status, Status::Held);
    assert_eq!(left.attempts, 0, "it is no attempt");

    // The deletion was not committed: the node hears of the flow, and of other changes.
    node.deploy(&flow("new"), &target.url).await;
    assert_eq!(node.finished(&id).await.status, Status::Delivered);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_node_with_old_plans_leaves_a_message_to_others_and_runs_it_once_it_has_the_plans() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("grows"), &target.url).await;
    let made_from = Some(SetVersion {
        epoch: EPOCH.to_owned(),
        generation: 1_000,
    });
    let later = FlowPlan {
        version: 2,
        made_from,
        ..flow("grows")
    };
    let saved = SavedPlan {
        flow_id: FlowId::from("flw_grows"),
        version: 2,
        body: saved::encode_unsealed(&later),
    };
    node.log.save_plans(vec![saved]).await.unwrap();
    let now = Timestamp::now();
    let message = NewMessage {
        flow_version: 2,
        ..waiting(ENVIRONMENT, "flw_grows", now)
    };
    let id = message.id.clone();
    node.log.append(message).await.unwrap();

    let held = node
        .message_when(&id, |message| message.status == Status::Held)
        .await;
    assert_eq!(held.attempts, 0);
    let reason = held.error.unwrap().message;
    assert!(
        reason.starts_with("it waits for a node that runs version 2"),
        "{reason}"
    );
    // It is not claimed again and again, and messages that this node can run do not wait for it.
    let claimed = node.log.stats().claimed;
    let known = waiting(ENVIRONMENT, "flw_grows", Timestamp::now());
    let known_id = known.id.clone();
    node.log.append(known).await.unwrap();
    assert_eq!(node.finished(&known_id).await.status, Status::Delivered);
    assert_eq!(node.log.stats().claimed, claimed + 1);

    node.deploy(
        &FlowPlan {
            version: 2,
            ..flow("grows")
        },
        &target.url,
    )
    .await;
    let ended = node.finished(&id).await;
    assert_eq!(ended.status, Status::Delivered);
    assert_eq!(ended.error, None);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_message_waits_until_the_node_that_accepted_it_has_written_its_version_down() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("grows"), &target.url).await;
    let message = NewMessage {
        flow_version: 2,
        ..waiting(ENVIRONMENT, "flw_grows", Timestamp::now())
    };
    let id = message.id.clone();
    let mut changed = node.log.changed();
    node.log.append(message).await.unwrap();
    while node.log.stats().claimed == 0 {
        changed.changed().await.unwrap();
    }
    let left = node
        .message_when(&id, |message| message.status != Status::Processing)
        .await;
    assert_eq!(left.status, Status::Received);
    assert_eq!(left.attempts, 0, "it is no attempt");

    let saved = SavedPlan {
        flow_id: FlowId::from("flw_grows"),
        version: 2,
        body: saved::encode_unsealed(&FlowPlan {
            version: 2,
            ..flow("grows")
        }),
    };
    node.log.save_missing_plans(vec![saved]).await.unwrap();
    assert_eq!(node.finished(&id).await.status, Status::Delivered);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn an_old_message_of_a_version_that_nobody_knows_is_a_dead_letter() {
    let node = Node::start().await;
    let long_ago = Timestamp::now().before(Duration::from_secs(600));
    let message = waiting(ENVIRONMENT, "flw_unknown", long_ago);
    let id = message.id.clone();
    node.log.append(message).await.unwrap();
    let ended = node.finished(&id).await;
    assert_eq!(ended.status, Status::DeadLetter);
    let error = ended.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert_eq!(
        error.message,
        "the version of the flow that it was accepted under is not known"
    );
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_runs_the_deletion_of_a_flow_discards_its_messages() {
    let node = Node::start().await;
    mark_deleted(&*node.log, "flw_gone", EPOCH, 1).await;
    mark_deleted(&*node.log, "flw_gone_before_a_restore", "epoch_0", 1_000).await;
    for flow in ["flw_gone", "flw_gone_before_a_restore"] {
        let message = waiting(ENVIRONMENT, flow, Timestamp::now());
        let id = message.id.clone();
        node.log.append(message).await.unwrap();
        let ended = node.finished(&id).await;
        assert_eq!(ended.status, Status::Discarded, "{flow}");
        assert_eq!(ended.error.unwrap().kind, ErrorKind::FlowDeleted, "{flow}");
    }
    node.stop().await;
}

#[tokio::test]
async fn what_waits_for_another_environment_keeps_its_age_and_is_left_alone() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("ours"), &target.url).await;
    let long_ago = Timestamp::now().before(Duration::from_secs(600));
    node.log
        .append(waiting("env_2", "flw_theirs", long_ago))
        .await
        .unwrap();
    let mut changed = node.log.changed();
    let oldest = loop {
        changed.borrow_and_update();
        let waiting = node.log.waiting().await.unwrap();
        if let Some(theirs) = waiting.first().filter(|_| node.log.stats().claimed == 1) {
            break theirs.oldest;
        }
        changed.changed().await.unwrap();
    };
    assert_eq!(oldest, Some(long_ago), "nobody has served it meanwhile");

    // Other plans for the environment that is served say nothing of the other one.
    node.control.again().await;
    let ours = waiting(ENVIRONMENT, "flw_ours", Timestamp::now());
    let id = ours.id.clone();
    node.log.append(ours).await.unwrap();
    assert_eq!(node.finished(&id).await.status, Status::Delivered);
    assert_eq!(node.log.stats().claimed, 2);
    node.stop().await;
    target.stop().await;
}
