//! A target on a real socket that records its requests, and answers as a script says.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How the target answers a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This status, these headers, this body.
    Answer(u16, Vec<(String, String)>, String),
    /// No answer until the test lets go.
    Hang,
    /// This status, after so long.
    After(Duration, u16),
    /// This status, once the test lets go.
    Late(u16),
    /// The connection is cut without an answer.
    Reset,
}

/// A request that reached the target.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl ReceivedRequest {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

type Script = dyn Fn(&ReceivedRequest, usize) -> Reply + Send + Sync;

struct Inner {
    received: Mutex<Vec<ReceivedRequest>>,
    script: Box<Script>,
    released: watch::Sender<bool>,
}

impl Inner {
    async fn late(&self, code: u16) -> Result<Response<Full<Bytes>>, ConnectionAbort> {
        self.released
            .subscribe()
            .wait_for(|released| *released)
            .await
            .map_err(|_| ConnectionAbort)?;
        Ok(response(code, &[], "{}".to_owned()))
    }
}

/// A running target; it stops when dropped.
pub struct FakeTarget {
    pub address: SocketAddr,
    inner: Arc<Inner>,
    _tasks: JoinSet<()>,
}

pub fn ok() -> Reply {
    status(200)
}

pub fn status(code: u16) -> Reply {
    Reply::Answer(code, Vec::new(), "{}".to_owned())
}

impl FakeTarget {
    /// Answers 200 to everything.
    pub async fn start() -> Self {
        Self::scripted(|_, _| ok()).await
    }

    /// Answers 500 to the first `failures` requests and 200 after them.
    pub async fn failing(failures: usize) -> Self {
        Self::scripted(move |_, earlier| {
            if earlier < failures {
                status(500)
            } else {
                ok()
            }
        })
        .await
    }

    /// Answers as `script` says of the request and of how many came before it.
    pub async fn scripted(
        script: impl Fn(&ReceivedRequest, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let (released, _) = watch::channel(false);
        let inner = Arc::new(Inner {
            received: Mutex::default(),
            script: Box::new(script),
            released,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&inner)));
        Self {
            address,
            inner,
            _tasks: tasks,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order of arrival.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        lock(&self.inner.received).clone()
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        lock(&self.inner.received).len()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        lock(&self.inner.received).clear();
    }

    /// Waits until at least `count` requests have arrived.
    pub async fn arrivals(&self, count: usize) -> Vec<ReceivedRequest> {
        crate::until(&format!("{count} requests at the target"), || async {
            let received = self.received();
            (received.len() >= count).then_some(received)
        })
        .await
    }

    /// Lets go of every request that hangs or is late; later ones are answered at once.
    pub fn release(&self) {
        self.inner.released.send_replace(true);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let inner = Arc::clone(&inner);
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let inner = Arc::clone(&inner);
                async move { answer(request, &inner).await }
            });
            // A script that cuts the connection ends it with an error; so does a peer that was
            // killed.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The script cuts the connection.
#[derive(Debug)]
struct ConnectionAbort;

impl std::fmt::Display for ConnectionAbort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut")
    }
}

impl std::error::Error for ConnectionAbort {}

impl From<Infallible> for ConnectionAbort {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

async fn answer(
    request: Request<Incoming>,
    inner: &Inner,
) -> Result<Response<Full<Bytes>>, ConnectionAbort> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(|_| ConnectionAbort)?
        .to_bytes();
    let path = parts
        .uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let received = ReceivedRequest {
        method: parts.method.to_string(),
        path,
        headers: parts.headers,
        body,
    };
    let reply = {
        let mut all = lock(&inner.received);
        let reply = (inner.script)(&received, all.len());
        all.push(received);
        reply
    };
    match reply {
        Reply::Answer(code, headers, body) => Ok(response(code, &headers, body)),
        Reply::After(time, code) => {
            tokio::time::sleep(time).await;
            Ok(response(code, &[], "{}".to_owned()))
        }
        Reply::Hang => inner.late(200).await,
        Reply::Late(code) => inner.late(code).await,
        Reply::Reset => Err(ConnectionAbort),
    }
}

fn response(code: u16, headers: &[(String, String)], body: String) -> Response<Full<Bytes>> {
    let mut builder = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder
        .body(Full::new(Bytes::from(body)))
        .expect("a script gives a valid answer")
}
