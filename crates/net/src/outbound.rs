//! The one client for calls that users direct. Every address is checked by the egress guard after
//! its name was resolved; redirects are not followed, so no answer can lead elsewhere; every call
//! has a deadline and a bounded answer.

mod fault;
mod stream;

use std::error::Error as StdError;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::egress::{EgressError, Policy};
use fault::{ResolveError, classify};
pub use stream::Stream;

/// Size from which an answer of unknown length gets its maximum capacity at once, in bytes.
const GROWTH_THRESHOLD: usize = 128 << 10;

/// Bounds of all calls.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size of an answer's body that is kept, in bytes; the rest is not read.
    pub max_response: usize,
    pub connect_timeout: Duration,
    /// Idle connections kept open to one host.
    pub idle_per_host: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_response: 1 << 20,
            connect_timeout: Duration::from_secs(10),
            idle_per_host: 128,
        }
    }
}

/// A cheap handle to the pool of connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    /// Client for calls to a port that this process listens on: names resolve to addresses of other
    /// machines only.
    elsewhere: reqwest::Client,
    policy: Arc<Policy>,
    max_response: usize,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// Absolute, `http` or `https`.
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Deadline of the call, from the connection to the last byte of the answer.
    pub timeout: Duration,
}

/// Answer to a call.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The answer was longer than `Options::max_response`; `body` is its beginning.
    pub truncated: bool,
}

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No connection, or one that ended too early; names host and port.
    #[error("{0}")]
    Network(String),
    /// The two sides did not come to speak TLS; names host and port.
    #[error("{0}")]
    Tls(String),
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("{0}")]
    Egress(String),
}

impl Client {
    /// Makes a client.
    ///
    /// # Errors
    /// The system has no TLS roots.
    pub fn new(policy: Arc<Policy>, options: &Options) -> Result<Self, Error> {
        let pool = |check| {
            let policy = Arc::clone(&policy);
            pool(GuardedResolver { policy, check }, options)
        };
        let http = pool(Policy::check)?;
        let elsewhere = pool(Policy::check_apart_from_own_listeners)?;
        Ok(Self {
            http,
            elsewhere,
            policy,
            max_response: options.max_response,
        })
    }

    /// Returns a client that shares the connections and has another bound for answers.
    #[must_use]
    pub fn with_max_response(&self, max_response: usize) -> Self {
        Self {
            max_response,
            ..self.clone()
        }
    }

    /// Returns the size of an answer's body that is kept, in bytes.
    pub fn max_response(&self) -> usize {
        self.max_response
    }

    /// Makes the call once, and returns the answer as a stream. Its length is not bounded here. The
    /// deadline does not run while the caller does not read.
    pub async fn open(&self, request: Request) -> Result<Stream, Error> {
        let timeout = request.timeout;
        let begun = tokio::time::Instant::now();
        let answer = within(timeout, self.execute(request)).await?;
        Ok(Stream::new(answer, timeout, begun.elapsed()))
    }

