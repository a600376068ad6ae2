//! A line to the database that breaks at a commit: before the database has heard of it, or before
//! we hear of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use url::Url;

/// The message of the wire protocol.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// Answer of the database to it.
const DONE: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

const INTACT: u8 = 0;
const BEFORE: u8 = 1;
const AFTER: u8 = 2;

/// When the line breaks, once.
#[derive(Debug, Clone, Copy)]
pub(super) enum Break {
    BeforeTheCommit,
    AfterTheCommit,
}

pub(super) struct Proxy {
    pub url: String,
    state: Arc<AtomicU8>,
    _end: DropGuard,
}

impl Proxy {
    pub async fn start(url: &str) -> Self {
        let mut url = Url::parse(url).unwrap();
        let server = format!(
            "{}:{}",
            url.host_str().unwrap(),
            url.port().unwrap_or(5_432)
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port()))
            .unwrap();
        let state = Arc::new(AtomicU8::new(INTACT));
        let end = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(end.clone().run_until_cancelled_owned(accept(
            listener,
            server,
            Arc::clone(&state),
            tasks.clone(),
        )));
        Self {
            url: url.into(),
            state,
            _end: end.drop_guard(),
        }
    }

    /// The next commit breaks its connection.
    pub fn break_line(&self, when: Break) {
        let state = match when {
            Break::BeforeTheCommit => BEFORE,
            Break::AfterTheCommit => AFTER,
        };
        self.state.store(state, Ordering::SeqCst);
    }

    pub fn is_intact(&self) -> bool {
        self.state.load(Ordering::SeqCst) == INTACT
    }
}

async fn accept(listener: TcpListener, server: String, state: Arc<AtomicU8>, tasks: TaskTracker) {
    while let Ok((client, _)) = listener.accept().await {
        let server = server.clone();
        let state = Arc::clone(&state);
        tasks.spawn(async move {
            // A connection that ends is what this is for.
            let _ = relay(client, &server, &state).await;
        });
    }
}

async fn relay(mut client: TcpStream, server: &str, state: &AtomicU8) -> std::io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    let mut asked = [0; 16 * 1024];
    let mut answered = [0; 16 * 1024];
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let asked = &asked[..read?];
                if asked.is_empty() {
                    return Ok(());
                }
                let broken = if asked.ends_with(COMMIT) {
                    state.swap(INTACT, Ordering::SeqCst)
                } else {
                    INTACT
                };
                if broken == BEFORE {
                    return Ok(());
                }
                server.write_all(asked).await?;
                if broken == AFTER {
                    // The answer says that it is written; nobody hears it.
                    while server.read(&mut answered).await? > 0 {
                        if answered.windows(DONE.len()).any(|bytes| bytes == DONE) {
                            break;
                        }
                    }
                    return Ok(());
                }
            }
            read = server.read(&mut answered) => {
                let answered = &answered[..read?];
                if answered.is_empty() {
                    return Ok(());
                }
                client.write_all(answered).await?;
            }
        }
    }
}
