//! A listener for HTTP/1 and HTTP/2 on one port, plain or TLS, with bounds on what a peer can hold
//! open, and a drain.

mod acceptor;
pub mod answer;
mod places;
mod unread;

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::peer::{Origin, Peer, TrustedProxies};
use crate::tls::{ClientCertificate, ServerTls};
use crate::{Body, Inbound, body};
use acceptor::Acceptor;
use answer::{Account, Answer, Answers, Line};
pub use places::Places;
use tower::ServiceExt;
use unread::{Patience, Streams};

/// Bounds of a listener.
#[derive(Debug, Clone)]
pub struct Options {
    /// A connection that has not sent a request's head within this time is closed.
    pub header_timeout: Duration,
    /// Places for connections; further connections wait unaccepted. Clones share the places, so
    /// that several listeners of one process can share them.
    pub places: Places,
    /// Bounds on the bytes of answers that wait for their readers.
    pub answers: answer::Bounds,
    /// Time after which an answer is aborted of which the reader takes nothing; over HTTP/1 its
    /// connection is closed.
    pub unread_timeout: Duration,
    /// Size of a request's head, in bytes.
    pub max_head: usize,
    pub max_headers: usize,
    /// Requests in flight on one HTTP/2 connection.
    pub max_streams: u32,
    /// TLS of the listener; plain when `None`.
    pub tls: Option<ServerTls>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    pub trusted_proxies: TrustedProxies,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(30),
            places: Places::within_file_limit(),
            answers: answer::Bounds::default(),
            unread_timeout: Duration::from_secs(30),
            max_head: 64 << 10,
            max_headers: 100,
            max_streams: 128,
            tls: None,
            trusted_proxies: TrustedProxies::default(),
        }
    }
}

/// Serves until `shutdown`, then finishes open requests and returns when the last connection is
/// closed. A caller that needs a deadline for that sets one around the call.
pub async fn serve<S>(
    listener: TcpListener,
    service: S,
    options: Options,
    shutdown: CancellationToken,
) where
    S: tower::Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let connections = TaskTracker::new();
    let options = Arc::new(options);
    let answers = Answers::new(options.answers);
    let mut acceptor = Acceptor::new(listener, Arc::clone(&options));
    while let Some((stream, address, place)) = acceptor.next(&shutdown).await {
        let service = service.clone();
        let shutdown = shutdown.clone();
        let socket = Peer {
            address: address.ip(),
            is_encrypted: options.tls.is_some(),
        };
        let origin = Origin::new(socket, &options.trusted_proxies);
        let line = Line::new(&answers, place.holdings.clone());
        let connection = Connection {
            origin,
            line,
            options: Arc::clone(&options),
            drains: connections.clone(),
            certificate: None,
        };
        connections.spawn(async move {
            let _place = place;
            let first_byte = connection.options.header_timeout;
            if !spoke(&stream, first_byte, &shutdown).await {
                return;
            }
            let Some(tls) = connection.options.tls.clone() else {
                return connection.serve(stream, service, shutdown).await;
            };
            if let Some((stream, certificate)) = tls.accept(stream, first_byte).await {
                Connection {
                    certificate,
                    ..connection
                }
                .serve(stream, service, shutdown)
                .await;
            }
        });
    }
    drop(acceptor);
    connections.close();
    connections.wait().await;
}

fn builder(options: &Options, streams: Streams) -> auto::Builder<Streams> {
    let mut http = auto::Builder::new(streams);
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        // A client that has closed its sending half still waits for its response.
        .half_close(true)
        .max_buf_size(options.max_head)
        .max_headers(options.max_headers);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_streams)
        .max_header_list_size(u32::try_from(options.max_head).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    http
}

/// Waits for the first byte, which decides the HTTP version: no time-out of hyper covers this wait.
async fn spoke(stream: &TcpStream, first_byte: Duration, shutdown: &CancellationToken) -> bool {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let mut first = [0];
    tokio::select! {
        spoke = tokio::time::timeout(first_byte, stream.peek(&mut first)) => {
            matches!(spoke, Ok(Ok(1)))
        }
        () = shutdown.cancelled() => false,
    }
}

/// Properties of a connection before its first request.
struct Connection {
    origin: Origin,
    line: Arc<Line>,
    options: Arc<Options>,
    drains: TaskTracker,
    certificate: Option<ClientCertificate>,
}

impl Connection {
    async fn serve<I, S>(self, stream: I, service: S, shutdown: CancellationToken)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: tower::Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        let unread_timeout = self.options.unread_timeout;
        let leaving = shutdown.child_token();
        let streams = Streams::new(unread_timeout, leaving.clone());
        let http = builder(&self.options, streams.clone());
        let line = Arc::clone(&self.line);
        let service = service_fn(move |request: Request<Incoming>| {
            let (mut parts, body) = request.into_parts();
            let body = Inbound::new(body, &parts.headers, self.drains.clone());
            let peer = self.origin.peer(&parts.headers);
            parts.extensions.insert(peer);
            if let Some(certificate) = &self.certificate {
                parts.extensions.insert(certificate.clone());
            }
            let account = Account {
                line: Arc::clone(&self.line),
                client: self
                    .origin
                    .is_proxy()
                    .then(|| self.options.places.peers.of(peer.address)),
                stream: (parts.version == Version::HTTP_2).then(|| streams.begin()),
            };
            let answer = match names_one_host(&parts) {
                // Probes are exempt: a supervisor would restart a busy process.
                true if account.is_full() && !is_probe(&parts) => Err(overfull()),
                true => Ok(service.clone().oneshot(Request::from_parts(parts, body))),
                false => Err(hostless()),
            };
            async move {
                let response = match answer {
                    Ok(answer) => answer.await?,
                    Err(refused) => refused,
                };
                Ok::<_, Infallible>(Answer::of(response, account, overfull))
            }
        });
        let serving = http.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let mut is_leaving = false;
        let mut patience = Patience::new(unread_timeout);
        let mut streams_patience = Patience::new(2 * unread_timeout);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = serving.as_mut() => break outcome,
                () = leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    serving.as_mut().graceful_shutdown();
                }
                () = poll_fn(|cx| patience.poll_stopped(&line.reading, cx)) => {
                    return log_stalled_reader();
                }
                // Streams are reset earlier, so that others of the connection continue.
                () = poll_fn(|cx| streams_patience.poll_stopped(&line.streams, cx)) => {
                    return log_stalled_reader();
                }
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}

