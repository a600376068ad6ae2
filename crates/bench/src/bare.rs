//! The yardsticks: a hyper server that reads a body and answers, and one that has it on disk first, one sync per group.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response};
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::load;
use crate::process::Server;
use crate::report::Row;

/// What the answer of a bare server means.
#[derive(Clone, Copy)]
pub enum Durability {
    /// The body was read.
    None,
    /// The body is on disk, synced together with what else was waiting.
    GroupSync,
}

pub async fn measure(durability: Durability, folder: &Path, connections: usize, length: Duration) -> Result<Row> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--kanat", "-", "bare"]);
    let name = match durability {
        Durability::None => "bare hyper",
        Durability::GroupSync => {
            command.arg("--file").arg(folder.join("bare.log"));
            "bare hyper, fsync per group"
        }
    };
    let server = Server::start(&mut command, &folder.join("bare.err")).await?;
    let before = server.usage()?;
    let outcome = load::run(server.address, "/", connections, length, Instant::now()).await?;
    let after = server.usage()?;
    server.stop().await?;
    Ok(Row::new(name, connections, &outcome, before, after))
}

/// Serves on a free port until killed; with a file, answers only after the body is synced to it.
pub async fn serve(file: Option<PathBuf>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare listening on http://{}", listener.local_addr()?);
    let log = match file {
        Some(path) => Some(start_log(&path)?),
        None => None,
    };
    let service = tower::service_fn(move |request: Request<Inbound>| {
        let log = log.clone();
        async move { Ok::<_, Infallible>(answer(request, log).await) }
    });
    server::serve(listener, service, Options::default(), CancellationToken::new()).await;
    Ok(())
}

struct Entry {
    body: Bytes,
    durable: oneshot::Sender<()>,
}

async fn answer(request: Request<Inbound>, log: Option<mpsc::Sender<Entry>>) -> Response<kanat_net::Body> {
    let mut response = Response::new(kanat_net::body::full(r#"{"status":"accepted"}"#));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let Ok(body) = request.into_body().collect().await else { return response };
    if let Some(log) = log {
        let (durable, done) = oneshot::channel();
        let sent = log.send(Entry { body: body.to_bytes(), durable }).await.is_ok();
        if !sent || done.await.is_err() {
            return response;
        }
    }
    *response.status_mut() = http::StatusCode::ACCEPTED;
    response
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
            if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
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
