//! Waiting for a condition, with a deadline that only a failure reaches.

use std::future::Future;
use std::time::{Duration, Instant};

/// How long a condition may take before the test fails; far more than a slow machine needs.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Asks again and again until `condition` gives a value; panics with `what` at the deadline.
pub async fn until<T, F, Fut>(what: &str, mut condition: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let begun = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(begun.elapsed() < DEADLINE, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
