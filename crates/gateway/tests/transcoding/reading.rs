//! When a body is read, and what all bodies may hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use http::Request;
use http_body::Frame;
use http_body_util::StreamBody;
use kanat_net::body::BoxError;
use kanat_net::budget::Budget;
use tonic::Status;

use crate::echo::{gateway_with, guarded_gateway, send_to};

const ROUTES: [(&str, &str); 4] = [
    ("POST", "/api/v1/lookup-tables"),
    ("POST", "/api/v1/lookup-tables/lt_1/import"),
    ("POST", "/api/v1/batch-jobs"),
    ("GET", "/api/v1/lookup-tables/lt_1"),
];

/// A body of 1 KiB pieces that counts how many of them were read.
fn body(
    pieces: usize,
    read: &Arc<AtomicUsize>,
) -> impl http_body::Body<Data = Bytes, Error = BoxError> + Send + use<> {
    let read = Arc::clone(read);
    let text = move |_| {
        read.fetch_add(1, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from(" ".repeat(1024))))
    };
    StreamBody::new(futures::stream::iter(0..pieces).map(text))
}

#[tokio::test]
async fn who_may_not_call_sends_a_body_that_nobody_reads() {
    let guarded = guarded_gateway(|key| match key {
        "Bearer stranger" => Err(Status::unauthenticated("who are you?")),
        _ => Err(Status::permission_denied("you may only read")),
    });
    for (key, status) in [("Bearer stranger", 401), ("Bearer reader", 403)] {
        for (method, path) in ROUTES {
            let read = Arc::default();
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("authorization", key);
            let answer = send_to(&guarded, request.body(body(3, &read)).unwrap()).await;
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(read.load(Ordering::Relaxed), 0, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_body_without_room_is_refused_with_when_to_try_again() {
    let memory = Budget::new(10 << 10);
    let gateway = gateway_with(&memory);
    let others = memory.take(8 << 10).unwrap();
    let send = async |path: &str| {
        let read = Arc::default();
        let request = Request::post(path)
            .header("authorization", "Bearer key")
            .header("content-type", "application/json");
        send_to(&gateway, request.body(body(4, &read)).unwrap()).await
    };
    for path in ["/api/v1/lookup-tables", "/api/v1/lookup-tables/lt_1/import"] {
        let answer = send(path).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.text);
        assert_eq!(answer.json()["code"], "UNAVAILABLE");
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(memory.taken(), 8 << 10, "what was read is given back");
    }
    drop(others);
    for (path, status) in [("/api/v1/lookup-tables", 400), ("/api/v1/batch-jobs", 202)] {
        assert_eq!(send(path).await.status, status, "{path}");
        assert_eq!(memory.taken(), 0);
    }
}

#[tokio::test]
async fn a_list_that_is_cut_from_a_body_holds_what_is_not_sent_on() {
    let memory = Budget::new(8 << 10);
    let gateway = gateway_with(&memory);
    let send = async |records: String| {
        let pieces: Vec<_> = format!("{{\"records\":[{records}0]}}")
            .as_bytes()
            .chunks(1000)
            .map(Bytes::copy_from_slice)
            .collect();
        let pieces = pieces
            .into_iter()
            .map(|piece| Ok::<_, BoxError>(Frame::data(piece)));
        let request = Request::post("/api/v1/batch-jobs").header("authorization", "Bearer key");
        send_to(
            &gateway,
            request
                .body(StreamBody::new(futures::stream::iter(pieces)))
                .unwrap(),
        )
        .await
    };
    // A piece has 1,000 items: these are sent on before they come to 8 KiB, although there are 40
    // KB of them.
    assert_eq!(send("1,".repeat(20_000)).await.status, 202);
    let refused = send("123456789012345,".repeat(1_000)).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(memory.taken(), 0);
}
