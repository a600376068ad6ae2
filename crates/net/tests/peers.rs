//! Limits of one peer at a listener: connections, slow bodies, and responses that it does not read.
//!
//! All share one thread, whose clock goes on by itself as soon as nothing is to be done: waits take
//! no time.
#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kanat_net::body::ReadError;
use kanat_net::peer::TrustedProxies;
use kanat_net::server::answer::{AtAnyPace, Bounds};
use kanat_net::server::{Options, Places};
use kanat_net::{Body, Inbound, Peer, body, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const MIB: usize = 1 << 20;

const WINDOW_UPDATE: u8 = 8;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;

/// Answers by path: `/peer` with who is asking, `/body` with the length of the body, `/large` with
/// 64 MiB, `/some` with 900 KiB, `/late` after 40 s, `/own` with 64 MiB that their reader may let
/// lie.
async fn answer(request: Request<Inbound>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut response = Response::new(match path.as_str() {
        "/peer" => {
            let peer = request.extensions().get::<Peer>().unwrap();
            body::full(format!("{} {}", peer.address, peer.is_encrypted))
        }
        "/large" | "/own" => body::full(vec![b'x'; 64 * MIB]),
        "/some" => body::full(vec![b'x'; 900 << 10]),
        "/late" => {
            tokio::time::sleep(Duration::from_secs(40)).await;
            body::full("late")
        }
        _ => match body::read_limited(request.into_body(), MIB).await {
            Ok(read) => body::full(read.len().to_string()),
            Err(ReadError::TooSlow(slow)) => {
                let mut response = Response::new(body::full(slow.to_string()));
                *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
                return Ok(response);
            }
            Err(error) => panic!("{error}"),
        },
    });
    if path == "/own" {
        response.extensions_mut().insert(AtAnyPace);
    }
    Ok(response)
}

async fn listener(options: Options) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(server::serve(
        listener,
        tower::service_fn(answer),
        options,
        CancellationToken::new(),
    ));
    (address, tasks)
}

/// A connection from an address of this machine.
async fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::from(from), 0)).unwrap();
    // The clock does not wait for what the kernel puts off.
    socket.set_nodelay(true).unwrap();
    socket.connect(to).await.unwrap()
}

const ONE: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

async fn get(peer: &mut TcpStream, path: &str, headers: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
    peer.write_all(request.as_bytes()).await.unwrap();
}

/// Fails what a listener without bounds would let wait for ever.
async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(1000), what)
        .await
        .expect("it comes to an end")
}

/// All that comes until the connection ends, or is reset.
async fn rest(peer: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut piece = vec![0; 256 << 10];
    while let Ok(length @ 1..) = within(peer.read(&mut piece)).await {
        all.extend_from_slice(&piece[..length]);
    }
    String::from_utf8(all).unwrap()
}

/// The status of an answer.
async fn status(peer: &mut TcpStream) -> String {
    let mut head = [0; 12];
    within(peer.read_exact(&mut head)).await.unwrap();
    String::from_utf8(head.to_vec()).unwrap()
}

async fn answer_to(from: [u8; 4], to: SocketAddr, path: &str, headers: &str) -> String {
    let mut peer = connect(from, to).await;
    get(&mut peer, path, headers).await;
    rest(&mut peer).await
}

