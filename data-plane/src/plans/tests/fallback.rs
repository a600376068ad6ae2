//! Fallback plans, for a node that lacks some and reaches no control plane.

use std::io;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use http::{Request, Response};
use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1::{Environment, PublishedSet, PublishedSets, Resource};
use tokio::sync::watch;
use tonic::body::Body;

use super::control::{Control, EPOCH, environment, flow, instance, plan, set_hash};
use super::{ControlPlanes, Node};
use crate::plans::Fallback;

/// Starts a node that reaches no control plane and has these fallback plans. The channel counts
/// how often they were read.
async fn start_alone(folder: &Path, sets: &[PublishedSet]) -> (Node, watch::Receiver<u32>) {
    let nobody = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(io::Error::from(io::ErrorKind::ConnectionRefused))
    });
    let sets = PublishedSets {
        sets: sets.to_vec(),
    };
    let (sender, reads) = watch::channel(0);
    let fallback = Fallback::new(move || {
        sender.send_modify(|reads| *reads += 1);
        std::future::ready(Ok(sets.clone())).boxed()
    });
    let node = Node::start_with(ControlPlanes::new(nobody).falling_back(fallback), folder).await;
    (node, reads)
}

/// Starts a node that reaches no control plane, and waits until these fallback plans complete it.
async fn alone(folder: &Path, sets: &[PublishedSet]) -> Node {
    let (node, _reads) = start_alone(folder, sets).await;
    let loaded = async {
        while !node.plans.is_complete() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), loaded)
        .await
        .unwrap();
    node
}

fn set(environment: &str, epoch: &str, generation: u64, resources: &[Resource]) -> PublishedSet {
    PublishedSet {
        environment: Some(Environment {
            id: environment.to_owned(),
            ..Environment::default()
        }),
        epoch: epoch.to_owned(),
        generation,
        set_hash: set_hash(resources),
        resources: resources.to_vec(),
    }
}

/// A folder of a node that is to serve two environments, and holds generation 5 of the first.
async fn of_a_node_that_lacks_one() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut control = Control::new(&["env_1", "env_2"]);
    let node = Node::start(&control, folder.path()).await;
    let mut stream = control.stream().await;
    let held = [flow(&plan("flw_1", 5)), instance("ci_1")];
    stream.snapshot("env_1", 5, &held).await;
    stream.acked(5, &held).await;
    drop(stream);
    node.stop().await;
    folder
}

/// Asserts that these fallback plans do not complete the node: they are read again after they
/// were applied, which a complete node does not do.
async fn assert_stays_incomplete(folder: &Path, sets: &[PublishedSet]) -> Node {
    let (node, mut reads) = start_alone(folder, sets).await;
    let is_read_again = async {
        while *reads.borrow_and_update() < 2 && !node.plans.is_complete() {
            let _ = tokio::time::timeout(Duration::from_millis(10), reads.changed()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_read_again)
        .await
        .unwrap();
    assert!(!node.plans.is_complete());
    node
}

#[tokio::test]
async fn a_node_that_lacks_an_environment_is_not_complete_without_it() {
    let folder = of_a_node_that_lacks_one().await;
    let newer = [flow(&plan("flw_2", 1)), instance("ci_1")];
    let node = assert_stays_incomplete(folder.path(), &[set("env_1", EPOCH, 6, &newer)]).await;
    assert_eq!(node.version("flw_2"), Some(1), "the others are adopted");
    node.stop().await;
    // The node still knows after a restart that it is to serve the environment.
    let node = assert_stays_incomplete(folder.path(), &[]).await;
    assert_eq!(node.version("flw_2"), Some(1));
    node.stop().await;
}

#[tokio::test]
async fn a_new_node_is_not_complete_without_any_environment() {
    let folder = tempfile::tempdir().unwrap();
    assert_stays_incomplete(folder.path(), &[])
        .await
        .stop()
        .await;
    // Nothing was saved that makes the next start complete.
    let node = alone(folder.path(), &[set("env_1", EPOCH, 1, &[])]).await;
    node.stop().await;
}

#[tokio::test]
async fn what_ran_last_is_not_replaced_by_what_came_before_it() {
    for (epoch, generation) in [(EPOCH, 4), (EPOCH, 5), ("epoch_2", 9)] {
        let folder = of_a_node_that_lacks_one().await;
        let older = [
            flow(&plan("flw_1", 4)),
            flow(&plan("flw_revoked", 1)),
            instance("ci_1"),
        ];
        let sets = [
            set("env_1", epoch, generation, &older),
            set("env_2", EPOCH, 3, &[]),
        ];
        let node = alone(folder.path(), &sets).await;
        assert_eq!(node.version("flw_1"), Some(5), "{epoch} {generation}");
        assert_eq!(node.version("flw_revoked"), None, "{epoch} {generation}");
        assert!(
            node.plans
                .load()
                .environment(&EnvironmentId::from("env_2"))
                .is_some()
        );
        node.stop().await;
    }
}

#[tokio::test]
async fn what_came_after_it_replaces_what_ran_last() {
    let folder = of_a_node_that_lacks_one().await;
    let newer = [flow(&plan("flw_2", 1)), instance("ci_1")];
    let node = alone(
        folder.path(),
        &[set("env_1", EPOCH, 6, &newer), set("env_2", EPOCH, 3, &[])],
    )
    .await;
    assert_eq!(node.version("flw_1"), None, "it was removed meanwhile");
    assert_eq!(node.opened_by("flw_1"), None, "it was removed meanwhile");
    assert_eq!(node.version("flw_2"), Some(1));
    node.stop().await;
    let node = alone(folder.path(), &[]).await;
    assert_eq!(
        node.plans
            .load()
            .environment(&environment())
            .unwrap()
            .generation,
        6,
        "it is saved"
    );
    node.stop().await;
}
