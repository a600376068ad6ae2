//! The body of an inbound request. Who answers before it was read need not read it: a client that
//! is still sending reads no answer and loses it when the connection is cut on it, so a bounded
//! part of the rest is taken and dropped meanwhile. A sender that is too slow gets the error
//! [`TooSlow`](crate::body::TooSlow), which is answered 408.

mod pace;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;

use crate::body::{BoxError, TooSlow};
use pace::Pace;

/// A client that sends more than this after its answer, or for longer, is cut off.
const REST_LIMIT: usize = 16 << 20;
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// A request's body, as listeners hand it on.
#[derive(Debug)]
pub struct Inbound {
    /// Taken out when this is dropped.
    body: Option<Incoming>,
    /// The client waits to be told that it may send, and is told by the first read.
    asks_first: bool,
    /// None where the sender may be silent.
    pace: Option<Pace>,
    drains: TaskTracker,
}

impl Inbound {
    pub(crate) fn new(body: Incoming, headers: &HeaderMap, drains: TaskTracker) -> Self {
        Self {
            body: Some(body),
            asks_first: headers.contains_key(EXPECT),
            pace: Some(Pace::new()),
            drains,
        }
    }

    /// Takes the body at any pace: it is a stream whose sender is silent while it has nothing to
    /// say.
    pub fn at_any_pace(mut self) -> Self {
        self.pace = None;
        self
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
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        match Pin::new(body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(pace) = &mut this.pace {
                    pace.came(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(end) => Poll::Ready(end.map(|frame| frame.map_err(BoxError::from))),
            Poll::Pending => match &mut this.pace {
                Some(pace) => pace.poll_too_slow(cx).map(|()| Some(Err(TooSlow.into()))),
                None => Poll::Pending,
            },
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
    // Whether it came to its end or not, the connection is done with it.
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
