//! The state of a request while the service reads it: the memory that its body holds, and the
//! problem with it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use kanat_net::body::BoxError;
use kanat_net::budget::{Budget, NoRoom, SharedReservation};
use parking_lot::Mutex;
use tonic::{Code, Status};

use crate::error::Problem;

/// The reading of one request. Its memory is held until the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Reading {
    /// Memory that the body holds.
    held: SharedReservation,
    refusal: Arc<Mutex<Option<Problem>>>,
}

impl Reading {
    pub(super) fn new(memory: &Arc<Budget>) -> Self {
        Self {
            held: SharedReservation::new(memory),
            refusal: Arc::default(),
        }
    }

    /// Returns the memory that the body holds. The service may bound it further once it knows the
    /// caller.
    pub(crate) fn held(&self) -> SharedReservation {
        self.held.clone()
    }

    /// Notes the problem with the request. Returns the status that the service receives.
    pub(super) fn refuse(&self, problem: Problem) -> Status {
        let status = match problem.status() {
            // A stream that is cancelled would look like one that has ended.
            status if status.code() == Code::Cancelled => Status::aborted("the body broke off"),
            status => status,
        };
        *self.refusal.lock() = Some(problem);
        status
    }

    /// Takes the problem with the request, if there is one.
    pub(crate) fn refusal(&self) -> Option<Problem> {
        self.refusal.lock().take()
    }

    /// Holds `bytes` from now on.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), NoRoom> {
        self.held.hold(bytes)
    }

    /// Returns the body, whose bytes are held as they arrive.
    pub(super) fn counted<B>(&self, body: B) -> CountedBody<B> {
        CountedBody {
            body,
            reading: self.clone(),
            bytes: 0,
        }
    }
}

/// Body that breaks off with [`NoRoom`] when there is no room for the bytes that have arrived.
pub(super) struct CountedBody<B> {
    body: B,
    reading: Reading,
    bytes: usize,
}

impl<B> http_body::Body for CountedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(frame) => frame.map_err(Into::into),
        };
        Poll::Ready(Some(frame.and_then(|frame| {
            this.bytes += frame.data_ref().map_or(0, Bytes::len);
            this.reading.hold(this.bytes)?;
            Ok(frame)
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