fn log_stalled_reader() {
    tracing::debug!("a connection was closed: its peer takes nothing of an answer");
}

/// Returns whether a request names exactly one host: intermediaries may have interpreted others
/// differently. Probes over HTTP/1.0 need none, and an `:authority` suffices.
fn names_one_host(parts: &Parts) -> bool {
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return false;
    }
    let is_first_version = parts.version == Version::HTTP_11 || parts.version == Version::HTTP_10;
    match (host, parts.uri.authority()) {
        // The target of an HTTP/1 request line takes precedence over `Host`.
        (Some(host), Some(authority)) if !is_first_version => host
            .as_bytes()
            .eq_ignore_ascii_case(authority.as_str().as_bytes()),
        (Some(_), _) => true,
        (None, _) if is_first_version => parts.version == Version::HTTP_10 && is_probe(parts),
        (None, _) => true,
    }
}

fn is_probe(parts: &Parts) -> bool {
    ["/health", "/ready"].contains(&parts.uri.path())
}

fn hostless() -> Response<Body> {
    let text = r#"{"error":"a request names one host","code":"INVALID_ARGUMENT","details":[]}"#;
    refusal(StatusCode::BAD_REQUEST, text)
}

/// Returns the response while too many bytes wait for their readers.
fn overfull() -> Response<Body> {
    let text =
        r#"{"error":"too many answers wait for their readers","code":"UNAVAILABLE","details":[]}"#;
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, text);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn refusal(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    #[test]
    fn a_request_names_one_host() {
        let request = |version, path: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(path);
            for host in hosts {
                request = request.header("host", *host);
            }
            names_one_host(&request.body(()).unwrap().into_parts().0)
        };
        assert!(request(Version::HTTP_11, "/a", &["x"]));
        assert!(!request(Version::HTTP_11, "/a", &[]));
        assert!(!request(Version::HTTP_11, "/health", &[]));
        assert!(!request(Version::HTTP_11, "/a", &["x", "y"]));
        assert!(request(Version::HTTP_10, "/ready", &[]));
        assert!(!request(Version::HTTP_10, "/a", &[]));
        assert!(!request(Version::HTTP_10, "/health", &["x", "y"]));
        let of_x = "https://x/a";
        for hosts in [&[][..], &["x"], &["X"]] {
            assert!(request(Version::HTTP_2, of_x, hosts), "{hosts:?}");
        }
        for hosts in [&["y"][..], &["x:443"], &["x", "x"], &["x", "y"]] {
            assert!(!request(Version::HTTP_2, of_x, hosts), "{hosts:?}");
        }
        assert!(request(Version::HTTP_2, "/a", &["x"]));
        assert!(request(Version::HTTP_11, "http://x/a", &["y"]));
    }

    #[tokio::test]
    async fn a_shutdown_lets_an_open_request_finish() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let begun = Arc::new(Notify::new());
        let go_on = Arc::new(Notify::new());
        let service = {
            let begun = Arc::clone(&begun);
            let go_on = Arc::clone(&go_on);
            tower::service_fn(move |_: Request<Inbound>| {
                let begun = Arc::clone(&begun);
                let go_on = Arc::clone(&go_on);
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    Ok::<_, Infallible>(Response::new(body::full("done")))
                }
            })
        };
        let shutdown = CancellationToken::new();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(
            listener,
            service,
            Options::default(),
            shutdown.clone(),
        ));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        begun.notified().await;
        shutdown.cancel();
        go_on.notify_one();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"),
            "{answer}"
        );
        tasks.join_next().await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_still_sends_gets_the_answer_that_came_early() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = tower::service_fn(|_: Request<Inbound>| async {
            let mut response = Response::new(body::full("too large"));
            *response.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
            Ok::<_, Infallible>(response)
        });
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(
            listener,
            service,
            Options::default(),
            CancellationToken::new(),
        ));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(
            b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 8000000\r\n\r\n",
        )
        .await
        .unwrap();
        peer.write_all(&vec![b'x'; 8_000_000]).await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 413") && answer.ends_with("too large"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn a_client_that_closes_its_side_gets_its_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = tower::service_fn(|request: Request<Inbound>| async {
            let body = body::read_limited(request.into_body(), 10).await.unwrap();
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(Response::new(body::full(body)))
        });
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(
            listener,
            service,
            Options::default(),
            CancellationToken::new(),
        ));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi")
            .await
            .unwrap();
        peer.shutdown().await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("hi"), "{answer}");
    }

    #[tokio::test]
    async fn a_silent_connection_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = tower::service_fn(|_: Request<Inbound>| async {
            Ok::<_, Infallible>(Response::new(body::empty()))
        });
        let options = Options {
            header_timeout: Duration::from_millis(20),
            ..Options::default()
        };
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(listener, service, options, CancellationToken::new()));
        let mut peer = TcpStream::connect(address).await.unwrap();
        assert_eq!(peer.read(&mut [0; 1]).await.unwrap(), 0);
    }
}
