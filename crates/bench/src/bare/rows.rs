//! The yardstick on PostgreSQL: each order is a row inserted by itself before the answer, and
//! updated by itself when it is delivered, as most services do.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response};
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Client, IN_FLIGHT, client, deliver};
use crate::process::Server;

const CONNECTIONS: u32 = 16;

const TABLE: &str =
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, body BYTEA NOT NULL, status TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO orders (id, body, status) VALUES ($1, $2, 'received')";
const UPDATE: &str = "UPDATE orders SET status = 'delivered' WHERE id = $1";

pub async fn start(folder: &Path, url: &str, target: SocketAddr) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "--kanat",
        "-",
        "bare-rows",
        "--url",
        url,
        "--target",
        &target.to_string(),
    ]);
    Server::start(&mut command, &folder.join("rows.err")).await
}

/// Serves on a free port until killed.
pub async fn serve(url: &str, target: SocketAddr) -> Result<()> {
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .connect(url)
        .await?;
    sqlx::query(TABLE).execute(&pool).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("rows listening on http://{}", listener.local_addr()?);
    let rows = Arc::new(Rows {
        pool,
        next: AtomicI64::new(1),
        target: format!("http://{target}/orders"),
        client: client(),
        room: Arc::new(Semaphore::new(IN_FLIGHT)),
        deliveries: TaskTracker::new(),
    });
    let service = tower::service_fn(move |request: Request<Inbound>| {
        let rows = Arc::clone(&rows);
        async move { Ok::<_, Infallible>(answer(rows, request).await) }
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

struct Rows {
    pool: PgPool,
    next: AtomicI64,
    target: String,
    client: Client,
    room: Arc<Semaphore>,
    deliveries: TaskTracker,
}

async fn answer(rows: Arc<Rows>, request: Request<Inbound>) -> Response<kanat_net::Body> {
    let mut response = Response::new(kanat_net::body::full(r#"{"status":"accepted"}"#));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let Ok(body) = request.into_body().collect().await else {
        return response;
    };
    let order = body.to_bytes();
    let Ok(room) = Arc::clone(&rows.room).acquire_owned().await else {
        return response;
    };
    let id = rows.next.fetch_add(1, Ordering::Relaxed);
    if let Err(error) = sqlx::query(INSERT)
        .bind(id)
        .bind(order.as_ref())
        .execute(&rows.pool)
        .await
    {
        eprintln!("not stored: {error}");
        return response;
    }
    let this = Arc::clone(&rows);
    rows.deliveries.spawn(async move {
        if let Err(error) = this.finish(id, &order, room).await {
            eprintln!("not delivered: {error:#}");
        }
    });
    *response.status_mut() = http::StatusCode::ACCEPTED;
    response
}

impl Rows {
    async fn finish(&self, id: i64, order: &Bytes, _room: OwnedSemaphorePermit) -> Result<()> {
        deliver(&self.client, &self.target, order).await?;
        sqlx::query(UPDATE).bind(id).execute(&self.pool).await?;
        Ok(())
    }
}
