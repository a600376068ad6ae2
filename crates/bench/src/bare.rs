//! The yardsticks: a hyper server that reads a body and answers; one that has it on disk before it
//! answers, one sync per group; and one that then also maps the order, delivers it and writes down
//! that it did.

pub mod rows;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::order;
use crate::process::Server;

/// Orders that the full loop holds in memory: more wait unanswered.
const IN_FLIGHT: usize = 512;

/// What a bare server does with an order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Reads it and answers.
    Answer,
    /// Has it on disk before it answers, synced together with what else was waiting.
    Append,
    /// Then maps and delivers it, and has on disk that it did.
    Loop,
}

type Client = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;

/// Starts one that delivers to `target`, if it delivers.
pub async fn start(work: Work, folder: &Path, target: SocketAddr) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--kanat", "-", "bare"]);
    if work != Work::Answer {
        command.arg("--file").arg(folder.join("bare.log"));
    }
    if work == Work::Loop {
        command.arg("--target").arg(target.to_string());
    }
    Server::start(&mut command, &folder.join("bare.err")).await
}

/// Serves on a free port until killed; with a file, answers after the body is synced to it; with a
/// target, delivers what it answered.
pub async fn serve(file: Option<&Path>, target: Option<SocketAddr>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare listening on http://{}", listener.local_addr()?);
    let bare = Arc::new(Bare {
        log: file.map(start_log).transpose()?,
        target: target.map(|address| format!("http://{address}/orders")),
        client: client(),
        room: Arc::new(Semaphore::new(IN_FLIGHT)),
        deliveries: TaskTracker::new(),
    });
    let service = tower::service_fn(move |request: Request<Inbound>| {
        let bare = Arc::clone(&bare);
        async move { Ok::<_, Infallible>(answer(bare, request).await) }
    });
    server::serve(
        listener,
        service,
        Options::default(),
        CancellationToken::new(),
    )
    .await;
    Ok(())
}

struct Bare {
    log: Option<mpsc::Sender<Entry>>,
    target: Option<String>,
    client: Client,
    room: Arc<Semaphore>,
    deliveries: TaskTracker,
}

struct Entry {
    body: Bytes,
    durable: oneshot::Sender<()>,
}

async fn answer(bare: Arc<Bare>, request: Request<Inbound>) -> Response<kanat_net::Body> {
    let mut response = Response::new(kanat_net::body::full(r#"{"status":"accepted"}"#));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let Ok(body) = request.into_body().collect().await else {
        return response;
    };
    let order = body.to_bytes();
    let Ok(room) = Arc::clone(&bare.room).acquire_owned().await else {
        return response;
    };
    if bare.append(order.clone()).await.is_err() {
        return response;
    }
    if let Some(target) = bare.target.clone() {
        let this = Arc::clone(&bare);
        bare.deliveries.spawn(async move {
            if let Err(error) = this.deliver(&target, &order, room).await {
                eprintln!("not delivered: {error:#}");
            }
        });
    }
    *response.status_mut() = http::StatusCode::ACCEPTED;
    response
}

impl Bare {
    /// Returns when `body` is on disk, where there is one.
    async fn append(&self, body: Bytes) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let (durable, done) = oneshot::channel();
        log.send(Entry { body, durable }).await?;
        Ok(done.await?)
    }

    async fn deliver(&self, target: &str, order: &[u8], _room: OwnedSemaphorePermit) -> Result<()> {
        deliver(&self.client, target, order).await?;
        self.append(Bytes::from_static(b"delivered")).await
    }
}

fn client() -> Client {
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http()
}

/// Maps the order and posts it.
async fn deliver(client: &Client, target: &str, order: &[u8]) -> Result<()> {
    let mapped = order::map(order)?;
    let request = Request::post(target)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(mapped)))?;
    let answer = client.request(request).await?;
    if !answer.status().is_success() {
        bail!("the target answered {}", answer.status());
    }
    answer.into_body().collect().await?;
    Ok(())
}

/// A thread that writes and syncs all that waits, then answers it; the next group forms meanwhile.
fn start_log(path: &Path) -> Result<mpsc::Sender<Entry>> {
    use std::io::Write;

    let mut file = std::fs::File::create(path).context("cannot make the log file")?;
    let (sender, mut receiver) = mpsc::channel::<Entry>(4096);
    std::thread::spawn(move || {
        let mut group = Vec::new();
        while receiver.blocking_recv_many(&mut group, 1024) > 0 {
            let mut bytes = Vec::new();
            for entry in &group {
                bytes.extend_from_slice(&entry.body);
            }
            if file
                .write_all(&bytes)
                .and_then(|()| file.sync_data())
                .is_err()
            {
                return;
            }
            for entry in group.drain(..) {
                // A peer that went away needs no answer.
                let _ = entry.durable.send(());
            }
        }
    });
    Ok(sender)
}
