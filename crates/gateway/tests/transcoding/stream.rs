//! Server-sent events.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};

use crate::echo::{call, gateway, get};

const STREAM: &str = "/api/v1/messages/stream";

#[tokio::test]
async fn gives_each_message_as_an_event_of_one_line_each_and_ends() {
    let answer = get(STREAM).await;
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("x-accel-buffering"), "no");
    assert_eq!(answer.header("cache-control"), "no-cache");
    let events: Vec<_> = answer
        .text
        .split_terminator("\n\n")
        .filter(|e| !e.starts_with(':'))
        .collect();
    assert_eq!(events.len(), 3);
    let lines: Vec<_> = events[1].lines().collect();
    assert_eq!(lines[..2], ["event: message", "id: 2"]);
    assert_eq!(lines.len(), 3);
    let data: serde_json::Value =
        serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(data["id"], "msg_2");
    assert_eq!(data["payload"]["line"], "a\nb");
}

#[tokio::test]
async fn goes_on_after_the_last_event_seen() {
    for (path, header) in [
        (STREAM, "2"),
        ("/api/v1/messages/stream?lastEventId=1", "2"),
    ] {
        let answer = call("GET", path, &[("last-event-id", header)], "").await;
        assert!(
            !answer.text.contains("id: 2\n") && answer.text.contains("id: 3\n"),
            "{}",
            answer.text
        );
    }
    assert!(
        get("/api/v1/messages/stream?last_event_id=3")
            .await
            .text
            .is_empty()
    );
}

#[tokio::test]
async fn an_error_before_the_first_event_is_an_error_answer() {
    assert_eq!(
        get("/api/v1/messages/stream?status=unknown").await.status,
        400
    );
}

#[tokio::test]
async fn an_error_in_the_stream_is_the_last_event() {
    let answer = get("/api/v1/messages/stream?flowId=breaks").await;
    let last = answer.text.split_terminator("\n\n").last().unwrap();
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["code"], "INTERNAL");
    assert_eq!(data["error"], "internal error");
}

#[tokio::test]
async fn an_event_without_a_message_says_what_its_name_says() {
    let answer = get("/api/v1/messages/stream?flowId=lags").await;
    let last = answer.text.split_terminator("\n\n").last().unwrap();
    assert_eq!(last, "event: lagged\nid: 3\ndata: {\"resumeFrom\":\"3\"}");
}

#[tokio::test]
async fn comments_fill_the_silence() {
    let request = http::Request::get("/api/v1/messages/stream?flowId=waits&lastEventId=3")
        .header("authorization", "Bearer key")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let mut body = gateway().handle(request).await.into_body();
    for _ in 0..3 {
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            ":\n\n"
        );
    }
}
