//! The node's end of the plan stream: a real log, a real folder, and a control plane that follows a
//! script.

pub(super) mod control;
mod disk;
mod fallback;
mod lagging;
mod missing;
mod renamed;
mod silence;
mod table;

use std::path::Path;
use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_mapping::{Lookup, Tables};
use kanat_message_log::MessageLog;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, FlowId, NodeId};
use kanat_plan_stream::{Hash, Kind};
use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::node_message::Kind as In;
use kanat_proto::node::v1::{Drain, Load, Resource};
use kanat_proto::plan::v1::trigger::Kind as Trigger;
use kanat_proto::plan::v1::{EnvironmentSettings, FlowPlan};
use prost::Message;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::Options;
use super::{ControlPlanes, PlanStreamClient, Plans};
use control::{Control, Stream, environment, flow, instance, plan, table};

/// Returns the options of a node whose data is in `folder`.
pub(super) fn options(folder: &Path) -> Options {
    Options {
        node_id: NodeId::from("node_1"),
        boot_id: BootId::generate(),
        build: "1.0.0".to_owned(),
        address: String::new(),
        environments: Vec::new(),
        data_dir: folder.to_owned(),
    }
}

/// A node that follows a control plane.
struct Node {
    plans: Plans,
    log: Arc<dyn MessageLog>,
    drain: watch::Receiver<Option<std::time::Duration>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Node {
    async fn start(control: &Control, folder: &Path) -> Self {
        Self::start_with(control.client(), folder).await
    }

    async fn start_with(control: ControlPlanes, folder: &Path) -> Self {
        let log = SqliteLog::open(folder.join("messages.db"), sqlite::Options::default())
            .await
            .unwrap();
        let log: Arc<dyn MessageLog> = Arc::new(log);
        let plans = Plans::new(log.clone());
        let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
        let load = Arc::new(Load::default);
        let client = PlanStreamClient::start(
            options(folder),
            plans.clone(),
            log.clone(),
            sealer,
            control,
            load,
        )
        .await;
        let drain = client.drain_requests();
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(client.run(stop.clone()));
        Self {
            plans,
            log,
            drain,
            stop,
            tasks,
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.log.close().await;
    }

    fn version(&self, flow: &str) -> Option<u32> {
        self.plans
            .load()
            .flow(&FlowId::from(flow))
            .map(|flow| flow.version)
    }

    /// The flow that a token opens.
    fn opened_by(&self, token: &str) -> Option<FlowId> {
        let snapshot = self.plans.load();
        snapshot
            .webhook(Hash::of(token.as_bytes()).as_bytes(), Timestamp::now())
            .map(|flow| flow.id.clone())
    }

    /// The id of the table of that name.
    fn table(&self, name: &str) -> Option<String> {
        let snapshot = self.plans.load();
        match snapshot.environment(&environment())?.lookup(name, "name") {
            Lookup::Value(id) => Some(id.to_owned()),
            Lookup::NoTable | Lookup::NoKey => None,
        }
    }
}

/// A node that runs version 1 of `flw_1`, at generation 1.
async fn running() -> (TempDir, Control, Stream, Node, Vec<Resource>) {
    let folder = tempfile::tempdir().unwrap();
    let mut control = Control::new(&["env_1"]);
    let node = Node::start(&control, folder.path()).await;
    let mut stream = control.stream().await;
    let set = vec![flow(&plan("flw_1", 1)), instance("ci_1")];
    stream.snapshot("env_1", 1, &set).await;
    stream.acked(1, &set).await;
    (folder, control, stream, node, set)
}

#[tokio::test]
async fn a_snapshot_goes_live_and_is_saved_before_it_is_acked() {
    let (_folder, _control, stream, node, _) = running().await;
    assert_eq!(stream.hello.node_id.as_str(), "node_1");
    assert_eq!(stream.hello.states.len(), 0);
    assert!(node.plans.is_complete());
    assert_eq!(node.version("flw_1"), Some(1));
    assert_eq!(node.opened_by("flw_1"), Some(FlowId::from("flw_1")));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn plans_are_not_loaded_before_every_environment_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut control = Control::new(&["env_1", "env_2"]);
    let node = Node::start(&control, folder.path()).await;
    let mut stream = control.stream().await;
    stream.snapshot("env_1", 0, &[]).await;
    stream.acked(0, &[]).await;
    assert!(!node.plans.is_complete());
    stream.snapshot("env_2", 0, &[]).await;
    stream.acked(0, &[]).await;
    assert!(node.plans.is_complete());
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn no_environment_takes_the_calls_to_one_that_has_not_come_yet() {
    let folder = tempfile::tempdir().unwrap();
    let mut control = Control::new(&["env_1", "env_2"]);
    let node = Node::start(&control, folder.path()).await;
    let mut stream = control.stream().await;
    let found = |node: &Node, host| {
        node.plans
            .load()
            .of_host(host)
            .map(|environment| environment.id.as_str().to_owned())
    };
    let first = [settings("env_1", "")];
    stream.snapshot("env_1", 1, &first).await;
    stream.acked(1, &first).await;
    assert_eq!(found(&node, "two.example.com"), None);
    assert_eq!(found(&node, "127.0.0.1:8080").as_deref(), Some("env_1"));

    let second = [settings("env_2", "https://two.example.com")];
    stream.snapshot("env_2", 1, &second).await;
    stream.acked(1, &second).await;
    assert_eq!(found(&node, "two.example.com").as_deref(), Some("env_2"));
    let second = [settings("env_2", "")];
    stream.snapshot("env_2", 2, &second).await;
    stream.acked(2, &second).await;
    assert_eq!(
        found(&node, "two.example.com").as_deref(),
        Some("env_1"),
        "no environment has a base URL any more"
    );
    drop(stream);
    node.stop().await;
}

/// The settings of an environment, of which `env_1` is the default one.
fn settings(id: &str, base_url: &str) -> Resource {
    let settings = EnvironmentSettings {
        id: id.to_owned(),
        base_url: base_url.to_owned(),
        is_default: id == "env_1",
        ..EnvironmentSettings::default()
    };
    control::resource(Kind::Environment, id, &settings)
}

#[tokio::test]
async fn a_delta_changes_what_it_names_and_nothing_else() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    let begun_with = node.plans.load();
    let replaced = node.plans.subscribe();
    assert!(!replaced.has_changed().unwrap());
    set.push(flow(&plan("flw_2", 1)));
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    assert_eq!(node.version("flw_1"), Some(1));
    assert_eq!(node.version("flw_2"), Some(1));
    assert!(replaced.has_changed().unwrap(), "polls begin at once");
    // Who began with the former plans ends with them.
    assert!(begun_with.flow(&FlowId::from("flw_2")).is_none());

    stream.delta(2, &[], &["flow/flw_1"], &set[1..]).await;
    stream.acked(3, &set[1..]).await;
    assert_eq!(node.version("flw_1"), None);
    assert_eq!(node.opened_by("flw_1"), None);
    assert_eq!(node.opened_by("flw_2"), Some(FlowId::from("flw_2")));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_resource_that_cannot_run_is_refused_alone() {
    let (_folder, _control, mut stream, node, set) = running().await;
    let bad = flow(&FlowPlan {
        when: "source. |".to_owned(),
        ..plan("flw_1", 2)
    });
    let good = flow(&plan("flw_2", 1));
    let announced = [bad.clone(), set[1].clone(), good.clone()];
    let runs = [set[0].clone(), set[1].clone(), good.clone()];
    stream.delta(1, &[bad, good], &[], &announced).await;
    stream.nacked(2, &["flow/flw_1"], &runs).await;
    assert_eq!(node.version("flw_1"), Some(1));
    assert_eq!(node.version("flw_2"), Some(1));
    assert!(node.opened_by("flw_1").is_some());

    // The next delta starts from what runs.
    let mended = flow(&plan("flw_1", 3));
    let set = [mended.clone(), set[1].clone(), runs[2].clone()];
    stream.delta(2, &[mended], &[], &set).await;
    stream.acked(3, &set).await;
    assert_eq!(node.version("flw_1"), Some(3));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn tables_swap_their_names_in_one_step() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    let former = [table("lt_1", "eu"), table("lt_2", "us")];
    set.extend(former);
    stream.delta(1, &set[2..], &[], &set).await;
    stream.acked(2, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("lt_1"));
    assert_eq!(node.table("us").as_deref(), Some("lt_2"));
    set.truncate(2);
    set.extend([table("lt_1", "us"), table("lt_2", "eu")]);
    stream.delta(2, &set[2..], &[], &set).await;
    stream.acked(3, &set).await;
    assert_eq!(node.table("eu").as_deref(), Some("lt_2"));
    assert_eq!(node.table("us").as_deref(), Some("lt_1"));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_delta_from_elsewhere_or_to_elsewhere_asks_for_a_snapshot() {
    let (_folder, _control, mut stream, node, set) = running().await;
    let next = [set[0].clone(), set[1].clone(), flow(&plan("flw_2", 1))];
    stream.delta(5, &next[2..], &[], &next).await;
    assert!(matches!(stream.answer().await, In::SnapshotRequest(_)));
    stream.delta(1, &next[2..], &[], &set).await;
    assert!(matches!(stream.answer().await, In::SnapshotRequest(_)));
    let forged = Resource {
        hash: vec![1; 32],
        ..next[2].clone()
    };
    stream.delta(1, &[forged], &[], &next).await;
    assert!(matches!(stream.answer().await, In::SnapshotRequest(_)));
    assert_eq!(node.version("flw_2"), None);
    stream.snapshot("env_1", 7, &next).await;
    stream.acked(7, &next).await;
    assert_eq!(node.version("flw_2"), Some(1));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_damaged_snapshot_changes_nothing_and_the_node_comes_back() {
    let (_folder, mut control, mut stream, node, _) = running().await;
    let next = [instance("ci_1"), flow(&plan("flw_2", 1))];
    stream
        .snapshot_with("env_1", 2, &next, |begin| begin.sha256 = vec![0; 32])
        .await;
    let mut stream = control.stream().await;
    assert_eq!(node.version("flw_1"), Some(1));
    assert_eq!(node.version("flw_2"), None);
    let state = &stream.hello.states[0];
    assert_eq!(state.generation, 1);
    assert_eq!(state.resources.len(), 2);
    stream.snapshot("env_1", 2, &next).await;
    stream.acked(2, &next).await;
    assert_eq!(node.version("flw_1"), None);
    assert_eq!(node.version("flw_2"), Some(1));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn an_empty_set_replaces_a_full_one_only_when_it_is_meant() {
    let (_folder, _control, mut stream, node, set) = running().await;
    stream.snapshot("env_1", 9, &[]).await;
    stream.nacked(1, &[""], &set).await;
    assert_eq!(node.version("flw_1"), Some(1));
    stream
        .snapshot_with("env_1", 9, &[], |begin| begin.allow_empty = true)
        .await;
    stream.acked(9, &[]).await;
    assert_eq!(node.version("flw_1"), None);
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_set_of_another_epoch_replaces_what_was_there() {
    let (_folder, _control, mut stream, node, _) = running().await;
    let set = [instance("ci_1"), flow(&plan("flw_1", 5))];
    stream
        .snapshot_with("env_1", 1, &set, |begin| begin.epoch = "epoch_2".to_owned())
        .await;
    stream.acked(1, &set).await;
    assert_eq!(node.version("flw_1"), Some(5));
    assert_eq!(
        node.plans
            .load()
            .environment(&environment())
            .unwrap()
            .epoch
            .as_str(),
        "epoch_2"
    );
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_restarted_node_runs_what_ran_last_with_no_control_plane() {
    let (folder, _control, mut stream, node, mut set) = running().await;
    for version in 2..6 {
        set[0] = flow(&plan("flw_1", version));
        stream
            .delta(u64::from(version) - 1, &set[..1], &[], &set)
            .await;
        stream.acked(version.into(), &set).await;
    }
    node.stop().await;

    let mut control = Control::new(&["env_1"]);
    let node = Node::start(&control, folder.path()).await;
    assert!(node.plans.is_complete());
    assert_eq!(node.version("flw_1"), Some(5));
    assert_eq!(node.opened_by("flw_1"), Some(FlowId::from("flw_1")));
    // When it finds one, it says what it holds, and goes on from there.
    let mut stream = control.stream().await;
    let state = &stream.hello.states[0];
    assert_eq!(state.generation, 5);
    assert_eq!(&state.set_hash, &control::set_hash(&set));
    set.push(flow(&plan("flw_2", 1)));
    stream.delta(5, &set[2..], &[], &set).await;
    stream.acked(6, &set).await;
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn nothing_of_the_plans_can_be_read_from_the_disk() {
    let (folder, _control, _stream, node, _) = running().await;
    node.stop().await;
    let mut files = 0;
    for entry in walk(&folder.path().join("plans")) {
        let bytes = std::fs::read(entry).unwrap();
        for secret in ["hunter2", "flw_1", "example.com", "env_1"] {
            assert!(
                !bytes
                    .windows(secret.len())
                    .any(|window| window == secret.as_bytes()),
                "{secret}"
            );
        }
        files += 1;
    }
    assert_eq!(files, 2);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[tokio::test]
async fn an_environment_that_is_no_longer_served_is_dropped() {
    let (folder, mut control, stream, node, _) = running().await;
    control.serves(&[]);
    drop(stream);
    let mut stream = control.stream().await;
    stream.snapshot("env_2", 0, &[]).await;
    stream.acked(0, &[]).await;
    assert_eq!(node.version("flw_1"), None);
    assert_eq!(node.opened_by("flw_1"), None);
    assert!(node.plans.load().environment(&environment()).is_none());
    node.stop().await;
    let node = Node::start(&Control::new(&[]), folder.path()).await;
    assert!(node.plans.load().environment(&environment()).is_none());
    assert!(
        node.plans
            .load()
            .environment(&EnvironmentId::from("env_2"))
            .is_some()
    );
    node.stop().await;
}

#[tokio::test]
async fn messages_end_at_a_node_that_no_longer_serves_their_environment() {
    let (_folder, mut control, stream, node, _) = running().await;
    let removed = node
        .plans
        .load()
        .flow(&FlowId::from("flw_1"))
        .unwrap()
        .removed
        .clone();
    control.serves(&[]);
    drop(stream);
    let mut stream = control.stream().await;
    stream.snapshot("env_2", 0, &[]).await;
    stream.acked(0, &[]).await;
    assert!(removed.is_cancelled());
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_message_keeps_the_version_that_it_was_accepted_under() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    set[0] = flow(&FlowPlan {
        ordering_key: "source.id".to_owned(),
        ..plan("flw_1", 2)
    });
    stream.delta(1, &set[..1], &[], &set).await;
    stream.acked(2, &set).await;

    let id = FlowId::from("flw_1");
    let current = node
        .plans
        .runnable_version(&environment(), &id, 2)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(current.flow.plan().ordering_key, "source.id");
    let former = node
        .plans
        .runnable_version(&environment(), &id, 1)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(former.flow.version, 1);
    assert_eq!(former.flow.plan().ordering_key.as_str(), "");
    assert_eq!(former.environment.generation, 2);
    assert!(Arc::ptr_eq(
        &former.flow,
        &node
            .plans
            .runnable_version(&environment(), &id, 1)
            .await
            .unwrap()
            .unwrap()
            .flow
    ));
    assert!(
        node.plans
            .runnable_version(&environment(), &id, 9)
            .await
            .unwrap()
            .is_none()
    );

    // What is kept for it holds no secret of the ingress.
    let kept = FlowPlan::decode(node.log.plan(&id, 1).await.unwrap().unwrap()).unwrap();
    let Some(Trigger::Webhook(webhook)) = kept.trigger.unwrap().kind else {
        panic!("it has a webhook")
    };
    assert!(webhook.tokens.is_empty() && webhook.verify.is_none());

    // A deleted flow's messages can still be run.
    stream.delta(2, &[], &["flow/flw_1"], &set[1..]).await;
    stream.acked(3, &set[1..]).await;
    assert_eq!(
        node.plans
            .runnable_version(&environment(), &id, 2)
            .await
            .unwrap()
            .unwrap()
            .flow
            .version,
        2
    );
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_token_opens_its_flow_until_it_expires() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    let expires_at = Timestamp::now().after(std::time::Duration::from_secs(3_600));
    let mut rotated = plan("flw_1", 1);
    let Some(Trigger::Webhook(webhook)) = rotated.trigger.as_mut().unwrap().kind.as_mut() else {
        panic!()
    };
    webhook.tokens[0].expires_at = expires_at.as_millis();
    set[0] = flow(&rotated);
    stream.delta(1, &set[..1], &[], &set).await;
    stream.acked(2, &set).await;
    let snapshot = node.plans.load();
    let token = *Hash::of(b"flw_1").as_bytes();
    assert!(
        snapshot
            .webhook(
                &token,
                expires_at.before(std::time::Duration::from_millis(1))
            )
            .is_some()
    );
    assert!(snapshot.webhook(&token, expires_at).is_none());
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_drain_is_passed_on_and_a_stopped_node_says_farewell() {
    let (_folder, _control, mut stream, mut node, _) = running().await;
    stream
        .say(Out::Drain(Drain {
            deadline_seconds: 7,
        }))
        .await;
    node.drain.changed().await.unwrap();
    assert_eq!(
        *node.drain.borrow(),
        Some(std::time::Duration::from_secs(7))
    );
    node.stop.cancel();
    assert!(matches!(stream.answer().await, In::Drained(_)));
    drop(stream);
    node.stop().await;
}
