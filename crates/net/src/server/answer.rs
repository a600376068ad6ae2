//! Responses in progress: the number of their bytes that wait for readers, and whether the readers
//! read.
//!
//! Bytes count from the time when a response is known until the connection has taken them, plain or
//! encrypted. Counting neither allocates nor locks for responses over HTTP/1.

use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Body as _, Frame, SizeHint};

use super::unread::Reading;
use crate::Body;
use crate::body::BoxError;
use crate::peers::Holdings;

/// Size up to which a response is never refused, in bytes.
const MAX_UNREFUSED_BYTES: usize = 64 << 10;

/// Size of the pieces for HTTP/2, in bytes, so that the rest of a response is dropped with its
/// stream.
const PIECE_BYTES: usize = 16 << 10;

/// Extension that marks a response whose reader may be slow, because it is part of this system.
#[derive(Debug, Clone, Copy)]
pub struct AtAnyPace;

/// Bounds on the bytes of answers that wait for their readers.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bound of one listener, in bytes.
    pub all: usize,
    /// Bound of one peer, in bytes.
    pub of_a_peer: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            all: 256 << 20,
            of_a_peer: 64 << 20,
        }
    }
}

/// Responses of one listener.
#[derive(Debug)]
pub(super) struct Answers {
    bounds: Bounds,
    /// Bytes.
    waiting: AtomicUsize,
}

/// Responses of one connection.
#[derive(Debug)]
pub(super) struct Line {
    pub answers: Arc<Answers>,
    /// Holdings of the peer; `None` for a trusted proxy, which serves many clients.
    pub holdings: Option<Arc<Holdings>>,
    /// Progress of the reader over HTTP/1.
    pub reading: Reading,
    /// Progress of the reader over HTTP/2, all streams together.
    pub streams: Reading,
}

/// Counters for the bytes of one response.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub line: Arc<Line>,
    /// Holdings of the client of a trusted proxy.
    pub client: Option<Arc<Holdings>>,
    /// Progress of the HTTP/2 stream.
    pub stream: Option<Arc<Reading>>,
}

impl Answers {
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            waiting: AtomicUsize::new(0),
        })
    }
}

impl Line {
    pub fn new(answers: &Arc<Answers>, holdings: Option<Arc<Holdings>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Arc::clone(answers),
            holdings,
            reading: Reading::default(),
            streams: Reading::default(),
        })
    }
}

impl Account {
    fn holdings(&self) -> Option<&Holdings> {
        self.client.as_deref().or(self.line.holdings.as_deref())
    }

    /// Returns whether the bound is reached, so that no further response is started.
    pub fn is_full(&self) -> bool {
        let bounds = &self.line.answers.bounds;
        self.counters()
            .zip([bounds.all, bounds.of_a_peer])
            .any(|(waiting, bound)| waiting.load(Ordering::Relaxed) > bound)
    }

    /// Returns the waiting bytes of the listener, and those of the peer.
    fn counters(&self) -> impl Iterator<Item = &AtomicUsize> {
        let of_the_peer = self.holdings().map(|held| &held.answers);
        iter::once(&self.line.answers.waiting).chain(of_the_peer)
    }

    fn take(&self, bytes: usize) {
        for waiting in self.counters() {
            waiting.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn give_back(&self, bytes: usize) {
        for waiting in self.counters() {
            waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Notes the progress of the reader.
    fn note(&self, progress: impl Fn(&Reading)) {
        match &self.stream {
            None => progress(&self.line.reading),
            Some(stream) => {
                progress(&self.line.streams);
                progress(stream);
            }
        }
    }
}

/// Body of a response whose bytes are counted.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    /// Bytes that were produced and not handed out yet.
    rest: Bytes,
    /// Bytes that were counted before they were produced.
    ahead: usize,
    /// `None` when the bytes do not count.
    account: Option<Account>,
}

impl Answer {
    /// Counts the body of a response. A large one is replaced by `refusal` while the bound is
    /// reached.
    pub fn of(
        mut response: Response<Body>,
        account: Account,
        refusal: impl FnOnce() -> Response<Body>,
    ) -> Response<Self> {
        let counts = response.extensions().get::<AtAnyPace>().is_none();
        let account = counts.then_some(account);
        let mut ahead = 0;
        if let Some(account) = &account {
            ahead = exact(&response);
            if ahead > MAX_UNREFUSED_BYTES && account.is_full() {
                response = refusal();
                ahead = exact(&response);
            }
            account.take(ahead);
        }
        response.map(|body| Self {
            body,
            rest: Bytes::new(),
            ahead,
            account,
        })
    }

    fn piece(&mut self, bytes: Bytes) -> Piece {
        let counted = bytes.len();
        if let Some(account) = &self.account {
            let known = counted.min(self.ahead);
            self.ahead -= known;
            if counted > known {
                // What an answer of unknown length makes is there already, and not much at a time.
                account.take(counted - known);
            }
            account.note(Reading::begin);
        }
        Piece {
            bytes,
            counted,
            account: self.account.clone(),
        }
    }

    fn is_http_2(&self) -> bool {
        self.account
            .as_ref()
            .is_some_and(|account| account.stream.is_some())
    }
}

/// Returns the length of a response, if it is known before the response is sent.
fn exact(response: &Response<Body>) -> usize {
    response
        .body()
        .size_hint()
        .exact()
        .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.give_back(self.ahead);
        }
    }
}

impl http_body::Body for Answer {
    type Data = Piece;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        let this = &mut *self;
        let mut bytes = std::mem::take(&mut this.rest);
        if bytes.is_empty() {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => bytes = data,
                    // It has no data, so that there is nothing to map.
                    Err(trailers) => {
                        return Poll::Ready(Some(Ok(trailers.map_data(|data| this.piece(data)))));
                    }
                },
            }
        }
        if bytes.len() > PIECE_BYTES && this.is_http_2() {
            this.rest = bytes.split_off(PIECE_BYTES);
        }
        Poll::Ready(Some(Ok(Frame::data(this.piece(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let mut hint = self.body.size_hint();
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// Bytes of a response that the connection has not taken yet.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    counted: usize,
    account: Option<Account>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(account) = &self.account {
            account.note(Reading::went_on);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let Some(account) = &self.account else { return };
        account.give_back(self.counted);
        account.note(Reading::end);
    }
}
