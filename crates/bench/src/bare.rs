//! The bare server, to compare with: hyper behind the listener of Kanat, in one of three modes.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use jsonschema::Validator;
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::process::Server;
use crate::{api, order};

/// Consumer key that the server accepts.
pub const KEY: &str = "bench_ck_0123456789abcdefghijklmnopqrstuvwxyzABCDEF";

/// Orders that a server holds in memory: more wait for their answer.
const IN_FLIGHT: usize = 512;

/// Work of a bare server for each request.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Has the body in a file before it answers, synced together with the others that wait.
    Append,
    /// Appends, then maps and delivers the order, and appends that it did.
    Loop,
    /// Answers a call of a published API: checks key and schema, and maps the answer.
    Published,
}

/// Arguments of a bare server.
#[derive(Clone, clap::Args)]
pub struct Task {
    mode: Mode,
    /// File to append to.
    #[arg(long)]
    file: PathBuf,
    /// Address to deliver to.
    #[arg(long)]
    target: Option<SocketAddr>,
}

/// Starts a bare server in a process of its own, with its file in `folder`.
pub async fn start(mode: Mode, folder: &Path, target: Option<SocketAddr>) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    let mode = clap::ValueEnum::to_possible_value(&mode).context("the mode has no name")?;
    command.args(["--kanat", "-", "bare", mode.get_name()]);
    command.arg("--file").arg(folder.join("bare.log"));
    if let Some(target) = target {
        command.arg("--target").arg(target.to_string());
    }
    Server::start(&mut command, &folder.join("bare.err")).await
}

