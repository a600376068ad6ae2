//! The memory that requests hold while they are read and answered: behind authentication, in front
//! of the services.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Frame;
use kanat_model::Error;
use kanat_net::budget::{Budget, NoRoom, Reservation};
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use crate::grpc::status;

/// Bytes in front of a message: one of flags, four of length.
const PREFIX: usize = 5;

/// Services whose requests hold no more memory together than a budget has.
#[derive(Clone)]
pub struct Admission<S> {
    inner: S,
    memory: Arc<Budget>,
}

impl<S> Admission<S> {
    pub fn new(inner: S, memory: Arc<Budget>) -> Self {
        Self { inner, memory }
    }
}

impl<S> Service<Request<Body>> for Admission<S>
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
        let held = Held(Arc::new(Mutex::new((self.memory.open(), Ok(())))));
        let message = Message::default();
        let answer = self.inner.call(request.map(|body| {
            Body::new(Counted {
                body,
                message,
                held: held.clone(),
            })
        }));
        Box::pin(async move {
            let answer = answer.await?;
            // Of a body that broke off, the services know only that it did.
            match held.outcome() {
                Ok(()) => Ok(answer),
                Err(NoRoom) => Ok(status::of(Error::unavailable(NoRoom.to_string())).into_http()),
            }
        })
    }
}

/// Room that a request holds until its answer begins, and whether there was room for it.
#[derive(Clone)]
struct Held(Arc<Mutex<(Reservation, Result<(), NoRoom>)>>);

impl Held {
    fn hold(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut held = self.lock();
        held.1 = held.0.hold(bytes);
        held.1
    }

    fn outcome(&self) -> Result<(), NoRoom> {
        self.lock().1
    }

    fn lock(&self) -> MutexGuard<'_, (Reservation, Result<(), NoRoom>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's body that breaks off when there is no room for the message that comes.
struct Counted {
    body: Body,
    message: Message,
    held: Held,
}

/// The message under way, as far as it has come.
#[derive(Default)]
struct Message {
    prefix: [u8; PREFIX],
    /// Bytes of the prefix that have come.
    prefixed: usize,
    /// Bytes that have come and are to come, without the prefix.
    came: usize,
    left: usize,
}

impl Message {
    /// Takes what came. A message that is whole counts until the next one begins.
    fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(data.len());
                self.came += taken;
                self.left -= taken;
                data = &data[taken..];
                continue;
            }
            let taken = (PREFIX - self.prefixed).min(data.len());
            self.prefix[self.prefixed..][..taken].copy_from_slice(&data[..taken]);
            self.prefixed += taken;
            data = &data[taken..];
            if self.prefixed == PREFIX {
                let [_, length @ ..] = self.prefix;
                *self = Self {
                    left: u32::from_be_bytes(length) as usize,
                    ..Self::default()
                };
            }
        }
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(data) = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref())
        {
            this.message.push(data);
            if this.held.hold(this.message.came).is_err() {
                return Poll::Ready(Some(Err(Status::unavailable(NoRoom.to_string()))));
            }
        }
        Poll::Ready(frame)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use http_body_util::{BodyExt, StreamBody};
    use tower::ServiceExt;

    use super::*;

    fn message(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).unwrap().to_be_bytes();
        [&[0][..], &length, &vec![7; bytes]].concat()
    }

    /// Returns the code of the answer to messages of these sizes that come in pieces, and how many
    /// bytes the service read.
    async fn send(memory: &Arc<Budget>, sizes: &[usize]) -> (i32, usize) {
        let read = Arc::new(AtomicUsize::new(0));
        let service = {
            let memory = Arc::clone(memory);
            let read = Arc::clone(&read);
            tower::service_fn(move |request: Request<Body>| {
                let memory = Arc::clone(&memory);
                let read = Arc::clone(&read);
                async move {
                    let mut body = request.into_body();
                    while let Some(Ok(frame)) = body.frame().await {
                        read.fetch_add(frame.data_ref().map_or(0, Bytes::len), Ordering::Relaxed);
                    }
                    drop(body);
                    assert!(
                        memory.taken() > 0,
                        "what was read counts until it is answered"
                    );
                    Ok::<_, Infallible>(Status::ok("").into_http())
                }
            })
        };
        let bytes: Vec<_> = sizes.iter().flat_map(|size| message(*size)).collect();
        let pieces: Vec<_> = bytes.chunks(7).map(Bytes::copy_from_slice).collect();
        let body = StreamBody::new(
            futures::stream::iter(pieces).map(|piece| Ok::<_, Status>(Frame::data(piece))),
        );
        let answer = Admission::new(service, Arc::clone(memory))
            .oneshot(Request::new(Body::new(body)))
            .await
            .unwrap();
        (
            i32::from(status::number(answer.headers())),
            read.load(Ordering::Relaxed),
        )
    }

    #[tokio::test]
    async fn a_message_without_room_is_refused_before_it_has_come() {
        let memory = Budget::new(100);
        assert_eq!(send(&memory, &[100]).await, (0, 105));
        let (code, read) = send(&memory, &[10_000]).await;
        assert_eq!(code, tonic::Code::Unavailable as i32);
        assert!(read <= 105, "{read}");
        assert_eq!(memory.taken(), 0);
        let others = memory.take(50).unwrap();
        assert_eq!(
            send(&memory, &[60]).await.0,
            tonic::Code::Unavailable as i32
        );
        assert_eq!(send(&memory, &[50]).await.0, 0);
        drop(others);
    }

    #[tokio::test]
    async fn of_a_stream_the_message_under_way_counts() {
        let memory = Budget::new(100);
        assert_eq!(send(&memory, &[90, 90, 0, 90]).await, (0, 290));
        assert_eq!(
            send(&memory, &[90, 110]).await.0,
            tonic::Code::Unavailable as i32
        );
    }
}
