//! A listener for HTTP/1 and HTTP/2 on one port, plain or TLS, with bounds on what a peer can hold open, and a drain.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::peer::{Origin, TrustedProxies};
use crate::tls::{ClientCertificate, ServerTls};
use crate::{Body, Inbound, body};
use tower::ServiceExt;

/// Bounds of a listener.
#[derive(Debug, Clone)]
pub struct Options {
    /// A connection that has not sent a request's head within this time is closed.
    pub header_timeout: Duration,
    /// Connections open at once; more wait unaccepted.
    pub max_connections: usize,
    /// Bytes of a request's head.
    pub max_head: usize,
    pub max_headers: usize,
    /// Requests in flight on one HTTP/2 connection.
    pub max_streams: u32,
    /// Plain when there is none.
    pub tls: Option<ServerTls>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    pub trusted_proxies: TrustedProxies,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            max_head: 64 << 10,
            max_headers: 100,
            max_streams: 256,
            tls: None,
            trusted_proxies: TrustedProxies::default(),
        }
    }
}

/// Serves until `shutdown`, then lets open requests finish and returns when the last connection is closed. Who wants a
/// deadline for that puts one around the call.
pub async fn serve<S>(listener: TcpListener, service: S, options: Options, shutdown: CancellationToken)
where
    S: tower::Service<Request<Inbound>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(options.max_connections));
    let http = builder(&options);
    while let Some((stream, address, permit)) = next(&listener, &room, &shutdown).await {
        let (http, service, shutdown) = (http.clone(), service.clone(), shutdown.clone());
        let (drains, tls) = (connections.clone(), options.tls.clone());
        let origin = Origin::new(address.ip(), tls.is_some(), &options.trusted_proxies);
        let first_byte = options.header_timeout;
        connections.spawn(async move {
            let _permit = permit;
            if !spoke(&stream, first_byte, &shutdown).await {
                return;
            }
            let Some(tls) = tls else {
                return connection(stream, origin, None, &http, service, shutdown, drains).await;
            };
            if let Some((stream, certificate)) = tls.accept(stream, first_byte).await {
                connection(stream, origin, certificate, &http, service, shutdown, drains).await;
            }
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

fn builder(options: &Options) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        // A client that has said all it has to say still waits for its answer.
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

async fn next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let accept = async {
        let permit = Arc::clone(room).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, address)) => return Some((stream, address, permit)),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of descriptors: give those that are open time to close.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = shutdown.cancelled() => None,
        accepted = accept => accepted,
    }
}

/// The HTTP version is told by the first bytes, and no time-out of hyper covers the wait for them.
async fn spoke(stream: &TcpStream, first_byte: Duration, shutdown: &CancellationToken) -> bool {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let mut first = [0];
    tokio::select! {
        spoke = tokio::time::timeout(first_byte, stream.peek(&mut first)) => matches!(spoke, Ok(Ok(1))),
        () = shutdown.cancelled() => false,
    }
}

async fn connection<I, S>(
    stream: I,
    origin: Origin,
    certificate: Option<ClientCertificate>,
    http: &auto::Builder<TokioExecutor>,
    service: S,
    shutdown: CancellationToken,
    drains: TaskTracker,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: tower::Service<Request<Inbound>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut parts, body) = request.into_parts();
        let body = Inbound::new(body, &parts.headers, drains.clone());
        let peer = origin.peer(&parts.headers);
        parts.extensions.insert(peer);
        if let Some(certificate) = certificate {
            parts.extensions.insert(certificate);
        }
        if names_one_host(&parts) {
            Answer::Served { future: service.clone().oneshot(Request::from_parts(parts, body)) }
        } else {
            Answer::Refused
        }
    });
    let serving = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

pin_project! {
    /// The answer of the service, or that to a request which it does not get. It is a future of its
    /// own because an `async` block would move the request once more.
    #[project = Answering]
    enum Answer<F> {
        Served { #[pin] future: F },
        Refused,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Answer<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            Answering::Served { future } => future.poll(cx),
            Answering::Refused => Poll::Ready(Ok(hostless())),
        }
    }
}

/// Returns whether a request says for which host it is, and of one alone: others on the way may have taken it for another's. Probes of
/// HTTP/1.0 need not.
fn names_one_host(parts: &Parts) -> bool {
    if parts.version != Version::HTTP_11 && parts.version != Version::HTTP_10 {
        return true;
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    match hosts.next() {
        Some(_) => hosts.next().is_none(),
        None => parts.version == Version::HTTP_10 && ["/health", "/ready"].contains(&parts.uri.path()),
    }
}

fn hostless() -> Response<Body> {
    let text = r#"{"error":"a request has one Host header","code":"INVALID_ARGUMENT","details":[]}"#;
    let mut response = Response::new(body::full(text));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
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
        assert!(request(Version::HTTP_2, "/a", &[]));
    }

    #[tokio::test]
    async fn a_shutdown_lets_an_open_request_finish() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let service = {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            tower::service_fn(move |_: Request<Inbound>| {
                let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    Ok::<_, Infallible>(Response::new(body::full("done")))
                }
            })
        };
        let shutdown = CancellationToken::new();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(listener, service, Options::default(), shutdown.clone()));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        begun.notified().await;
        shutdown.cancel();
        go_on.notify_one();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
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
        tasks.spawn(serve(listener, service, Options::default(), CancellationToken::new()));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 8000000\r\n\r\n")
            .await
            .unwrap();
        peer.write_all(&vec![b'x'; 8_000_000]).await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413") && answer.ends_with("too large"), "{answer}");
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
        tasks.spawn(serve(listener, service, Options::default(), CancellationToken::new()));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
        peer.shutdown().await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("hi"), "{answer}");
    }

    #[tokio::test]
    async fn a_silent_connection_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service =
            tower::service_fn(|_: Request<Inbound>| async { Ok::<_, Infallible>(Response::new(body::empty())) });
        let options = Options { header_timeout: Duration::from_millis(20), ..Options::default() };
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(listener, service, options, CancellationToken::new()));
        let mut peer = TcpStream::connect(address).await.unwrap();
        assert_eq!(peer.read(&mut [0; 1]).await.unwrap(), 0);
    }
}
