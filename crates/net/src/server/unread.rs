//! Stalled readers: a connection, or a stream of one, that takes no byte of a response for a while
//! is aborted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

/// Progress of a reader.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Number of pieces that are not taken completely.
    waiting: AtomicUsize,
    /// Number of times that a part of a piece was taken.
    steps: AtomicUsize,
}

impl Reading {
    pub fn begin(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub fn went_on(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Detector of a stalled reader. It has a timer only while a piece waits.
#[derive(Debug)]
pub(super) struct Patience {
    time: Duration,
    wait: Option<Wait>,
}

#[derive(Debug)]
struct Wait {
    /// Timer of the next check.
    look: Pin<Box<Sleep>>,
    steps: usize,
    /// Time of the last check that found progress.
    since: Instant,
}

/// Number of checks within the time-out.
const CHECKS_PER_TIMEOUT: u32 = 6;

impl Patience {
    pub fn new(time: Duration) -> Self {
        Self { time, wait: None }
    }

    /// Ready when a piece waits and none was taken within the time-out. Poll it after the producer
    /// of the pieces.
    pub fn poll_stopped(&mut self, reading: &Reading, cx: &mut Context<'_>) -> Poll<()> {
        if reading.waiting.load(Ordering::Relaxed) == 0 {
            self.wait = None;
            return Poll::Pending;
        }
        let pause = self.time / CHECKS_PER_TIMEOUT;
        let wait = self.wait.get_or_insert_with(|| Wait {
            look: Box::pin(tokio::time::sleep(pause)),
            steps: reading.steps.load(Ordering::Relaxed),
            since: Instant::now(),
        });
        while wait.look.as_mut().poll(cx).is_ready() {
            let steps = reading.steps.load(Ordering::Relaxed);
            let now = Instant::now();
            if wait.steps != steps {
                wait.steps = steps;
                wait.since = now;
            } else if now.duration_since(wait.since) >= self.time {
                return Poll::Ready(());
            }
            wait.look.as_mut().reset(now + pause);
        }
        Poll::Pending
    }
}

/// Executor of the streams of one HTTP/2 connection. Streams with stalled readers are reset, and
/// their connection gets a GOAWAY.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    /// Progress of the stream that is run next.
    next: Arc<Mutex<Option<Arc<Reading>>>>,
    time: Duration,
    leaving: CancellationToken,
}

impl Streams {
    /// Makes an executor. `leaving` is cancelled when a reader has stalled for `time`.
    pub fn new(time: Duration, leaving: CancellationToken) -> Self {
        Self {
            next: Arc::default(),
            time,
            leaving,
        }
    }

    /// Returns the progress of the next stream: hyper runs it once its request has been handed
    /// over.
    pub fn begin(&self) -> Arc<Reading> {
        let reading = Arc::<Reading>::default();
        *self.next.lock() = Some(Arc::clone(&reading));
        reading
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let reading = self.next.lock().take();
        let Some(reading) = reading else {
            return TokioExecutor::new().execute(stream);
        };
        let mut patience = Patience::new(self.time);
        let leaving = self.leaving.clone();
        TokioExecutor::new().execute(async move {
            let mut stream = std::pin::pin!(stream);
            std::future::poll_fn(|cx| match stream.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => patience
                    .poll_stopped(&reading, cx)
                    .map(|()| leaving.cancel()),
            })
            .await;
        });
    }
}
