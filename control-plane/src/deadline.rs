//! The deadline that a gRPC caller sets (`grpc-timeout`): a call that has no answer by then ends.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::Service;

/// Services whose calls end at the deadlines of their callers. A stream that has begun goes on: its
/// caller ends it.
#[derive(Clone)]
pub struct Deadline<S> {
    inner: S,
}

impl<S> Deadline<S> {
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S> Service<Request<Body>> for Deadline<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match timeout(request.headers()) {
            None => Box::pin(self.inner.call(request)),
            Some(Duration::ZERO) => Box::pin(std::future::ready(Ok(exceeded()))),
            Some(timeout) => {
                let answer = tokio::time::timeout(timeout, self.inner.call(request));
                Box::pin(async move { answer.await.unwrap_or_else(|_| Ok(exceeded())) })
            }
        }
    }
}

fn exceeded() -> Response<Body> {
    Status::deadline_exceeded("the deadline of the call has passed").into_http()
}

/// Returns the time that the caller gives: at most eight digits and a unit. One that cannot be read
/// is none.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 60 * 60)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tower::ServiceExt;

    use super::*;
    use crate::grpc::status;

    #[test]
    fn reads_the_timeouts_of_grpc() {
        let read = |text: &'static str| {
            timeout(&HeaderMap::from_iter([(
                "grpc-timeout".parse().unwrap(),
                HeaderValue::from_static(text),
            )]))
        };
        assert_eq!(read("0S"), Some(Duration::ZERO));
        assert_eq!(
            read("99999999H"),
            Some(Duration::from_secs(99_999_999 * 3600))
        );
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        for unread in ["", "S", "1", "1s", "-1S", "123456789S", "1.5S"] {
            assert_eq!(read(unread), None, "{unread:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_at_its_deadline() {
        for (timeout, takes, code) in [("0S", 0, 4), ("2S", 3, 4), ("2S", 1, 0), ("2x", 9, 0)] {
            let service = tower::service_fn(move |_: Request<Body>| async move {
                tokio::time::sleep(Duration::from_secs(takes)).await;
                Ok::<_, Infallible>(Status::ok("").into_http())
            });
            let request = Request::builder()
                .header("grpc-timeout", timeout)
                .body(Body::empty())
                .unwrap();
            let answer = Deadline::new(service).oneshot(request).await.unwrap();
            assert_eq!(
                status::number(answer.headers()),
                code,
                "{timeout} for {takes} s"
            );
        }
    }
}
