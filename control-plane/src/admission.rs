//! The memory that requests hold while they are read and answered: behind authentication, in front
//! of the services. A call of one message goes on once that has come: what it holds further in, it
//! does not hold because its sender lets it wait. Calls without a caller were read before.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use kanat_model::Error;
use kanat_net::budget::{Budget, NoRoom, SharedReservation, Shares};
use tonic::Status;
use tonic::body::Body;

use crate::app::{Caller, Credential};
use crate::authentication::Rules;
use crate::grpc::{MAX_MESSAGE_BYTES, status};
use crate::middleware::{HttpService, Middleware, Next};
use crate::request;

/// Bytes in front of a message: one of flags, four of length.
const PREFIX: usize = 5;

/// Parts of the memory, of which one caller may have one.
const SHARES: usize = 4;

/// Bounds the memory of all requests by a budget, and that of one caller by a quarter of it.
#[derive(Clone)]
pub struct Admission {
    rules: Arc<Rules>,
    memory: Arc<Budget>,
    shares: Arc<Shares<Credential>>,
}

impl Admission {
    pub fn new(rules: Arc<Rules>, memory: Arc<Budget>) -> Self {
        let share = memory.left() / SHARES;
        Self {
            rules,
            memory,
            shares: Arc::new(Shares::new(share)),
        }
    }
}

impl Middleware for Admission {
    async fn handle<S: HttpService>(
        self,
        mut request: Request<Body>,
        next: Next<S>,
    ) -> Response<Body> {
        let Some(caller) = request.extensions().get::<Caller>() else {
            return next.run(request).await;
        };
        let share = self.shares.of(caller.credential.clone());
        let held = SharedReservation::new(&self.memory);
        // What the gateway holds of the same request.
        let before = request.extensions_mut().remove::<SharedReservation>();
        let all = [Some(&held), before.as_ref()];
        let within = all
            .into_iter()
            .flatten()
            .try_for_each(|held| held.within(&share));
        if let Err(refused) = within {
            return no_room(refused);
        }
        let streams = self.rules.is_client_streaming(request.uri().path());
        let request = request.map(|body| {
            Body::new(CountedBody {
                body,
                message: Message::default(),
                held: held.clone(),
            })
        });
        let answer = if streams {
            next.run(request).await
        } else {
            match request::whole(request, PREFIX + MAX_MESSAGE_BYTES).await {
                Ok(request) => next.run(request).await,
                Err(status) => status.into_http(),
            }
        };
        // Of a body that broke off, the services know only that it did.
        match held.outcome() {
            Ok(()) => answer,
            Err(refused) => no_room(refused),
        }
    }
}

fn no_room(refused: NoRoom) -> Response<Body> {
    status::of(Error::unavailable(refused.to_string())).into_http()
}

/// A request's body that breaks off when there is no room for the message that comes.
struct CountedBody {
    body: Body,
    message: Message,
    held: SharedReservation,
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

impl http_body::Body for CountedBody {
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
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use http_body_util::{BodyExt, StreamBody};
    use kanat_auth::Role;
    use kanat_model::id::{AccountId, ApiKeyId, EnvironmentId};
    use tower::ServiceExt;

    use super::*;

    const ONE: &str = "/kanat.v1.FlowService/CreateFlow";
    const STREAM: &str = "/kanat.v1.BatchJobService/CreateBatchJob";

    fn caller(key: &str) -> Caller {
        Caller {
            account_id: AccountId::from("acc_1"),
            environment_id: EnvironmentId::from("env_1"),
            role: Role::Editor,
            credential: Credential::Key(ApiKeyId::from(key)),
            name: key.to_owned(),
            email: None,
            bound_to: None,
            expires_at: None,
            idempotency_id: None,
        }
    }

    fn message(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).unwrap().to_be_bytes();
        [&[0][..], &length, &vec![7; bytes]].concat()
    }

