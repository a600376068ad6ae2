//! A histogram of durations that many threads fill without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Bounds for operations of seconds, in seconds.
pub const SHORT: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Bounds for operations that may take a day because of retries, in seconds.
pub const LONG: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
    3600.0, 21600.0, 86400.0,
];

/// Histogram; a cheap handle.
#[derive(Debug, Clone)]
pub struct Histogram {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    bounds: &'static [f64],
    /// One bucket per bound, and one above all bounds.
    buckets: Box<[AtomicU64]>,
    sum_nanos: AtomicU64,
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self {
            inner: Arc::new(Inner {
                bounds,
                buckets,
                sum_nanos: AtomicU64::new(0),
            }),
        }
    }

    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = self.inner.bounds.partition_point(|bound| *bound < seconds);
        // There is one more bucket than bounds.
        if let Some(bucket) = self.inner.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.inner.sum_nanos.fetch_add(nanos, Relaxed);
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let bounds = self.inner.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.inner.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        // The count is the sum of the buckets of one reading, so that both agree.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.inner.sum_nanos.load(Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_bounds_it() {
        let histogram = Histogram::new(&[0.001, 0.01]);
        for micros in [0, 1000, 1001, 10_000, 10_001, 99_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let counts: Vec<_> = histogram
            .inner
            .buckets
            .iter()
            .map(|bucket| bucket.load(Relaxed))
            .collect();
        assert_eq!(counts, [2, 2, 2]);
    }
}