    /// Makes the call once.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        within(request.timeout, self.exchange(request)).await
    }

    async fn exchange(&self, request: Request) -> Result<Response, Error> {
        let mut answer = self.execute(request).await?;
        let status = answer.status().as_u16();
        let headers = std::mem::take(answer.headers_mut());
        let (body, truncated) = self.read(answer).await?;
        Ok(Response {
            status,
            headers,
            body,
            truncated,
        })
    }

    async fn execute(&self, request: Request) -> Result<reqwest::Response, Error> {
        let (http, check) = if self.policy.concerns_own_listeners(&request.url) {
            (
                &self.elsewhere,
                Policy::check_apart_from_own_listeners as Check,
            )
        } else {
            (&self.http, Policy::check as Check)
        };
        if let Some(address) = literal(&request.url)? {
            check(&self.policy, address).map_err(|refused| Error::Egress(refused.to_string()))?;
        }
        let mut call = reqwest::Request::new(request.method, request.url);
        *call.headers_mut() = request.headers;
        *call.body_mut() = Some(request.body.into());
        http.execute(call).await.map_err(|error| match error.url() {
            Some(url) => classify(&error, url),
            None => Error::Network(error.to_string()),
        })
    }

    /// Reads the body. A long answer is in memory once: its buffer gets its maximum capacity with
    /// the second chunk, and pages that are not written cost nothing.
    async fn read(&self, mut answer: reqwest::Response) -> Result<(Bytes, bool), Error> {
        let announced = answer
            .content_length()
            .and_then(|length| usize::try_from(length).ok());
        let Some(first) = next_chunk(&mut answer).await? else {
            return Ok((Bytes::new(), false));
        };
        if first.len() > self.max_response {
            return Ok((first.slice(..self.max_response), true));
        }
        let Some(second) = next_chunk(&mut answer).await? else {
            return Ok((first, false));
        };
        let mut body = BytesMut::with_capacity(
            announced
                .unwrap_or(first.len() + second.len())
                .min(self.max_response),
        );
        body.extend_from_slice(&first);
        drop(first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            let room = self.max_response - body.len();
            if chunk.len() > body.capacity() - body.len() && body.len() > GROWTH_THRESHOLD {
                body.reserve(room);
            }
            if chunk.len() > room {
                body.extend_from_slice(&chunk[..room]);
                return Ok((body.freeze(), true));
            }
            body.extend_from_slice(&chunk);
            next = next_chunk(&mut answer).await?;
        }
        Ok((body.freeze(), false))
    }
}

/// Runs a call for at most `timeout`, and counts a refusal of the egress guard.
async fn within<T>(
    timeout: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let outcome = tokio::time::timeout(timeout, call)
        .await
        .unwrap_or(Err(Error::Timeout(timeout)));
    if matches!(outcome, Err(Error::Egress(_))) {
        kanat_telemetry::metrics().egress_refused.inc();
    }
    outcome
}

/// Reads the next bytes of a body; `None` after the last.
async fn next_chunk(answer: &mut reqwest::Response) -> Result<Option<Bytes>, Error> {
    answer
        .chunk()
        .await
        .map_err(|error| classify(&error, answer.url()))
}

/// Returns the address of a URL that has one in the place of a name: it never reaches the resolver.
fn literal(url: &Url) -> Result<Option<IpAddr>, Error> {
    match url.host() {
        Some(Host::Ipv4(v4)) => Ok(Some(v4.into())),
        Some(Host::Ipv6(v6)) => Ok(Some(v6.into())),
        Some(Host::Domain(_)) => Ok(None),
        None => Err(Error::Network("the URL names no host".to_owned())),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the place that the ban points at"
)]
fn pool(resolver: GuardedResolver, options: &Options) -> Result<reqwest::Client, Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .gzip(false)
        .referer(false)
        .connect_timeout(options.connect_timeout)
        .pool_max_idle_per_host(options.idle_per_host)
        .pool_idle_timeout(Duration::from_secs(60))
        .tcp_nodelay(true)
        .dns_resolver(Arc::new(resolver))
        .build()
        .map_err(|error| Error::Network(error.to_string()))
}

/// Check of an address by the egress guard.
type Check = fn(&Policy, IpAddr) -> Result<(), EgressError>;

