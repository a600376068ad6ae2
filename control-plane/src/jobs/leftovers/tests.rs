//! Leftovers that are dropped, and records that stay.

use std::time::Duration;

use bytes::Bytes;
use kanat_auth::Role;
use kanat_message_log::{
    AppendOutcome, LeasedWriteOutcome, NewMessage, Outcome, Placement, PollClaim, SeenRecord,
    Settlement, Tenant,
};
use kanat_model::batch_job::Status;
use kanat_model::id::{
    BatchJobId, BootId, EnvironmentId, FlowId, MessageId, NodeId, PublishedApiId,
};
use kanat_model::message::Trigger;
use kanat_model::published_api::{Auth, Method, OnTimeout, Validation};
use kanat_plan_stream::Kind;
use kanat_store::batch_job::{self, BatchJob, record, upload};
use kanat_store::flow::Flow;
use kanat_store::published_api::{self, PublishedApi};
use kanat_store::{consumer_key as stored, environment, flow, published};

use super::*;
use crate::app::{Call, testing};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A job of one record that finished then.
async fn a_job(app: &App, flow: &Flow, finished_at: Timestamp) -> BatchJobId {
    let job = BatchJob {
        id: BatchJobId::generate(),
        account_id: flow.account_id.clone(),
        environment_id: flow.environment_id.clone(),
        flow_id: flow.id.clone(),
        status: Status::Queued,
        total: 1,
        concurrency: 1,
        succeeded: 0,
        failed: 0,
        retry_of: None,
        created_at: finished_at,
        started_at: None,
        finished_at: None,
    };
    let mut tx = app.store.begin().await.unwrap();
    batch_job::insert(&mut tx, &job).await.unwrap();
    record::insert(&mut tx, &job.id, 0, &["{}".to_owned()])
        .await
        .unwrap();
    batch_job::ended(&mut tx, &job.id, 1, 0).await.unwrap();
    assert!(
        batch_job::finish(&mut tx, &job.id, finished_at)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    job.id
}

async fn an_upload(app: &App, touched_at: Timestamp) -> BatchJobId {
    let id = BatchJobId::generate();
    let mut tx = app.store.begin().await.unwrap();
    upload::begin(&mut tx, &id, touched_at).await.unwrap();
    record::insert(&mut tx, &id, 0, &["{}".to_owned()])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    id
}

/// Returns whether the job has records.
async fn has_records(app: &App, id: &BatchJobId) -> bool {
    let mut tx = app.store.begin().await.unwrap();
    record::start_next(&mut tx, id, 1).await.unwrap() > 0
}

async fn exists(app: &App, environment: &EnvironmentId, id: &BatchJobId) -> bool {
    batch_job::get(&mut app.store.read().await.unwrap(), environment, id)
        .await
        .unwrap()
        .is_some()
}

#[tokio::test]
async fn what_is_old_or_of_nobody_goes_and_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = testing::in_folder(folder.path()).await;
    let now = Timestamp::now();
    let kept = testing::flow(&app, "kept").await;
    let gone = testing::flow(&app, "gone").await;
    let old = a_job(&app, &kept, now.before(DAY * 8)).await;
    let recent = a_job(&app, &kept, now.before(DAY * 6)).await;
    let silent = an_upload(&app, now.before(Duration::from_secs(3_700))).await;
    let coming = an_upload(&app, now.before(Duration::from_secs(3_500))).await;
    for flow in [&kept, &gone] {
        let claim = PollClaim {
            flow_id: flow.id.clone(),
            version: 1,
            owner: BootId::generate(),
            now,
            held_until: now.after(DAY),
        };
        app.log.claim_poll(&claim).await.unwrap();
        let seen = SeenRecord {
            id: "1".to_owned(),
            hash: "h".to_owned(),
            count: 1,
            seen_at: now,
        };
        app.log
            .upsert_seen_records(&flow.id, vec![seen])
            .await
            .unwrap();
    }
    let mut tx = app.store.begin().await.unwrap();
    flow::delete(&mut tx, &gone.environment_id, &gone.id, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    drop_all(&app).await;
    assert!(
        exists(&app, &kept.environment_id, &old).await,
        "jobs are kept for ever"
    );
    app.retention.batch_jobs = Some(DAY * 7);
    drop_all(&app).await;
    assert!(!exists(&app, &kept.environment_id, &old).await);
    assert!(exists(&app, &kept.environment_id, &recent).await);
    assert!(!(has_records(&app, &silent).await));
    assert!(has_records(&app, &coming).await);
    assert_eq!(
        app.log.polled_flows().await.unwrap(),
        std::slice::from_ref(&kept.id)
    );
    let ids = ["1".to_owned()];
    assert_eq!(app.log.seen_records(&gone.id, &ids).await.unwrap(), []);
    assert_eq!(app.log.seen_records(&kept.id, &ids).await.unwrap().len(), 1);
    app.log.close().await;
}

/// Puts a message into the log that was received and delivered at an instant.
async fn a_message(app: &App, flow: &FlowId, at: Timestamp) -> MessageId {
    let boot = BootId::generate();
    let id = MessageId::generate();
    let lease = app.log.open_lease(&boot, &NodeId::generate(), DAY).await;
    lease.unwrap();
    let message = NewMessage {
        id: id.clone(),
        account_id: "acc_1".into(),
        environment_id: "env_1".into(),
        flow_id: flow.clone(),
        flow_name: "orders".to_owned(),
        flow_version: 1,
        trigger: Trigger::Webhook,
        raw_body: Bytes::from_static(b"{}"),
        payload: None,
        request: Bytes::from_static(b"{}"),
        received_at: at,
        ordering_key: None,
        dedupe_keys: Vec::new(),
        replay_of: None,
        batch_id: None,
        max_attempts: 1,
        traceparent: None,
        place: Placement::Leased(boot),
    };
    let AppendOutcome::Leased(lease) = app.log.append(message).await.unwrap() else {
        panic!("it is leased")
    };
    let settlement = Settlement {
        lease,
        at,
        attempt: 1,
        outcome: Outcome::Delivered,
        output: None,
        failure: None,
        trace: Vec::new(),
    };
    let settled = app.log.settle(&settlement).await.unwrap();
    assert_eq!(settled, LeasedWriteOutcome::Done);
    id
}

/// Returns which of these messages the log has.
async fn left(app: &App, messages: &[&MessageId]) -> Vec<bool> {
    let tenant = Tenant {
        account_id: "acc_1".into(),
        environment_id: "env_1".into(),
    };
    let mut left = Vec::new();
    for id in messages {
        left.push(app.log.get(&tenant, id).await.unwrap().is_some());
    }
    left
}

#[tokio::test]
async fn an_environment_keeps_its_messages_for_a_time_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = testing::in_folder(folder.path()).await;
    let now = Timestamp::now();
    let orders = testing::flow(&app, "orders").await;
    let gone = testing::flow(&app, "gone").await;
    let old = a_message(&app, &orders.id, now.before(DAY * 8)).await;
    let of_gone = a_message(&app, &gone.id, now.before(DAY * 8)).await;
    let recent = a_message(&app, &orders.id, now.before(DAY * 6)).await;
    let elsewhere = a_message(&app, &FlowId::generate(), now.before(DAY * 8)).await;
    let all = [&old, &of_gone, &recent, &elsewhere];
    let mut tx = app.store.begin().await.unwrap();
    flow::delete(&mut tx, &gone.environment_id, &gone.id, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    drop_all(&app).await;
    assert_eq!(left(&app, &all).await, [true, true, true, true]);

    let mut tx = app.store.begin().await.unwrap();
    let mut here = environment::all(&mut tx).await.unwrap().swap_remove(0);
    here.retention_days = Some(7);
    environment::update(&mut tx, &mut here).await.unwrap();
    tx.commit().await.unwrap();
    drop_all(&app).await;
    assert_eq!(left(&app, &all).await, [false, false, true, true]);

    // The service may have been started with fewer days since.
    app.retention.messages = Some(DAY * 5);
    drop_all(&app).await;
    assert_eq!(left(&app, &all).await, [false, false, false, false]);
    app.log.close().await;
}

#[tokio::test]
async fn keys_whose_grace_is_over_leave_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let (call, api) = an_api(&app).await;
    let made = async |consumer| {
        let made = consumer_key::create(&call, &api, consumer, Default::default()).await;
        made.unwrap().value.key.id
    };
    let over = made("over").await;
    let open = made("open").await;
    let rotated = async |id| {
        consumer_key::rotate(&call, &api, id, Some("1h"))
            .await
            .unwrap()
            .value
            .key
            .id
    };
    let instead = rotated(&over).await;
    let beside = rotated(&open).await;
    let mut tx = app.store.begin().await.unwrap();
    let mut key = stored::get(&mut tx, &api, &over).await.unwrap().unwrap();
    key.standing.expires_at = Some(Timestamp::now());
    stored::update(&mut tx, &key).await.unwrap();
    tx.commit().await.unwrap();
    let dropped = consumer_key::drop_expired(&app).await.unwrap();
    let mut tx = app.store.read().await.unwrap();
    for (key, runs) in [(over, false), (open, true), (instead, true), (beside, true)] {
        let resource_id = Kind::ConsumerKey.resource_id(key.as_str());
        let found = published::get(&mut tx, &call.caller.environment_id, &resource_id)
            .await
            .unwrap();
        assert_eq!(found.is_some(), runs, "{key}");
    }
    drop(tx);
    assert_eq!(dropped, 1);
    assert_eq!(consumer_key::drop_expired(&app).await.unwrap(), 0);
    app.log.close().await;
}

