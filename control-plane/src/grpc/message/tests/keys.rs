//! The keys of a retried or replayed message are those of the version that it runs under.

use bytes::Bytes;
use kanat_message_log::{AppendOutcome, NewMessage, Outcome, Placement, key};
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Trigger;
use kanat_proto::plan::v1::FlowPlan;
use kanat_proto::v1 as wire;
use kanat_proto::v1::message_service_server::MessageService;

use super::fixture::{FLOW, Fixture};

const PAYLOAD: &str = r#"{"customer":"c7","n":1}"#;

fn keyed() -> FlowPlan {
    FlowPlan {
        version: 2,
        ordering_key: "source.customer".to_owned(),
        idempotency_key: "source.n".to_owned(),
        ..FlowPlan::default()
    }
}

async fn ordering_key(fixture: &Fixture, id: &str) -> Option<String> {
    fixture.get(id).await.unwrap().ordering_key
}

/// Appends a message as a node does that receives `n` as the idempotency key.
async fn receive(fixture: &Fixture, n: &str) -> AppendOutcome {
    let message = NewMessage {
        id: MessageId::generate(),
        account_id: fixture.caller.account_id.clone(),
        environment_id: fixture.caller.environment_id.clone(),
        flow_id: FlowId::from(FLOW),
        flow_name: "orders".to_owned(),
        flow_version: 2,
        trigger: Trigger::Webhook,
        raw_body: Bytes::from_static(PAYLOAD.as_bytes()),
        payload: None,
        request: Bytes::from_static(b"{}"),
        received_at: Timestamp::now(),
        ordering_key: None,
        dedupe_keys: vec![key::idempotency(n.to_owned())],
        replay_of: None,
        batch_id: None,
        max_attempts: 1,
        traceparent: None,
        place: Placement::Queued,
    };
    fixture.log().append(message).await.unwrap()
}

#[tokio::test]
async fn a_retried_dead_letter_has_the_keys_of_the_deployed_version() {
    let fixture = Fixture::new().await;
    let dead = fixture.ended(PAYLOAD, Outcome::DeadLetter).await;
    fixture.deploy(keyed()).await;
    fixture.retry(&dead).await.unwrap();
    assert_eq!(ordering_key(&fixture, &dead).await.as_deref(), Some("c7"));
    assert_eq!(
        receive(&fixture, "1").await,
        AppendOutcome::Duplicate(MessageId::from(dead.as_str()))
    );
}

#[tokio::test]
async fn a_retried_dead_letter_has_no_ordering_key_under_a_version_without_one() {
    let fixture = Fixture::deployed().await;
    let dead = fixture.ended(PAYLOAD, Outcome::DeadLetter).await;
    fixture.retry(&dead).await.unwrap();
    assert_eq!(ordering_key(&fixture, &dead).await, None);
}

#[tokio::test]
async fn dead_letters_that_are_retried_in_bulk_have_the_keys_of_the_deployed_version() {
    let fixture = Fixture::new().await;
    let mut dead = Vec::new();
    for _ in 0..3 {
        dead.push(fixture.ended(PAYLOAD, Outcome::DeadLetter).await);
    }
    fixture.deploy(keyed()).await;
    let request = wire::BulkMessagesRequest {
        flow_id: FLOW.to_owned(),
        ..Default::default()
    };
    let answer = fixture
        .api
        .retry_messages(fixture.request(request))
        .await
        .unwrap();
    assert_eq!(answer.into_inner().message_ids, dead);
    for id in &dead {
        assert_eq!(ordering_key(&fixture, id).await.as_deref(), Some("c7"));
    }
    assert_eq!(
        receive(&fixture, "1").await,
        AppendOutcome::Duplicate(MessageId::from(dead[0].as_str()))
    );
}

#[tokio::test]
async fn a_replay_has_the_keys_of_the_deployed_version_and_is_no_duplicate() {
    let fixture = Fixture::new().await;
    let original = fixture.ended(PAYLOAD, Outcome::Delivered).await;
    fixture.deploy(keyed()).await;
    let first = fixture.replay(&original).await.unwrap().message_id;
    assert_eq!(ordering_key(&fixture, &first).await.as_deref(), Some("c7"));
    let second = fixture.replay(&original).await.unwrap().message_id;
    assert_ne!(second, first);
    assert_eq!(ordering_key(&fixture, &second).await.as_deref(), Some("c7"));
    assert_eq!(
        receive(&fixture, "1").await,
        AppendOutcome::Duplicate(MessageId::from(first.as_str()))
    );
}
