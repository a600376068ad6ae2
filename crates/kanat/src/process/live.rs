//! Answers without an end of their own, such as the live stream of messages: when the service stops
//! they end, so that the drain need not wait for their callers to go.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use kanat_net::Body;
use kanat_net::body::BoxError;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Lets `response` end at `shutdown` when it has nothing to send at that moment; what is ready is
/// sent to its end.
pub fn end_at(shutdown: &CancellationToken, response: Response<Body>) -> Response<Body> {
    let (head, body) = response.into_parts();
    if body.is_end_stream() || body.size_hint().exact().is_some() {
        return Response::from_parts(head, body);
    }
    let trailers = is_grpc(&head.headers).then(unavailable);
    let live = Live {
        body,
        shutdown: Box::pin(shutdown.clone().cancelled_owned()),
        trailers,
        ended: false,
    };
    Response::from_parts(head, live.boxed_unsync())
}

/// gRPC-Web carries its trailers in the body, where they cannot be added from outside; its callers
/// see a broken stream.
fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|value| {
        value == b"application/grpc" || value.starts_with(b"application/grpc+")
    })
}

/// `UNAVAILABLE`: the caller may try again.
fn unavailable() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("14"));
    trailers.insert(
        "grpc-message",
        HeaderValue::from_static("the service is stopping"),
    );
    trailers
}

struct Live {
    body: Body,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl HttpBody for Live {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if self.shutdown.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.ended = true;
        Poll::Ready(
            self.trailers
                .take()
                .map(|trailers| Ok(Frame::trailers(trailers))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body that sends one piece and then waits for ever.
    fn endless() -> Response<Body> {
        struct Once(Option<Bytes>);
        impl HttpBody for Once {
            type Data = Bytes;
            type Error = BoxError;

            fn poll_frame(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
                self.0.take().map_or(Poll::Pending, |bytes| {
                    Poll::Ready(Some(Ok(Frame::data(bytes))))
                })
            }
        }
        Response::new(Once(Some(Bytes::from_static(b"event"))).boxed_unsync())
    }

    #[tokio::test]
    async fn a_live_stream_ends_at_shutdown_after_what_was_ready() {
        let shutdown = CancellationToken::new();
        let response = end_at(&shutdown, endless());
        shutdown.cancel();
        let body = response.into_body().collect().await.unwrap();
        assert!(body.trailers().is_none());
        assert_eq!(body.to_bytes(), "event");
    }

    #[tokio::test]
    async fn a_grpc_stream_says_that_it_can_be_tried_again() {
        let shutdown = CancellationToken::new();
        let mut response = endless();
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/grpc"),
        );
        let response = end_at(&shutdown, response);
        shutdown.cancel();
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "14");
    }

    #[tokio::test]
    async fn a_whole_answer_stays_as_it_is() {
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        let response = end_at(&shutdown, Response::new(kanat_net::body::full("whole")));
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            "whole"
        );
    }
}
