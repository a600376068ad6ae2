//! A relay in front of a listener, which counts what the listener's callers are sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A running relay; it stops when dropped.
pub struct Relay {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Relay {
    /// Relays to `to`, a host and port.
    pub async fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let to = to.to_owned();
        let sent = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, to, Arc::clone(&sent)));
        Self {
            address,
            sent,
            _tasks: tasks,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Bytes that its callers were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }
}

async fn accept(listener: TcpListener, to: String, sent: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((caller, _)) = listener.accept().await {
        let to = to.clone();
        let sent = Arc::clone(&sent);
        // It ends with an error when either side is killed.
        connections.spawn(async move {
            let _ = relay(caller, &to, &sent).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn relay(caller: TcpStream, to: &str, sent: &AtomicU64) -> std::io::Result<()> {
    let listener = TcpStream::connect(to).await?;
    caller.set_nodelay(true)?;
    listener.set_nodelay(true)?;
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_listener, mut to_listener) = listener.into_split();
    let forth = async {
        copy(&mut from_caller, &mut to_listener).await?;
        to_listener.shutdown().await
    };
    let back = async {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = from_listener.read(&mut bytes).await?;
            if count == 0 {
                return to_caller.shutdown().await;
            }
            sent.fetch_add(count as u64, Ordering::AcqRel);
            to_caller.write_all(&bytes[..count]).await?;
        }
    };
    tokio::try_join!(forth, back).map(|_| ())
}
