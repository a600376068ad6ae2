//! Fallback plans, for a node that lacks some and reaches no control plane.

use std::io;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use http::{Request, Response};
use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1::{Environment, PublishedSet, PublishedSets, Resource};
use tonic::body::Body;

use super::control::{Control, EPOCH, environment, flow, instance, plan, set_hash};
use super::{ControlPlanes, Node};
use crate::plans::Fallback;

/// A node that reaches nobody, and runs these sets where it may.
async fn alone(folder: &Path, sets: &[PublishedSet]) -> Node {
    let nobody = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(io::Error::from(io::ErrorKind::ConnectionRefused))
    });
    let sets = PublishedSets {
        sets: sets.to_vec(),
    };
    let fallback = Fallback::new(move || std::future::ready(Ok(sets.clone())).boxed());
    let node = Node::start_with(ControlPlanes::new(nobody).falling_back(fallback), folder).await;
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
