//! Answers without an end of their own, such as the live stream of messages: when the service stops
//! they end, so that the drain need not wait for their callers to go.

use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, StreamBody};
use kanat_net::Body;
use tokio_util::sync::CancellationToken;

/// Lets `response` end at `shutdown` when it has nothing to send at that moment; what is ready is
/// sent to its end.
pub fn end_at(shutdown: &CancellationToken, response: Response<Body>) -> Response<Body> {
    let (head, body) = response.into_parts();
    if body.is_end_stream() || body.size_hint().exact().is_some() {
        return Response::from_parts(head, body);
    }
    let trailers = is_grpc(&head.headers).then(unavailable);
    let live = Some((body, shutdown.clone(), trailers));
    let frames = stream::unfold(live, |live| async move {
        let (mut body, shutdown, trailers) = live?;
        tokio::select! {
            biased;
            frame = body.frame() => Some((frame?, Some((body, shutdown, trailers)))),
            () = shutdown.cancelled() => Some((Ok(Frame::trailers(trailers?)), None)),
        }
    });
    Response::from_parts(head, StreamBody::new(frames.fuse()).boxed_unsync())
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use kanat_net::body::BoxError;

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