struct GuardedResolver {
    policy: Arc<Policy>,
    check: Check,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.policy);
        let check = self.check;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0))
                .await
                .map_err(ResolveError::from)?;
            let mut allowed: Vec<SocketAddr> = Vec::new();
            let mut refused: Option<EgressError> = None;
            for address in found {
                match check(&policy, address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if allowed.is_empty() => {
                    Err(Box::new(why) as Box<dyn StdError + Send + Sync>)
                }
                Some(_) | None => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::LocalTargets;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn client(local: LocalTargets) -> Client {
        let options = Options {
            max_response: 1024,
            ..Options::default()
        };
        Client::new(Arc::new(Policy::new(Vec::new(), local)), &options).unwrap()
    }

    fn get(url: &str) -> Request {
        Request {
            method: Method::GET,
            url: url.parse().unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(5),
        }
    }

    /// Answers one connection with these bytes, then closes.
    async fn answering(answer: Vec<u8>) -> (SocketAddr, tokio::task::JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
        });
        (address, tasks)
    }

    #[tokio::test]
    async fn refuses_a_literal_address_and_a_name_that_resolves_to_one() {
        let client = client(LocalTargets::Refused);
        for url in [
            "http://127.0.0.1:9/",
            "http://[::1]:9/",
            "http://localhost:9/",
            "http://169.254.169.254/meta",
        ] {
            let error = client.send(get(url)).await.unwrap_err();
            assert!(matches!(error, Error::Egress(_)), "{url}: {error}");
        }
    }

    #[tokio::test]
    async fn gives_status_and_body() {
        let (address, _tasks) =
            answering(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok".to_vec()).await;
        let response = client(LocalTargets::Allowed)
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap();
        assert_eq!(response.status, 201);
        assert_eq!(response.body.as_ref(), b"ok".as_slice());
        assert!(!response.truncated);
    }

    #[tokio::test]
    async fn does_not_follow_a_redirect() {
        let answer =
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
                .to_vec();
        let (address, _tasks) = answering(answer).await;
        let response = client(LocalTargets::Allowed)
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap();
        assert_eq!(response.status, 302);
    }

    #[tokio::test]
    async fn keeps_the_beginning_of_a_long_answer() {
        let mut answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_vec();
        answer.extend(vec![b'x'; 100_000]);
        let (address, _tasks) = answering(answer).await;
        let response = client(LocalTargets::Allowed)
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap();
        assert_eq!(response.body.len(), 1024);
        assert!(response.truncated);
    }

    #[tokio::test]
    async fn a_long_answer_of_unknown_length_is_read_to_its_end_or_bound() {
        let body: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        for (most, read) in [(1 << 20, 300_000), (300_000, 300_000), (200_000, 200_000)] {
            let answer = [
                b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec(),
                body.clone(),
            ]
            .concat();
            let (address, _tasks) = answering(answer).await;
            let client = client(LocalTargets::Allowed).with_max_response(most);
            let response = client
                .send(get(&format!("http://{address}/")))
                .await
                .unwrap();
            assert_eq!(response.body.len(), read);
            assert_eq!(response.truncated, read < body.len());
            assert!(response.body == body[..read]);
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_a_network_failure() {
        let (address, _tasks) =
            answering(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort".to_vec()).await;
        let error = client(LocalTargets::Allowed)
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap_err();
        assert_eq!(
            error,
            Error::Network(format!("{address} broke off its answer"))
        );
    }

    #[tokio::test]
    async fn a_fault_is_described_with_host_and_port() {
        let client = client(LocalTargets::Allowed);
        let (address, _tasks) = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
        let plain = client
            .send(get(&format!("https://{address}/?key=s3cret")))
            .await
            .unwrap_err();
        assert_eq!(plain, Error::Tls(format!("{address} does not speak TLS")));
        let (address, _tasks) = answering(Vec::new()).await;
        let closed = client
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap_err();
        assert_eq!(
            closed,
            Error::Network(format!(
                "{address} closed the connection before it answered"
            ))
        );
        let unknown = client
            .send(get("http://no-such-host.invalid:8080/"))
            .await
            .unwrap_err();
        let Error::Network(told) = &unknown else {
            panic!("{unknown}")
        };
        assert!(
            told.starts_with("cannot resolve no-such-host.invalid:8080: "),
            "{told}"
        );
    }

    #[tokio::test]
    async fn a_refused_connection_is_a_network_failure_that_shows_no_query() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = client(LocalTargets::Allowed)
            .send(get(&format!("http://{address}/?key=s3cret")))
            .await
            .unwrap_err();
        assert_eq!(
            error,
            Error::Network(format!("connection refused by {address}"))
        );
    }
}
