//! A disk that does not take plans: they run all the same, and are saved once it does.

use kanat_proto::node::v1::Heartbeat;
use kanat_proto::node::v1::control_message::Kind as Out;

use super::control::{Control, flow, instance, plan};
use super::{Node, environment, running};

#[tokio::test]
async fn plans_that_could_not_be_saved_count_as_not_applied_until_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("plans");
    std::fs::write(&in_the_way, "a file where a folder should be").unwrap();
    let mut control = Control::new(&["env_1"]);
    let node = Node::start(&control, folder.path()).await;
    let set = vec![flow(&plan("flw_1", 1)), instance("ci_1")];
    let mut first = control.stream().await;
    first.snapshot("env_1", 1, &set).await;

    // It comes back and says what it runs, and that it has not come to that generation.
    let mut stream = control.stream().await;
    drop(first);
    let state = &stream.hello.states[0];
    assert_eq!(state.generation, 0);
    assert_eq!(&state.set_hash, &super::control::set_hash(&set));
    assert_eq!(node.version("flw_1"), Some(1), "it runs them");
    assert!(node.plans.is_complete(), "it runs them");

    std::fs::remove_file(&in_the_way).unwrap();
    stream.delta(0, &[], &[], &set).await;
    stream.acked(1, &set).await;
    // What the node serves is saved as late as its control plane's next heartbeat.
    stream.say(Out::Heartbeat(Heartbeat::default())).await;
    stream.delta(1, &[], &[], &set).await;
    stream.acked(2, &set).await;
    drop(stream);
    node.stop().await;

    let node = Node::start(&Control::new(&[]), folder.path()).await;
    assert_eq!(node.version("flw_1"), Some(1), "with no control plane");
    assert!(node.plans.is_complete(), "with no control plane");
    assert_eq!(
        node.plans
            .load()
            .environment(&environment())
            .unwrap()
            .generation,
        2
    );
    node.stop().await;
}

#[tokio::test]
async fn plans_of_an_unchanged_generation_that_could_not_be_saved_are_saved_later() {
    let (folder, mut control, stream, node, mut set) = running().await;
    drop(stream);
    node.stop().await;
    let node = Node::start(&control, folder.path()).await;
    let plans = folder.path().join("plans");
    let aside = folder.path().join("aside");
    std::fs::rename(&plans, &aside).unwrap();
    std::fs::write(&plans, "a file where a folder should be").unwrap();
    let mut first = control.stream().await;
    set.push(flow(&plan("flw_2", 1)));
    first.snapshot("env_1", 1, &set).await;

    // The control plane sends something only to a node of an earlier generation.
    let mut stream = control.stream().await;
    drop(first);
    let state = &stream.hello.states[0];
    assert_eq!(state.generation, 0);
    assert_eq!(&state.set_hash, &super::control::set_hash(&set));
    assert_eq!(node.version("flw_2"), Some(1), "it runs them");

    std::fs::remove_file(&plans).unwrap();
    std::fs::rename(&aside, &plans).unwrap();
    stream.delta(0, &[], &[], &set).await;
    stream.acked(1, &set).await;
    drop(stream);
    node.stop().await;

    let node = Node::start(&Control::new(&[]), folder.path()).await;
    assert_eq!(node.version("flw_2"), Some(1), "with no control plane");
    node.stop().await;
}