#[tokio::test(start_paused = true)]
async fn requests_have_their_peer() {
    let trusted_proxies = TrustedProxies::new(vec!["127.0.0.2/32".parse().unwrap()]);
    let (address, _tasks) = listener(Options {
        trusted_proxies,
        ..Options::default()
    })
    .await;
    let forwarded = "x-forwarded-for: 192.0.2.1, 198.51.100.7\r\nx-forwarded-proto: https\r\n";
    let direct = answer_to(ONE, address, "/peer", forwarded).await;
    assert!(direct.ends_with("\r\n\r\n127.0.0.1 false"), "{direct}");
    let proxied = answer_to(OTHER, address, "/peer", forwarded).await;
    assert!(proxied.ends_with("\r\n\r\n198.51.100.7 true"), "{proxied}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up() {
    let (address, _tasks) = listener(Options::default()).await;
    let begun = Instant::now();
    let mut peer = connect(ONE, address).await;
    peer.write_all(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(status(&mut peer).await, "HTTP/1.1 408");
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_is_given_up() {
    let (address, _tasks) = listener(Options::default()).await;
    let mut peer = connect(ONE, address).await;
    peer.write_all(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 60\r\n\r\n")
        .await
        .unwrap();
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if peer.write_all(b"x").await.is_err() {
            break;
        }
    }
    assert_eq!(status(&mut peer).await, "HTTP/1.1 408");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_nothing_of_its_answer_is_closed() {
    let (address, mut tasks) = listener(Options::default()).await;
    let mut peer = connect(ONE, address).await;
    get(&mut peer, "/large", "").await;
    tokio::time::sleep(Duration::from_secs(36)).await;
    let got = rest(&mut peer).await.len();
    assert!(got < 64 * MIB, "{got}");
    assert!(tasks.try_join_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_its_time_gets_all_of_its_answer() {
    let (address, _tasks) = listener(Options::default()).await;
    let mut peer = connect(ONE, address).await;
    get(&mut peer, "/large", "").await;
    let mut got = 0;
    let mut piece = vec![0; MIB];
    for wanted in [16 * MIB, 32 * MIB, 48 * MIB, usize::MAX] {
        tokio::time::sleep(Duration::from_secs(20)).await;
        // More than the kernel holds, so that the listener has gone on. Whoever is busy does not
        // let the clock go on.
        while got < wanted {
            match peer.try_read(&mut piece) {
                Ok(0) => break,
                Ok(length) => got += length,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    tokio::task::yield_now().await
                }
                Err(error) => panic!("{error} after {got} bytes"),
            }
        }
    }
    assert!(got > 64 * MIB, "{got}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_our_own_may_let_its_answer_lie() {
    let (address, _tasks) = listener(Options::default()).await;
    let mut peer = connect(ONE, address).await;
    get(&mut peer, "/own", "").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(rest(&mut peer).await.len() > 64 * MIB);
}

/// An HTTP/2 connection whose streams have no window until they are given one.
struct Http2(TcpStream);

/// A frame's type and its stream.
type Frame = (u8, u32);

impl Http2 {
    async fn connect(from: [u8; 4], to: SocketAddr) -> Self {
        let mut peer = connect(from, to).await;
        // INITIAL_WINDOW_SIZE is 0.
        let settings = [0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
        peer.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &settings].concat())
            .await
            .unwrap();
        Self(peer)
    }

    /// Sends a GET without a body.
    async fn get(&mut self, stream: u8, path: &str) {
        // GET and http from the static table; path and authority as they are.
        let length = u8::try_from(path.len()).unwrap();
        let block = [
            &[0x82, 0x86, 0x04, length],
            path.as_bytes(),
            &[0x01, 1, b'x'],
        ]
        .concat();
        let head = [
            0,
            0,
            u8::try_from(block.len()).unwrap(),
            HEADERS,
            0x5,
            0,
            0,
            0,
            stream,
        ];
        self.0
            .write_all(&[head.as_slice(), &block].concat())
            .await
            .unwrap();
    }

    async fn open(&mut self, stream: u8, window: u16) {
        let [high, low] = window.to_be_bytes();
        self.0
            .write_all(&[0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, stream, 0, 0, high, low])
            .await
            .unwrap();
    }

    /// Reads a frame and answers pings; none when the connection has ended.
    async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let mut rest = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut rest).await.ok()?;
        if head[3] == PING && head[4] == 0 {
            let _ = self
                .0
                .write_all(&[&[0, 0, 8, PING, 1, 0, 0, 0, 0], rest.as_slice()].concat())
                .await;
        }
        Some((
            head[3],
            u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        ))
    }

    /// Reads up to a frame.
    async fn until(&mut self, frame: Frame) {
        within(async { while self.frame().await.unwrap() != frame {} }).await;
    }

    /// Reads to the end.
    async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let all = async {
            while let Some(frame) = self.frame().await {
                frames.push(frame);
            }
        };
        within(all).await;
        frames
    }
}

#[tokio::test(start_paused = true)]
async fn an_http_2_connection_that_takes_nothing_of_its_answers_is_closed() {
    let (address, _tasks) = listener(Options::default()).await;
    let mut peer = Http2::connect(ONE, address).await;
    peer.get(1, "/some").await;
    peer.get(3, "/peer").await;
    peer.until((HEADERS, 1)).await;
    let begun = Instant::now();
    let frames = peer.rest().await;
    assert!(
        (30..=40).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    assert!(frames.contains(&(RST_STREAM, 1)), "{frames:?}");
    assert!(frames.contains(&(RST_STREAM, 3)), "{frames:?}");
    assert!(frames.contains(&(GO_AWAY, 0)), "{frames:?}");
}

#[tokio::test(start_paused = true)]
async fn a_last_byte_that_is_not_taken_does_not_keep_an_http_2_connection() {
    let (address, _tasks) = listener(Options::default()).await;
    let mut peer = Http2::connect(ONE, address).await;
    peer.get(1, "/peer").await;
    peer.open(1, 1).await;
    peer.until((DATA, 1)).await;
    let begun = Instant::now();
    peer.rest().await;
    assert!(
        (30..=75).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_does_not_take_others_with_it() {
    let (address, _tasks) = listener(Options::default()).await;
    let mut peer = Http2::connect(ONE, address).await;
    peer.get(1, "/some").await;
    peer.get(3, "/late").await;
    peer.open(3, 1000).await;
    let frames = peer.rest().await;
    let at = |frame: Frame| frames.iter().position(|one| *one == frame).unwrap();
    assert!(at((RST_STREAM, 1)) < at((DATA, 3)), "{frames:?}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_wait_for_their_readers_are_bounded_for_each_peer_and_for_all() {
    let answers = Bounds {
        all: 4 * MIB,
        of_a_peer: MIB,
    };
    let (address, _tasks) = listener(Options {
        answers,
        ..Options::default()
    })
    .await;
    let mut greedy = Http2::connect(ONE, address).await;
    for stream in [1, 3] {
        greedy.get(stream, "/some").await;
        greedy.until((HEADERS, stream.into())).await;
    }
    let refused = answer_to(ONE, address, "/peer", "").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.contains("retry-after: 1") && refused.contains("\"code\":\"UNAVAILABLE\""),
        "{refused}"
    );
    let probe = answer_to(ONE, address, "/health", "").await;
    assert!(probe.starts_with("HTTP/1.1 200"), "{probe}");
    let served = answer_to(OTHER, address, "/peer", "").await;
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");

    let mut others = Vec::new();
    for last in 2..=4 {
        let mut other = Http2::connect([127, 0, 0, last], address).await;
        for stream in [1, 3] {
            other.get(stream, "/some").await;
            other.until((HEADERS, stream.into())).await;
        }
        others.push(other);
    }
    let refused = answer_to([127, 0, 0, 9], address, "/peer", "").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    drop((greedy, others));
    // They are gone once the listener has seen it.
    while !answer_to(ONE, address, "/peer", "")
        .await
        .starts_with("HTTP/1.1 200")
    {}
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_is_refused_when_others_came_before_it() {
    let answers = Bounds {
        all: MIB,
        of_a_peer: MIB,
    };
    let (address, _tasks) = listener(Options {
        answers,
        ..Options::default()
    })
    .await;
    let mut peer = Http2::connect(ONE, address).await;
    for stream in [1, 3, 5, 7] {
        peer.get(stream, "/some").await;
    }
    for stream in [1, 3, 5, 7] {
        peer.until((HEADERS, stream)).await;
        peer.open(u8::try_from(stream).unwrap(), 200).await;
    }
    // The first two wait; the others have come to their ends, which are refusals.
    let frames = peer.rest().await;
    let is_reset = |stream| frames.contains(&(RST_STREAM, stream));
    assert!(is_reset(1) && is_reset(3), "{frames:?}");
    assert!(!is_reset(5) && !is_reset(7), "{frames:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_has_a_bounded_number_of_connections() {
    let (address, _tasks) = listener(Options {
        places: Places::new(8, 2),
        ..Options::default()
    })
    .await;
    let held = [connect(ONE, address).await, connect(ONE, address).await];
    let mut third = connect(ONE, address).await;
    // It may be closed before it has written.
    let _ = third
        .write_all(b"GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    assert_eq!(rest(&mut third).await, "");
    let other = answer_to(OTHER, address, "/peer", "").await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    drop(held);
    // There is a place once the listener has seen that they are gone.
    loop {
        let mut again = connect(ONE, address).await;
        let request = b"GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        if again.write_all(request).await.is_ok()
            && rest(&mut again).await.starts_with("HTTP/1.1 200")
        {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn trusted_proxies_have_no_bound_of_their_own() {
    let trusted_proxies = TrustedProxies::new(vec!["127.0.0.1/32".parse().unwrap()]);
    let options = Options {
        places: Places::new(8, 2),
        trusted_proxies,
        ..Options::default()
    };
    let (address, _tasks) = listener(options).await;
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(connect(ONE, address).await);
    }
    let served = answer_to(ONE, address, "/peer", "").await;
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
}
