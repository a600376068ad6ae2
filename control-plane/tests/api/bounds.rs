//! Bounds of one caller, and of a caller whose request is malformed.

use bytes::Bytes;
use http::{Request, Version};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use kanat_net::Peer;
use kanat_proto::v1::message_service_client::MessageServiceClient;
use kanat_proto::v1::{CreateApiKeyRequest, ListLookupTablesRequest, StreamMessagesRequest};
use prost::Message;
use tonic::Code;
use tower::ServiceExt;

use crate::plane::{OWNER, TestPlane};

/// Sends one gRPC call byte by byte. Returns the code of its answer, which ends with its headers
/// where they have the code.
async fn call(plane: &TestPlane, path: &str, headers: &[(&str, &str)], message: &[u8]) -> Code {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = [&[0][..], &length, message].concat();
    let mut request = Request::post(format!("http://kanat.test{path}")).version(Version::HTTP_2);
    request = request.header("content-type", "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let answer = plane.plane.service().oneshot(request).await.unwrap();
    let (head, body) = answer.into_parts();
    let is_ended = body.is_end_stream();
    let trailers = body.collect().await.unwrap().trailers().cloned();
    let code = head.headers.get("grpc-status").cloned();
    assert!(
        is_ended || code.is_none(),
        "{path}: a code in headers is their end"
    );
    let code = code
        .or_else(|| trailers?.get("grpc-status").cloned())
        .unwrap();
    Code::from_bytes(code.as_bytes())
}

#[tokio::test]
async fn a_caller_has_so_many_streams_and_no_more() {
    let plane = TestPlane::start().await;
    let mut messages = MessageServiceClient::new(plane.as_owner());
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(
            messages
                .stream_messages(StreamMessagesRequest::default())
                .await
                .unwrap(),
        );
    }
    let refused = messages
        .stream_messages(StreamMessagesRequest::default())
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    plane
        .tables()
        .list_lookup_tables(ListLookupTablesRequest::default())
        .await
        .unwrap();
    let other = CreateApiKeyRequest {
        name: "other".to_owned(),
        ..Default::default()
    };
    let other = plane
        .keys()
        .create_api_key(other)
        .await
        .unwrap()
        .into_inner()
        .key
        .unwrap();
    let mut others = MessageServiceClient::new(plane.with_key(&other));
    others
        .stream_messages(StreamMessagesRequest::default())
        .await
        .unwrap();
    streams.pop();
    messages
        .stream_messages(StreamMessagesRequest::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stranger_watches_so_many_services_and_no_more() {
    let plane = TestPlane::start().await;
    let watch = async |address: &str| {
        let request = Request::post("http://kanat.test/grpc.health.v1.Health/Watch")
            .version(Version::HTTP_2)
            .header("content-type", "application/grpc");
        let nothing = Full::new(Bytes::from_static(&[0; 5]));
        let mut request = request.body(nothing).unwrap();
        request.extensions_mut().insert(Peer {
            address: address.parse().unwrap(),
            is_encrypted: false,
        });
        let answer = plane.plane.service().oneshot(request).await.unwrap();
        answer
            .headers()
            .get("grpc-status")
            .is_none()
            .then_some(answer)
    };
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(watch("192.0.2.1").await.expect("it is watched"));
    }
    assert!(watch("192.0.2.1").await.is_none());
    assert!(watch("192.0.2.2").await.is_some());
    streams.pop();
    assert!(watch("192.0.2.1").await.is_some());
}

#[tokio::test]
async fn a_message_that_cannot_be_decoded_is_the_callers_fault() {
    let plane = TestPlane::start().await;
    let key = format!("Bearer {OWNER}");
    for broken in [&[0xff][..], &[0x0a, 0x05, b'x'], &[0x0a, 0x01, 0xff]] {
        let code = call(
            &plane,
            "/kanat.v1.FlowService/GetFlow",
            &[("authorization", &key)],
            broken,
        )
        .await;
        assert_eq!(code, Code::InvalidArgument, "{broken:?}");
    }
}

#[tokio::test]
async fn a_call_whose_deadline_has_passed_is_not_made() {
    let plane = TestPlane::start().await;
    let key = format!("Bearer {OWNER}");
    for (timeout, code) in [
        ("0S", Code::DeadlineExceeded),
        ("0n", Code::DeadlineExceeded),
        ("60S", Code::Ok),
    ] {
        let headers = [("authorization", key.as_str()), ("grpc-timeout", timeout)];
        assert_eq!(
            call(&plane, "/kanat.v1.FlowService/ListFlows", &headers, &[]).await,
            code,
            "{timeout}"
        );
    }
}

#[tokio::test]
async fn an_error_of_a_stream_ends_with_its_headers() {
    let plane = TestPlane::start().await;
    let key = format!("Bearer {OWNER}");
    let follow = StreamMessagesRequest {
        flow_id: Some("flw_nobody".to_owned()),
        ..Default::default()
    };
    let path = "/kanat.v1.MessageService/StreamMessages";
    assert_eq!(
        call(
            &plane,
            path,
            &[("authorization", &key)],
            &follow.encode_to_vec()
        )
        .await,
        Code::NotFound
    );
    assert_eq!(
        call(&plane, path, &[], &follow.encode_to_vec()).await,
        Code::Unauthenticated
    );
}

#[tokio::test]
async fn reflection_needs_a_key() {
    let plane = TestPlane::start().await;
    let key = format!("Bearer {OWNER}");
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        assert_eq!(
            call(&plane, &path, &[], &[0x3a, 0]).await,
            Code::Unauthenticated
        );
        assert_eq!(
            call(&plane, &path, &[("authorization", &key)], &[0x3a, 0]).await,
            Code::Ok
        );
    }
    assert_eq!(
        call(&plane, "/grpc.health.v1.Health/Check", &[], &[]).await,
        Code::Ok
    );
}
