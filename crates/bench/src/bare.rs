//! The bare server, to compare with: hyper behind the listener of Kanat, in one of five modes.

mod published;
mod storage;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::order;
use crate::process::Server;
use published::PublishedApi;
use storage::Storage;

pub use published::KEY;

/// Orders that a server holds in memory: more wait for their answer.
const IN_FLIGHT: usize = 512;

/// Work of a bare server for each request.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Reads the body and answers.
    Answer,
    /// Has the body in a file before it answers, synced together with the others that wait.
    Append,
    /// Appends, then maps and delivers the order, and appends that it did.
    Loop,
    /// Inserts a row of PostgreSQL before it answers, then maps and delivers the order, and updates
    /// the row.
    Rows,
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
    /// Database to insert into.
    #[arg(long)]
    database: Option<String>,
}

type Client = legacy::Client<HttpConnector, Full<Bytes>>;

/// Starts a bare server in a process of its own, with its file in `folder`.
pub async fn start(
    mode: Mode,
    folder: &Path,
    target: Option<SocketAddr>,
    database: Option<&str>,
) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    let mode = clap::ValueEnum::to_possible_value(&mode).context("the mode has no name")?;
    command.args(["--kanat", "-", "bare", mode.get_name()]);
    command.arg("--file").arg(folder.join("bare.log"));
    if let Some(target) = target {
        command.arg("--target").arg(target.to_string());
    }
    if let Some(database) = database {
        command.args(["--database", database]);
    }
    Server::start(&mut command, &folder.join("bare.err")).await
}

/// Serves on a free port until killed.
pub async fn serve(task: &Task) -> Result<()> {
    let bare = Arc::new(Bare::new(task).await?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare listening on http://{}", listener.local_addr()?);
    let service = tower::service_fn(move |request: Request<Inbound>| {
        let bare = Arc::clone(&bare);
        async move { Ok::<_, Infallible>(bare.answer(request).await) }
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
    storage: Storage,
    published: Option<PublishedApi>,
    target: Option<String>,
    client: Client,
    room: Arc<Semaphore>,
    deliveries: TaskTracker,
}

impl Bare {
    async fn new(task: &Task) -> Result<Self> {
        let mut published = None;
        let storage = match task.mode {
            Mode::Answer => Storage::None,
            Mode::Append | Mode::Loop => Storage::file(&task.file)?,
            Mode::Rows => {
                let database = task.database.as_deref();
                Storage::rows(database.context("no --database")?).await?
            }
            Mode::Published => {
                published = Some(PublishedApi::new()?);
                Storage::None
            }
        };
        Ok(Self {
            storage,
            published,
            target: task
                .target
                .map(|address| format!("http://{address}/orders")),
            client: legacy::Client::builder(TokioExecutor::new()).build_http(),
            room: Arc::new(Semaphore::new(IN_FLIGHT)),
            deliveries: TaskTracker::new(),
        })
    }

    async fn answer(self: Arc<Self>, request: Request<Inbound>) -> Response<kanat_net::Body> {
        let (parts, body) = request.into_parts();
        let answered = match (&self.published, body.collect().await) {
            (_, Err(_)) => Err(StatusCode::BAD_REQUEST),
            (Some(published), Ok(body)) => published.answer(&parts.headers, &body.to_bytes()),
            (None, Ok(body)) => {
                let taken = Arc::clone(&self).take(body.to_bytes()).await;
                taken.map_err(|error| {
                    eprintln!("not stored: {error:#}");
                    StatusCode::SERVICE_UNAVAILABLE
                })
            }
        };
        let (status, body) = match answered {
            Ok(body) if self.published.is_some() => (StatusCode::OK, body),
            Ok(body) => (StatusCode::ACCEPTED, body),
            Err(status) => (status, Vec::new()),
        };
        let mut response = Response::new(kanat_net::body::full(body));
        *response.status_mut() = status;
        response.headers_mut().insert(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("application/json"),
        );
        response
    }

    /// Stores an order and begins its delivery.
    async fn take(self: Arc<Self>, order: Bytes) -> Result<Vec<u8>> {
        let permit = Arc::clone(&self.room).acquire_owned().await?;
        let id = self.storage.insert(&order).await?;
        if self.target.is_some() {
            let this = Arc::clone(&self);
            self.deliveries.spawn(async move {
                if let Err(error) = this.deliver(id, &order, permit).await {
                    eprintln!("not delivered: {error:#}");
                }
            });
        }
        Ok(br#"{"status":"accepted"}"#.to_vec())
    }

    /// Maps the order, posts it, and stores that it did.
    async fn deliver(&self, id: i64, order: &[u8], _permit: OwnedSemaphorePermit) -> Result<()> {
        let mapped = order::map(order)?;
        let request = Request::post(self.target.as_deref().unwrap_or_default())
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(mapped)))?;
        let answer = self.client.request(request).await?;
        if !answer.status().is_success() {
            bail!("the target answered {}", answer.status());
        }
        answer.into_body().collect().await?;
        self.storage.update(id).await
    }
}
