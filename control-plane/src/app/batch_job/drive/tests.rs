//! How records become messages.

use kanat_message_log::MessagePage;
use kanat_model::id::BatchJobId;
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{Trigger as PlanTrigger, trigger};

use super::*;
use crate::app::{PublishTransaction, testing};

/// Records of the job; each of them is under way at once.
const RECORDS: u32 = 60;

/// Makes a job of records that are ordered by their `k`, which is one of so many, and begins them;
/// gives its messages in the order of the log.
async fn begun(app: &App, keys: u32) -> Vec<Message> {
    let records = (0..RECORDS).map(|n| format!("{{\"k\":{},\"n\":{n}}}", n % keys));
    begun_of(app, records.collect()).await
}

/// Makes a job of these records, and begins them; gives its messages in the order of the log.
async fn begun_of(app: &App, records: Vec<String>) -> Vec<Message> {
    let total = saturated(records.len());
    let flow = testing::flow(app, "ordered").await;
    let plan = FlowPlan {
        flow_id: flow.id.to_string(),
        flow_name: flow.name.clone(),
        account_id: flow.account_id.to_string(),
        environment_id: flow.environment_id.to_string(),
        version: 1,
        ordering_key: "source.k".to_owned(),
        trigger: Some(PlanTrigger {
            kind: Some(trigger::Kind::Manual(Default::default())),
        }),
        ..FlowPlan::default()
    };
    let mut change = PublishTransaction::begin(app, &flow.environment_id)
        .await
        .unwrap();
    change.put(Kind::Flow, &flow.id, &plan).await.unwrap();
    let job = BatchJob {
        id: BatchJobId::generate(),
        account_id: flow.account_id.clone(),
        environment_id: flow.environment_id.clone(),
        flow_id: flow.id.clone(),
        status: Status::Queued,
        total,
        concurrency: total,
        succeeded: 0,
        failed: 0,
        retry_of: None,
        created_at: Timestamp::now(),
        started_at: None,
        finished_at: None,
    };
    batch_job::insert(&mut change, &job).await.unwrap();
    record::insert(&mut change, &job.id, 0, &records)
        .await
        .unwrap();
    change.publish().await.unwrap();
    assert!(drive_all(app).await.unwrap());
    let tenant = Tenant {
        account_id: flow.account_id,
        environment_id: flow.environment_id,
    };
    let filter = Filter::flow(tenant, flow.id);
    let page = app
        .log
        .list(
            &filter,
            Position::Page(Page::new(Some(Page::MAX_LIMIT), None)),
        )
        .await
        .unwrap();
    let MessagePage { mut messages, .. } = page;
    messages.sort_by_key(|message| message.seq);
    messages
}

/// The payloads of messages, as the numbers of their records.
fn numbers<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<u64> {
    let record =
        |message: &Message| serde_json::from_slice::<serde_json::Value>(&message.payload).unwrap();
    messages
        .map(|message| record(message)["n"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn records_of_different_ordering_keys_share_commits() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let before = app.log.stats().commits;
    assert_eq!(begun(&app, RECORDS).await.len(), RECORDS as usize);
    let commits = app.log.stats().commits - before;
    assert!(commits <= u64::from(RECORDS) / 2, "{commits}");
}

#[tokio::test]
async fn records_of_one_ordering_key_come_into_the_log_in_their_order() {
    for keys in [1, 7] {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        let messages = begun(&app, keys).await;
        assert_eq!(messages.len(), RECORDS as usize);
        for key in 0..u64::from(keys) {
            let expected: Vec<u64> = (0..u64::from(RECORDS))
                .filter(|n| n % u64::from(keys) == key)
                .collect();
            let of_key = numbers(messages.iter())
                .into_iter()
                .filter(|n| n % u64::from(keys) == key);
            assert_eq!(of_key.collect::<Vec<_>>(), expected);
        }
    }
}

/// Their messages do not fit into one page of the log.
#[tokio::test]
async fn large_records_that_run_are_not_taken_for_lost() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let half = usize::try_from(MessagePage::BYTES / 2).unwrap();
    let large = |n| format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(half));
    begun_of(&app, (0..3).map(large).collect()).await;
    assert!(drive_all(&app).await.unwrap());
    let mut tx = app.store.read().await.unwrap();
    let jobs = batch_job::unfinished(&mut tx).await.unwrap();
    assert_eq!(jobs[0].failed, 0);
    let started = record::started(&mut tx, &jobs[0].id).await.unwrap();
    assert_eq!(started.len(), 3);
    drop(tx);
    app.log.close().await;
}
