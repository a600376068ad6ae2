//! An open loop of webhooks: one is sent when it is due, whether or not earlier ones were answered.
//! The sender speaks plain HTTP/1.1, over TLS or not, and little more, so that what it costs does
//! not stand in for what it measures.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::authority::Authority;

/// Time within which a proxy has to answer, with a margin.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

const MAX_HEAD_BYTES: usize = 16 << 10;

/// How requests are sent.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub per_second: u32,
    /// Requests that may wait for their answers. A machine that cannot keep up is offered no more
    /// than it answers then, which shows in the rate.
    pub waiting: usize,
}

/// A loop under way; it stops when dropped.
pub struct Load {
    answered: Arc<AtomicUsize>,
    stop: watch::Sender<bool>,
    running: JoinSet<Outcome>,
}

/// Results of a load.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Bodies of the answers with 202.
    pub accepted: Vec<String>,
    /// Everything else, in words.
    pub refused: Vec<String>,
    /// How many of these are 503 with `Retry-After`.
    pub asked_to_wait: usize,
    /// From when a request was due to its answer, shortest first.
    pub took: Vec<Duration>,
    /// How long requests were sent.
    pub lasted: Duration,
}

/// Posts to one address, over connections that it keeps.
struct Sender {
    address: String,
    tls: Option<TlsConnector>,
    head: String,
    idle: Mutex<Vec<Connection>>,
}

type Connection = BufStream<Box<dyn Socket>>;

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

struct Answer {
    status: u16,
    body: String,
    asks_to_wait: bool,
    /// The connection may carry another request.
    keeps: bool,
}

impl Load {
    /// Posts `{"n": 0}`, `{"n": 1}` ... to `path` at a listener on 127.0.0.1, over TLS where an
    /// authority vouches for it.
    pub fn start(base: &str, path: &str, authority: Option<&Authority>, pace: Pace) -> Self {
        let address = base
            .trim_start_matches("https://")
            .trim_start_matches("http://")
            .to_owned();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n"
        );
        let sender = Sender {
            address,
            tls: authority.map(connector),
            head,
            idle: Mutex::default(),
        };
        let (stop, stopped) = watch::channel(false);
        let answered = Arc::new(AtomicUsize::new(0));
        let mut running = JoinSet::new();
        running.spawn(offer(
            Arc::new(sender),
            pace,
            Arc::clone(&answered),
            stopped,
        ));
        Self {
            answered,
            stop,
            running,
        }
    }

    /// Requests that were answered so far, whatever the answer.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Acquire)
    }

    /// Sends no more, and waits for the last answer.
    pub async fn stop(mut self) -> Outcome {
        self.stop.send_replace(true);
        let ended = self
            .running
            .join_next()
            .await
            .expect("a loop runs until it is stopped");
        ended.expect("a request that fails is counted")
    }
}

impl Outcome {
    /// Requests a second that were sent.
    pub fn rate(&self) -> f64 {
        self.took.len() as f64 / self.lasted.as_secs_f64()
    }

    /// How long this share of the answers took, in hundredths.
    pub fn took(&self, hundredths: usize) -> Duration {
        self.took
            .get(self.took.len().saturating_sub(1) * hundredths / 100)
            .copied()
            .unwrap_or_default()
    }

    fn take(&mut self, answer: Result<Answer>, took: Duration) {
        self.took.push(took);
        match answer {
            Ok(Answer {
                status: 202, body, ..
            }) => self.accepted.push(body),
            Ok(Answer {
                status,
                body,
                asks_to_wait,
                ..
            }) => {
                self.refused.push(format!("{status}: {body}"));
                self.asked_to_wait += usize::from(status == 503 && asks_to_wait);
            }
            Err(error) => self.refused.push(format!("{error:#}")),
        }
    }
}

async fn offer(
    sender: Arc<Sender>,
    pace: Pace,
    answered: Arc<AtomicUsize>,
    mut stopped: watch::Receiver<bool>,
) -> Outcome {
    let begun = Instant::now();
    let mut due = tokio::time::interval(Duration::from_secs(1) / pace.per_second);
    // What is late is sent at once: the loop does not slow down with those who answer.
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut requests = JoinSet::new();
    let mut outcome = Outcome::default();
    for n in 0.. {
        let at = tokio::select! {
            biased;
            _ = stopped.changed() => break,
            at = due.tick() => at,
        };
        while let Some(ended) = requests.try_join_next() {
            let (answer, took) = ended.expect("a request that fails is counted");
            outcome.take(answer, took);
        }
        if requests.len() >= pace.waiting
            && let Some(ended) = requests.join_next().await
        {
            let (answer, took) = ended.expect("a request that fails is counted");
            outcome.take(answer, took);
        }
        let sender = Arc::clone(&sender);
        let answered = Arc::clone(&answered);
        requests.spawn(async move {
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, sender.post(n)).await;
            answered.fetch_add(1, Ordering::AcqRel);
            (
                answer.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer"))),
                at.elapsed(),
            )
        });
    }
    outcome.lasted = begun.elapsed();
    while let Some(ended) = requests.join_next().await {
        let (answer, took) = ended.expect("a request that fails is counted");
        outcome.take(answer, took);
    }
    outcome.took.sort_unstable();
    outcome
}

impl Sender {
    /// Sends a request. The service closes connections that were idle for long: then it is sent
    /// again on a new one, as clients do.
    async fn post(&self, n: u64) -> Result<Answer> {
        let idle = self.idle().pop();
        if let Some(connection) = idle {
            match self.post_on(connection, n).await {
                Err(error) if is_closed(&error) => {}
                answered => return answered,
            }
        }
        let connection = self.connect().await.context("no connection")?;
        self.post_on(connection, n).await
    }

    async fn post_on(&self, mut connection: Connection, n: u64) -> Result<Answer> {
        let body = format!("{{\"n\":{n}}}");
        let request = format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        connection
            .write_all(request.as_bytes())
            .await
            .context("the request is not taken")?;
        connection
            .flush()
            .await
            .context("the request is not taken")?;
        let answer = read(&mut connection).await.context("no answer")?;
        if answer.keeps {
            self.idle().push(connection);
        }
        Ok(answer)
    }

    async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let socket: Box<dyn Socket> = match &self.tls {
            Some(tls) => Box::new(
                tls.connect(ServerName::try_from("127.0.0.1")?, stream)
                    .await?,
            ),
            None => Box::new(stream),
        };
        Ok(BufStream::new(socket))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the service closed the connection before it sent anything of an answer.
fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    let kind = error.map(std::io::Error::kind);
    matches!(
        kind,
        Some(ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe)
    )
}

async fn read(connection: &mut Connection) -> Result<Answer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < MAX_HEAD_BYTES, "a head without end");
        match connection.read_u8().await {
            Err(error) if head.is_empty() && error.kind() == ErrorKind::UnexpectedEof => {
                return Err(std::io::Error::from(ErrorKind::ConnectionAborted).into());
            }
            letter => head.push(letter?),
        }
    }
    let head = String::from_utf8(head)?.to_ascii_lowercase();
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    let field = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let length = field("content-length:")
        .context("an answer without its length")?
        .parse()?;
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    let keeps = field("connection:") != Some("close");
    let asks_to_wait = field("retry-after:").is_some();
    Ok(Answer {
        status,
        body: String::from_utf8(body)?,
        asks_to_wait,
        keeps,
    })
}

fn connector(authority: &Authority) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(authority.der().to_vec()))
        .expect("an authority's certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the usual versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}
