//! Body of an inbound request. A response may precede the end of the body: a client that is still
//! sending would lose the response if the connection were closed, so a bounded part of the rest is
//! read and dropped. A sender that is too slow gets the error [`TooSlow`](crate::body::TooSlow),
//! which is answered 408.

mod pace;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, Request};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;

use crate::body::{BoxError, TooSlow};
use pace::Pace;

/// Bytes that are read after the response. A client that sends more, or longer, is disconnected.
const REST_LIMIT: usize = 16 << 20;
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// Body of a request of a listener.
#[derive(Debug)]
pub struct Inbound {
    /// Taken on drop.
    body: Option<Incoming>,
    /// True while the client waits for 100 Continue, which the first read causes.
    asks_first: bool,
    pace: Pace,
    /// `None` when the minimum rate cannot be lifted.
    pacing: Option<Pacing>,
    drains: TaskTracker,
}

/// Minimum rate of a request's body, which a service may lift. It is an extension of requests whose
/// bodies may be streams.
#[derive(Debug, Clone, Default)]
pub struct Pacing(Arc<AtomicBool>);

impl Pacing {
    /// Lifts the minimum rate: the body is a stream, whose sender is silent while it has nothing to
    /// send.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the minimum rate is lifted.
    pub fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Inbound {
    pub(crate) fn new(body: Incoming, headers: &HeaderMap, drains: TaskTracker) -> Self {
        Self {
            body: Some(body),
            asks_first: headers.contains_key(EXPECT),
            pace: Pace::new(),
            pacing: None,
            drains,
        }
    }

    /// Lets the service lift the minimum rate of the body.
    pub fn with_pacing(request: Request<Self>) -> Request<Self> {
        let pacing = Pacing::default();
        let mut request = request.map(|mut body| {
            body.pacing = Some(pacing.clone());
            body
        });
        request.extensions_mut().insert(pacing);
        request
    }

    fn has_pace(&self) -> bool {
        !self.pacing.as_ref().is_some_and(Pacing::has_ended)
    }
}

impl http_body::Body for Inbound {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        this.asks_first = false;
        let has_pace = this.has_pace();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        match Pin::new(body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.pace.came(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(end) => Poll::Ready(end.map(|frame| frame.map_err(BoxError::from))),
            Poll::Pending if has_pace => {
                let too_slow = this.pace.poll_too_slow(cx);
                too_slow.map(|()| Some(Err(TooSlow.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        let unread = self
            .body
            .take()
            .filter(|body| !body.is_end_stream() && !self.asks_first);
        if let (Some(body), Ok(runtime)) = (unread, tokio::runtime::Handle::try_current()) {
            self.drains.spawn_on(rest(body), &runtime);
        }
    }
}

async fn rest(body: Incoming) {
    // The connection no longer needs the body, whether it ended or not.
    let _ = tokio::time::timeout(REST_TIMEOUT, take(body)).await;
}

async fn take(mut body: Incoming) {
    let mut room = REST_LIMIT;
    while let Some(Ok(frame)) = body.frame().await {
        match room.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(left) => room = left,
            None => return,
        }
    }
}
