//! Storage of a bare server: nothing, a file that is synced once per group, or a row of PostgreSQL
//! for each order.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, Result};
use bytes::Bytes;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::{mpsc, oneshot};

const CONNECTIONS: u32 = 16;

const TABLE: &str =
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, body BYTEA NOT NULL, status TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO orders (id, body, status) VALUES ($1, $2, 'received')";
const UPDATE: &str = "UPDATE orders SET status = 'delivered' WHERE id = $1";

pub enum Storage {
    None,
    File(mpsc::Sender<Entry>),
    Rows { pool: PgPool, next: AtomicI64 },
}

pub struct Entry {
    body: Bytes,
    synced: oneshot::Sender<()>,
}

impl Storage {
    /// Creates the file and starts the thread that writes it.
    pub fn file(path: &Path) -> Result<Self> {
        let file = std::fs::File::create(path).context("cannot make the log file")?;
        let (sender, receiver) = mpsc::channel(4096);
        std::thread::spawn(move || write_groups(file, receiver));
        Ok(Self::File(sender))
    }

    /// Creates the table.
    pub async fn rows(url: &str) -> Result<Self> {
        let options = PgPoolOptions::new().max_connections(CONNECTIONS);
        let pool = options.connect(url).await?;
        sqlx::query(TABLE).execute(&pool).await?;
        let next = AtomicI64::new(1);
        Ok(Self::Rows { pool, next })
    }

    /// Stores an order durably, and returns its id.
    pub async fn insert(&self, order: &Bytes) -> Result<i64> {
        match self {
            Self::None => Ok(0),
            Self::File(sender) => append(sender, order.clone()).await,
            Self::Rows { pool, next } => {
                let id = next.fetch_add(1, Ordering::Relaxed);
                let insert = sqlx::query(INSERT).bind(id).bind(order.as_ref());
                insert.execute(pool).await?;
                Ok(id)
            }
        }
    }

    /// Stores durably that an order was delivered.
    pub async fn update(&self, id: i64) -> Result<()> {
        match self {
            Self::None => {}
            Self::File(sender) => {
                append(sender, Bytes::from_static(b"delivered")).await?;
            }
            Self::Rows { pool, .. } => {
                sqlx::query(UPDATE).bind(id).execute(pool).await?;
            }
        }
        Ok(())
    }
}

async fn append(sender: &mpsc::Sender<Entry>, body: Bytes) -> Result<i64> {
    let (synced, done) = oneshot::channel();
    sender.send(Entry { body, synced }).await?;
    done.await?;
    Ok(0)
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
