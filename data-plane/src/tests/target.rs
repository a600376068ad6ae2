//! A target on a free port: keeps what it gets, and answers as a test says.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use kanat_net::Inbound;
use kanat_net::{body, server};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Response to the nth request, from 0.
type Script = Arc<dyn Fn(usize, &ReceivedRequest) -> Response<&'static str> + Send + Sync>;

pub struct Target {
    pub url: String,
    shared: Arc<TargetState>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

struct TargetState {
    received: Mutex<Vec<ReceivedRequest>>,
    count: watch::Sender<usize>,
    script: Script,
    /// Requests are answered once this is true.
    open: watch::Sender<bool>,
}

pub fn status(code: u16) -> Response<&'static str> {
    Response::builder().status(code).body("").unwrap()
}

impl Target {
    /// Answers 200 to everything.
    pub async fn start() -> Self {
        Self::answering(|_, _| status(200)).await
    }

    pub async fn answering(
        script: impl Fn(usize, &ReceivedRequest) -> Response<&'static str> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(TargetState {
            received: Mutex::default(),
            count: watch::Sender::new(0),
            script: Arc::new(script),
            open: watch::Sender::new(true),
        });
        let service = {
            let shared = Arc::clone(&shared);
            tower::service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(shared.answer(request).await) }
            })
        };
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(server::serve(
            listener,
            service,
            server::Options::default(),
            stop.clone(),
        ));
        Self {
            url,
            shared,
            stop,
            tasks,
        }
    }

    /// Takes requests and does not answer them until [`Self::release`].
    pub fn hang(&self) {
        self.shared.open.send_replace(false);
    }

    pub fn release(&self) {
        self.shared.open.send_replace(true);
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.received.lock().unwrap().clone()
    }

    /// Waits until so many requests have arrived.
    pub async fn arrivals(&self, count: usize) {
        self.shared
            .count
            .subscribe()
            .wait_for(|arrived| *arrived >= count)
            .await
            .unwrap();
    }

    pub async fn stop(self) {
        self.release();
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl TargetState {
    async fn answer(&self, request: Request<Inbound>) -> Response<kanat_net::Body> {
        let (parts, incoming) = request.into_parts();
        let body = body::read_limited(incoming, 1 << 24).await.unwrap();
        let received = ReceivedRequest {
            method: parts.method.to_string(),
            path: parts.uri.to_string(),
            headers: parts.headers,
            body,
        };
        let answer = {
            let mut all = self.received.lock().unwrap();
            all.push(received.clone());
            (self.script)(all.len() - 1, &received)
        };
        self.count.send_modify(|count| *count += 1);
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        answer.map(body::full)
    }
}