/// Serves on a free port until killed.
pub async fn serve(task: &Task) -> Result<()> {
    let bare = Arc::new(Bare::new(task)?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare listening on http://{}", listener.local_addr()?);
    let service = tower::service_fn(move |request: Request<Inbound>| {
        let bare = Arc::clone(&bare);
        async move { Ok::<_, Infallible>(bare.answer(request).await) }
    });
    let options = Options::default();
    server::serve(listener, service, options, CancellationToken::new()).await;
    Ok(())
}

enum Bare {
    Orders(Arc<Orders>),
    Published(PublishedApi),
}

impl Bare {
    fn new(task: &Task) -> Result<Self> {
        if task.mode == Mode::Published {
            return Ok(Self::Published(PublishedApi::new()?));
        }
        let target = task
            .target
            .map(|address| format!("http://{address}/orders"));
        Ok(Self::Orders(Arc::new(Orders {
            file: File::create(&task.file)?,
            target,
            client: legacy::Client::builder(TokioExecutor::new()).build_http(),
            room: Arc::new(Semaphore::new(IN_FLIGHT)),
            deliveries: TaskTracker::new(),
        })))
    }

    async fn answer(&self, request: Request<Inbound>) -> Response<kanat_net::Body> {
        let (parts, body) = request.into_parts();
        let answered = match (self, body.collect().await) {
            (_, Err(_)) => Err(StatusCode::BAD_REQUEST),
            (Self::Published(api), Ok(body)) => api.answer(&parts.headers, &body.to_bytes()),
            (Self::Orders(orders), Ok(body)) => {
                orders.take(body.to_bytes()).await.map_err(|error| {
                    eprintln!("not stored: {error:#}");
                    StatusCode::SERVICE_UNAVAILABLE
                })
            }
        };
        let (status, body) = answered.unwrap_or_else(|status| (status, Vec::new()));
        let mut response = Response::new(kanat_net::body::full(body));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

/// The work of a webhook.
struct Orders {
    file: File,
    target: Option<String>,
    client: legacy::Client<HttpConnector, Full<Bytes>>,
    room: Arc<Semaphore>,
    deliveries: TaskTracker,
}

impl Orders {
    /// Stores an order and begins its delivery.
    async fn take(self: &Arc<Self>, order: Bytes) -> Result<(StatusCode, Vec<u8>)> {
        let permit = Arc::clone(&self.room).acquire_owned().await?;
        self.file.append(order.clone()).await?;
        if self.target.is_some() {
            let this = Arc::clone(self);
            self.deliveries.spawn(async move {
                if let Err(error) = this.deliver(&order, permit).await {
                    eprintln!("not delivered: {error:#}");
                }
            });
        }
        Ok((StatusCode::ACCEPTED, br#"{"status":"accepted"}"#.to_vec()))
    }

    /// Maps the order, posts it, and stores that it did.
    async fn deliver(&self, order: &[u8], _permit: OwnedSemaphorePermit) -> Result<()> {
        let mapped = order::map(order)?;
        let request = Request::post(self.target.as_deref().unwrap_or_default())
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(mapped)))?;
        let answer = self.client.request(request).await?;
        let status = answer.status();
        ensure!(status.is_success(), "the target answered {status}");
        answer.into_body().collect().await?;
        self.file.append(Bytes::from_static(b"delivered")).await
    }
}

/// A file that is synced once for all that wait.
struct File(mpsc::Sender<Entry>);

struct Entry {
    body: Bytes,
    synced: oneshot::Sender<()>,
}

impl File {
    /// Creates the file and starts the thread that writes it.
    fn create(path: &Path) -> Result<Self> {
        let file = std::fs::File::create(path).context("cannot make the log file")?;
        let (sender, receiver) = mpsc::channel(4096);
        std::thread::spawn(move || write_groups(file, receiver));
        Ok(Self(sender))
    }

    /// Appends a record durably.
    async fn append(&self, body: Bytes) -> Result<()> {
        let (synced, done) = oneshot::channel();
        self.0.send(Entry { body, synced }).await?;
        Ok(done.await?)
    }
}

/// Writes and syncs everything that waits, then answers it; the next group forms meanwhile.
fn write_groups(mut file: std::fs::File, mut receiver: mpsc::Receiver<Entry>) {
    let mut group = Vec::new();
    while receiver.blocking_recv_many(&mut group, 1024) > 0 {
        let bodies: Vec<&[u8]> = group.iter().map(|entry: &Entry| &entry.body[..]).collect();
        let written = file.write_all(&bodies.concat());
        if written.and_then(|()| file.sync_data()).is_err() {
            return;
        }
        for entry in group.drain(..) {
            // A peer that went away needs no answer.
            let _ = entry.synced.send(());
        }
    }
}

/// The work of a published API by libraries: the key's hash, a tree of the body, the crate
/// `jsonschema`, an answer made of the tree.
struct PublishedApi {
    key: [u8; 32],
    schema: Validator,
}

impl PublishedApi {
    fn new() -> Result<Self> {
        let schema = jsonschema::options()
            .should_validate_formats(true)
            .build(&serde_json::from_str(api::SCHEMA)?)
            .map_err(|error| anyhow!("the schema: {error}"))?;
        let key = Sha256::digest(KEY).into();
        Ok(Self { key, schema })
    }

    fn answer(
        &self,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(StatusCode, Vec<u8>), StatusCode> {
        let key = headers.get(header::AUTHORIZATION);
        let key = key.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let hash: [u8; 32] = Sha256::digest(key.unwrap_or_default()).into();
        if hash != self.key {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let order: Value = serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)?;
        if !self.schema.is_valid(&order) {
            return Err(StatusCode::UNPROCESSABLE_ENTITY);
        }
        let text = |name: &str| order[name].as_str().unwrap_or_default();
        let answer = json!({
            "order_id": order["id"],
            "sent_at": order["sent_at"],
            "total": format!("{:.2}", order["amount"].as_f64().unwrap_or_default()),
            "currency": text("currency").to_uppercase(),
            "customer": { "name": order["name"], "email": text("email").to_lowercase() },
            "paid": order["paid"],
        });
        Ok((StatusCode::OK, answer.to_string().into_bytes()))
    }
}