    /// A request of a key with messages of these sizes, which come in pieces.
    fn request(path: &str, key: &str, sizes: &[usize]) -> Request<Body> {
        let bytes: Vec<_> = sizes.iter().flat_map(|size| message(*size)).collect();
        let pieces: Vec<_> = bytes.chunks(7).map(Bytes::copy_from_slice).collect();
        let body = StreamBody::new(
            futures::stream::iter(pieces).map(|piece| Ok::<_, Status>(Frame::data(piece))),
        );
        let mut request = Request::post(path).body(Body::new(body)).unwrap();
        request.extensions_mut().insert(caller(key));
        request
    }

    /// Returns the code of the answer to messages of these sizes, and how many bytes the service
    /// read.
    async fn send(memory: &Arc<Budget>, path: &str, sizes: &[usize]) -> (i32, usize) {
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
        let rules = Arc::new(Rules::read(&kanat_proto::DESCRIPTORS).unwrap());
        let answer = Admission::new(rules, Arc::clone(memory))
            .layer(service)
            .oneshot(request(path, "key_1", sizes))
            .await
            .unwrap();
        (
            i32::from(status::number(answer.headers())),
            read.load(Ordering::Relaxed),
        )
    }

    #[tokio::test]
    async fn a_message_without_room_is_refused_before_it_has_come() {
        let memory = Budget::new(400);
        for path in [ONE, STREAM] {
            assert_eq!(send(&memory, path, &[100]).await, (0, 105));
            let (code, read) = send(&memory, path, &[10_000]).await;
            assert_eq!(code, tonic::Code::Unavailable as i32);
            assert!(read <= 105, "{read}");
            assert_eq!(memory.taken(), 0);
            let others = memory.take(350).unwrap();
            assert_eq!(
                send(&memory, path, &[60]).await.0,
                tonic::Code::Unavailable as i32
            );
            assert_eq!(send(&memory, path, &[12]).await.0, 0);
            drop(others);
        }
    }

    #[tokio::test]
    async fn the_current_message_of_a_stream_counts() {
        let memory = Budget::new(400);
        assert_eq!(send(&memory, STREAM, &[90, 90, 0, 90]).await, (0, 290));
        assert_eq!(
            send(&memory, STREAM, &[90, 110]).await.0,
            tonic::Code::Unavailable as i32
        );
    }

    #[tokio::test]
    async fn a_caller_has_a_quarter_and_a_call_of_one_message_begins_once_that_has_come() {
        let memory = Budget::new(400);
        let rules = Arc::new(Rules::read(&kanat_proto::DESCRIPTORS).unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let service = {
            let calls = Arc::clone(&calls);
            tower::service_fn(move |_: Request<Body>| {
                calls.fetch_add(1, Ordering::Relaxed);
                async { Ok::<_, Infallible>(Status::ok("").into_http()) }
            })
        };
        let admission = Admission::new(rules, Arc::clone(&memory)).layer(service);
        let stalled = || {
            request(ONE, "key_1", &[50]).map(|body| {
                let silence = futures::stream::pending::<Result<Frame<Bytes>, Status>>();
                let came = body.into_data_stream().map(|data| data.map(Frame::data));
                Body::new(StreamBody::new(came.chain(silence)))
            })
        };
        let mut held = [
            Box::pin(admission.clone().oneshot(stalled())),
            Box::pin(admission.clone().oneshot(stalled())),
        ];
        for call in &mut held {
            assert!(futures::poll!(call.as_mut()).is_pending());
        }
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let code = async |key: &str, sizes: &[usize]| {
            let answer = admission.clone().oneshot(request(ONE, key, sizes)).await;
            status::number(answer.unwrap().headers())
        };
        assert_eq!(code("key_1", &[1]).await, tonic::Code::Unavailable as u16);
        assert_eq!(code("key_2", &[100]).await, 0);
        // What the gateway holds of a body is part of the same quarter.
        let mut before = request(ONE, "key_3", &[50]);
        let body = SharedReservation::new(&memory);
        body.hold(51).unwrap();
        before.extensions_mut().insert(body.clone());
        let answer = admission.clone().oneshot(before).await.unwrap();
        assert_eq!(
            status::number(answer.headers()),
            tonic::Code::Unavailable as u16
        );
        drop(held);
        assert_eq!(code("key_1", &[100]).await, 0);
    }
}
