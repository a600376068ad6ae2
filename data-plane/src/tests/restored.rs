//! A message log that was restored from a backup: messages that came in since run under the
//! versions that the backup lacks.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::PlanStore;
use kanat_message_log::postgres::{self, PostgresLog};
use kanat_model::id::FlowId;
use kanat_model::message::Status;
use kanat_testing_postgres::Database;

use super::node::{Node, flow};
use super::target::Target;

#[tokio::test]
async fn a_message_that_came_in_after_a_restore_runs_under_the_version_that_the_restore_undid() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("restored");
    plan.version = 2;
    plan.paused = true;
    plan.target.as_mut().unwrap().endpoint = "/second".to_owned();
    node.deploy(&plan, &target.url).await;
    // The log has lost the version, and the node has not heard yet that the store has, too.
    let node = node.restart_on_empty_log().await;
    let flow_id = FlowId::from("flw_restored");
    assert_eq!(node.log.plan(&flow_id, 2).await.unwrap(), None);
    let id = node.accepted("t-restored", "{}").await;
    node.control.restored(&flow("restored")).await;
    let ended = node.finished(&id).await;
    assert_eq!(ended.status, Status::Delivered, "{:?}", ended.error);
    assert_eq!(ended.flow_version, 2);
    assert_eq!(target.received()[0].path, "/second");

    let later = node.accepted("t-restored", "{}").await;
    assert_eq!(node.finished(&later).await.flow_version, 1);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_node_writes_the_versions_that_it_runs_into_a_log_that_went_back() {
    let database = Database::fresh();
    let log = PostgresLog::open(database.url(), postgres::Options::default())
        .await
        .unwrap();
    let log = Arc::new(log);
    let node = Node::with_lease(log.clone(), Duration::from_secs(3)).await;
    let target = Target::start().await;
    node.deploy(&flow("restored"), &target.url).await;
    let backup = database.back_up().unwrap();
    let mut plan = flow("restored");
    plan.version = 2;
    node.control.flow(&plan).await;
    let flow_id = FlowId::from("flw_restored");
    assert!(log.plan(&flow_id, 2).await.unwrap().is_some());

    database.restore(&backup).unwrap();
    let saved = async {
        // The connections of before the restore are broken.
        while !matches!(log.plan(&flow_id, 2).await, Ok(Some(_))) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), saved)
        .await
        .expect("the node has no other plans, and hears of the restore from the log alone");
    node.stop().await;
    target.stop().await;
}