async fn an_api(app: &App) -> (Call, PublishedApiId) {
    let call = testing::call(app, Role::Owner).await;
    let api = PublishedApi {
        id: PublishedApiId::generate(),
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        name: "orders".to_owned(),
        description: String::new(),
        method: Method::Post,
        path: "orders".to_owned(),
        shape: "orders".to_owned(),
        auth: Auth::ApiKey,
        oauth2: None,
        validation: Validation::Strict,
        deadline_ms: 30_000,
        on_timeout: OnTimeout::Continue,
        strict_response: false,
        cors: None,
        revision: 1,
        created_at: Timestamp::now(),
        updated_at: Timestamp::now(),
    };
    let mut tx = app.store.begin().await.unwrap();
    published_api::insert(&mut tx, &api).await.unwrap();
    tx.commit().await.unwrap();
    (call, api.id)
}

async fn seen(store: &Store, id: &str, last_seen_at: Timestamp) {
    let node = node::Node {
        id: NodeId::from(id),
        boot_id: BootId::from("boot_1"),
        address: String::new(),
        build: "1.0.0".to_owned(),
        control_plane: BootId::from(""),
        status: "disconnected".to_owned(),
        in_flight: 0,
        environments: Vec::new(),
        serves_all: false,
        last_seen_at,
    };
    let running = node::EnvironmentStatus {
        environment_id: EnvironmentId::from("env_1"),
        epoch: "epoch_1".to_owned(),
        generation: 7,
        set_hash: String::new(),
        rejected: Vec::new(),
    };
    let mut tx = store.begin().await.unwrap();
    assert!(node::upsert(&mut tx, &node).await.unwrap());
    node::environment::upsert(&mut tx, &node.id, &running)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_node_that_was_not_seen_for_a_week_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_file(&folder.path().join("kanat.db"))
        .await
        .unwrap();
    let now = Timestamp::now();
    seen(
        &store,
        "node_gone",
        now.before(DISCONNECTED_RETENTION + Duration::from_secs(60)),
    )
    .await;
    seen(
        &store,
        "node_away",
        now.before(DISCONNECTED_RETENTION - Duration::from_secs(3_600)),
    )
    .await;
    seen(&store, "node_here", now).await;
    assert_eq!(
        drop_unseen(&store, now.before(DISCONNECTED_RETENTION))
            .await
            .unwrap(),
        1
    );
    let left = node::all(&mut store.read().await.unwrap()).await.unwrap();
    let left: Vec<_> = left
        .iter()
        .map(|node| (node.id.as_str(), node.environments.len()))
        .collect();
    assert_eq!(left, [("node_here", 1), ("node_away", 1)]);
}
