//! Leftovers that are dropped, and records that stay.

use std::time::Duration;

use kanat_auth::Role;
use kanat_message_log::{PollClaim, SeenRecord};
use kanat_model::batch_job::Status;
use kanat_model::id::{BatchJobId, BootId, EnvironmentId, PublishedApiId};
use kanat_model::published_api::{Auth, Method, OnTimeout, Validation};
use kanat_plan_stream::Kind;
use kanat_store::batch_job::{self, BatchJob, record, upload};
use kanat_store::flow::Flow;
use kanat_store::published_api::{self, PublishedApi};
use kanat_store::{consumer_key as stored, flow, published};

use super::*;
use crate::app::{Caller, testing};

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
    let app = testing::in_folder(folder.path()).await;
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
        app.log.note_records(&flow.id, vec![seen]).await.unwrap();
    }
    let mut tx = app.store.begin().await.unwrap();
    flow::delete(&mut tx, &gone.environment_id, &gone.id, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    drop_all(&app, None).await;
    assert!(
        exists(&app, &kept.environment_id, &old).await,
        "jobs are kept for ever"
    );
    drop_all(&app, Some(DAY * 7)).await;
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

#[tokio::test]
async fn keys_whose_grace_is_over_leave_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let (caller, api) = an_api(&app).await;
    let made = async |consumer| {
        let made = consumer_key::create(&app, &caller, &api, consumer, Default::default()).await;
        made.unwrap().value.key.id
    };
    let over = made("over").await;
    let open = made("open").await;
    let rotated = async |id| {
        consumer_key::rotate(&app, &caller, &api, id, Some("1h"))
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
        let found = published::get(&mut tx, &caller.environment_id, &resource_id)
            .await
            .unwrap();
        assert_eq!(found.is_some(), runs, "{key}");
    }
    drop(tx);
    assert_eq!(dropped, 1);
    assert_eq!(consumer_key::drop_expired(&app).await.unwrap(), 0);
    app.log.close().await;
}

async fn an_api(app: &App) -> (Caller, PublishedApiId) {
    let caller = testing::caller(app, Role::Owner).await;
    let api = PublishedApi {
        id: PublishedApiId::generate(),
        account_id: caller.account_id.clone(),
        environment_id: caller.environment_id.clone(),
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
    (caller, api.id)
}
