//! The deadline that a gRPC caller sets (`grpc-timeout`): a call that has no answer by then ends.

use std::time::Duration;

use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;

use crate::middleware::{HttpService, Middleware, Next};

/// Ends calls at the deadlines of their callers. A stream that has begun goes on until its caller
/// ends it.
#[derive(Clone)]
pub struct Deadline;

impl Middleware for Deadline {
    async fn handle<S: HttpService>(self, request: Request<Body>, next: Next<S>) -> Response<Body> {
        match timeout(request.headers()) {
            None => next.run(request).await,
            Some(Duration::ZERO) => exceeded(),
            Some(timeout) => tokio::time::timeout(timeout, next.run(request))
                .await
                .unwrap_or_else(|_| exceeded()),
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
    use std::convert::Infallible;

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
            let answer = Deadline.layer(service).oneshot(request).await.unwrap();
            assert_eq!(
                status::number(answer.headers()),
                code,
                "{timeout} for {takes} s"
            );
        }
    }
}
