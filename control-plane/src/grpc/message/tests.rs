//! Messages through the methods of the API, on a real store and a real log.

mod fixture;
mod keys;

use kanat_message_log::Outcome;
use kanat_model::id::FlowId;
use kanat_proto::v1::message_service_server::MessageService;
use tonic::Code;

use super::*;
use crate::app::Caller;
use fixture::{FLOW, Fixture};

fn bulk() -> wire::BulkMessagesRequest {
    wire::BulkMessagesRequest {
        flow_id: FLOW.to_owned(),
        ..wire::BulkMessagesRequest::default()
    }
}

#[tokio::test]
async fn a_message_shows_what_became_of_it_with_its_digits_kept() {
    let fixture = Fixture::new().await;
    let id = fixture
        .ended(
            r#"{"z":1.10,"a":12345678901234567890}"#,
            Outcome::DeadLetter,
        )
        .await;
    let found = fixture.get(&id).await.unwrap();
    assert_eq!(found.status.as_str(), "dead_letter");
    assert_eq!(found.trigger.as_str(), "webhook");
    assert_eq!(found.flow_version, 1);
    assert_eq!(
        found.payload.unwrap().text,
        r#"{"z":1.10,"a":12345678901234567890}"#
    );
    assert_eq!(found.output.unwrap().text, r#"{"sent":1.00}"#);
    assert_eq!(found.error.unwrap().kind, "status");
    assert!(found.completed_at.is_some() && found.duration_ms.is_some());
    let delivery = found
        .trace
        .iter()
        .find(|entry| entry.stage == "delivery")
        .unwrap();
    assert_eq!(delivery.request.as_ref().unwrap().text, r#"{"n":1.00}"#);
    assert_eq!(
        fixture.get("msg_0").await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn another_account_or_environment_sees_and_changes_nothing() {
    let fixture = Fixture::deployed().await;
    let id = fixture.ended("{}", Outcome::DeadLetter).await;
    let other_account = Caller {
        account_id: "acc_0".into(),
        ..fixture.caller.clone()
    };
    let other_environment = Caller {
        environment_id: "env_0".into(),
        ..fixture.caller.clone()
    };
    for stranger in [other_account, other_environment] {
        let of = |id: &str| id.to_owned();
        let get = Fixture::request_of(stranger.clone(), wire::GetMessageRequest { id: of(&id) });
        assert_eq!(
            fixture.api.get_message(get).await.unwrap_err().code(),
            Code::NotFound
        );
        let retry =
            Fixture::request_of(stranger.clone(), wire::RetryMessageRequest { id: of(&id) });
        assert_eq!(
            fixture.api.retry_message(retry).await.unwrap_err().code(),
            Code::NotFound
        );
        let replay =
            Fixture::request_of(stranger.clone(), wire::ReplayMessageRequest { id: of(&id) });
        assert_eq!(
            fixture.api.replay_message(replay).await.unwrap_err().code(),
            Code::NotFound
        );
        let discard = Fixture::request_of(
            stranger.clone(),
            wire::DiscardMessageRequest { id: of(&id) },
        );
        assert_eq!(
            fixture
                .api
                .discard_message(discard)
                .await
                .unwrap_err()
                .code(),
            Code::NotFound
        );
        let all = Fixture::request_of(stranger, bulk());
        assert_eq!(
            fixture.api.retry_messages(all).await.unwrap_err().code(),
            Code::NotFound
        );
    }
    assert_eq!(fixture.get(&id).await.unwrap().status, "dead_letter");
}

#[tokio::test]
async fn a_dead_letter_is_retried_under_the_deployed_version() {
    let fixture = Fixture::deployed().await;
    let dead = fixture.ended("{}", Outcome::DeadLetter).await;
    assert_eq!(fixture.retry(&dead).await.unwrap().message_id, dead);
    let found = fixture.get(&dead).await.unwrap();
    assert_eq!(found.status.as_str(), "received");
    assert_eq!(found.flow_version, 2);
    assert_eq!(
        fixture.retry(&dead).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    // A node that the deploy has not reached finds the version in the log.
    assert!(
        fixture
            .log()
            .plan(&FlowId::from(FLOW), 2)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn messages_of_a_flow_that_is_not_deployed_are_not_taken_up() {
    let fixture = Fixture::new().await;
    let dead = fixture.ended("{}", Outcome::DeadLetter).await;
    assert_eq!(
        fixture.retry(&dead).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(
        fixture.replay(&dead).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(fixture.get(&dead).await.unwrap().status, "dead_letter");
}

#[tokio::test]
async fn a_replay_in_bulk_that_is_repeated_under_its_key_happens_once() {
    let fixture = Fixture::deployed().await;
    for n in 0..3 {
        fixture
            .ended(&format!(r#"{{"n":{n}}}"#), Outcome::Delivered)
            .await;
    }
    let replay = async |call: &str| {
        let caller = Caller {
            idempotency_id: Some(call.to_owned()),
            ..fixture.caller.clone()
        };
        let request = Fixture::request_of(caller, bulk());
        let answer = fixture.api.replay_messages(request).await.unwrap();
        answer.into_inner().message_ids
    };
    let all = async || fixture.list(Default::default()).await.unwrap().data.len();
    let first = replay("call_1").await;
    assert_eq!(first.len(), 3);
    assert_eq!(replay("call_1").await, first);
    assert_eq!(all().await, 6);
    // Another call finds the replays, too.
    assert_eq!(replay("call_2").await.len(), 6);
    assert_eq!(all().await, 12);
    assert_eq!(replay("call_1").await, first);
}

#[tokio::test]
async fn the_live_stream_begins_now_and_resumes_where_it_was_left() {
    let fixture = Fixture::deployed().await;
    fixture.ended("{}", Outcome::Delivered).await;
    let follow = |last: Option<String>| wire::StreamMessagesRequest {
        last_event_id: last,
        ..Default::default()
    };
    let mut live = fixture
        .api
        .stream_messages(fixture.request(follow(None)))
        .await
        .unwrap()
        .into_inner();
    let id = fixture.ended("{}", Outcome::DeadLetter).await;
    let mut seen = Vec::new();
    while seen
        .last()
        .is_none_or(|event: &wire::StreamMessagesResponse| status_of(event) != "dead_letter")
    {
        seen.push(live.next().await.unwrap().unwrap());
    }
    assert!(
        seen.iter()
            .all(|event| event.event == "message" && event.message.as_ref().unwrap().id == id)
    );

    // After the first event come the others, once each, whether the id stands in the request or in
    // the header.
    let after = seen[0].id.clone();
    let mut resumed = fixture
        .api
        .stream_messages(fixture.request(follow(Some(after.clone()))))
        .await
        .unwrap()
        .into_inner();
    let mut by_header = fixture.request(follow(Some("0".to_owned())));
    by_header
        .metadata_mut()
        .insert("last-event-id", after.parse().unwrap());
    let mut by_header = fixture
        .api
        .stream_messages(by_header)
        .await
        .unwrap()
        .into_inner();
    for event in &seen[1..] {
        assert_eq!(resumed.next().await.unwrap().unwrap().id, event.id);
        assert_eq!(by_header.next().await.unwrap().unwrap().id, event.id);
    }

    // A stream of one status passes over the rest; a wrong id is refused; all streams end with the
    // service.
    let filtered = wire::StreamMessagesRequest {
        flow_id: Some(FLOW.to_owned()),
        status: Some("dead_letter".to_owned()),
        last_event_id: Some("0".to_owned()),
    };
    let mut filtered = fixture
        .api
        .stream_messages(fixture.request(filtered))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        status_of(&filtered.next().await.unwrap().unwrap()),
        "dead_letter"
    );
    let wrong = fixture
        .api
        .stream_messages(fixture.request(follow(Some("x".to_owned()))))
        .await;
    assert_eq!(wrong.err().unwrap().code(), Code::InvalidArgument);
    fixture.api.app.tasks.stop();
    assert!(filtered.next().await.is_none() && live.next().await.is_none());
}

#[tokio::test]
async fn an_event_id_of_a_log_that_is_no_more_hides_nothing() {
    let fixture = Fixture::deployed().await;
    let follow = wire::StreamMessagesRequest {
        last_event_id: Some("999999".to_owned()),
        ..Default::default()
    };
    let mut live = fixture
        .api
        .stream_messages(fixture.request(follow))
        .await
        .unwrap()
        .into_inner();
    let id = fixture.ended("{}", Outcome::Delivered).await;
    assert_eq!(live.next().await.unwrap().unwrap().message.unwrap().id, id);
}

#[tokio::test]
async fn a_lagging_reader_learns_where_to_resume() {
    let fixture = Fixture::deployed().await;
    let follow = |last| wire::StreamMessagesRequest {
        last_event_id: last,
        ..Default::default()
    };
    let large = format!("\"{}\"", "x".repeat(2 << 20));
    let mut live = fixture
        .api
        .stream_messages(fixture.request(follow(None)))
        .await
        .unwrap()
        .into_inner();
    // It begins at the end of the log, and then does not read.
    for _ in 0..10 {
        fixture.ended(&large, Outcome::DeadLetter).await;
    }
    let mut seen = Vec::new();
    let lagged = loop {
        let event = live.next().await.unwrap().unwrap();
        if event.event == "lagged" {
            break event;
        }
        seen.push(event.id);
        assert!(
            seen.len() < 20,
            "the stream brought all that it was to end before"
        );
    };
    assert!(live.next().await.is_none());
    assert_eq!(lagged.lagged.unwrap().resume_from, *seen.last().unwrap());
    assert_eq!(lagged.id, seen.last().unwrap().clone());
    assert_eq!(lagged.message, None);

    // Who goes on there gets the rest, however long it takes: it was told that it is late.
    let rest = fixture
        .api
        .stream_messages(fixture.request(follow(seen.last().cloned())))
        .await
        .unwrap()
        .into_inner();
    let rest = rest
        .take(20 - seen.len())
        .map(|event| event.unwrap().event)
        .collect::<Vec<_>>()
        .await;
    assert!(rest.iter().all(|event| event == "message"), "{rest:?}");
    let mut all = fixture
        .api
        .stream_messages(fixture.request(follow(Some("0".to_owned()))))
        .await
        .unwrap()
        .into_inner();
    for _ in 0..20 {
        assert_eq!(all.next().await.unwrap().unwrap().event, "message");
    }
}

fn status_of(event: &wire::StreamMessagesResponse) -> &str {
    &event.message.as_ref().unwrap().status
}
