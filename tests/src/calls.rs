//! Callers of a published API who ask for more than their key allows, and how much they were let
//! have at any time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::join_all;
use kanat_model::Timestamp;
use tokio::time::Instant;

use crate::Rest;

/// Calls at work at one node at once, at most.
const CALLERS_OF_A_NODE: usize = 8;

/// Results of calls with one key.
#[derive(Debug, Default)]
pub struct Calls {
    /// When each that was let in was begun and answered: it was counted somewhere between.
    pub admitted: Vec<(Instant, Instant)>,
    /// When each began that was refused with 429.
    pub refused: Vec<Instant>,
    /// When the last one that was let in was answered, by the wall clock.
    pub last: Option<Timestamp>,
}

impl Calls {
    /// Posts to `path` at all of these until `end`, `per_second` times in all while they keep up.
    /// Whatever is neither 200 nor a 429 that says when to come back fails the test.
    pub async fn make(consumers: &[Rest], path: &str, per_second: u32, end: Instant) -> Self {
        let begun = Instant::now();
        let turns = AtomicU32::new(0);
        let callers = consumers
            .iter()
            .flat_map(|consumer| [consumer; CALLERS_OF_A_NODE])
            .map(async |consumer| {
                let mut calls = Self::default();
                loop {
                    let due = begun
                        + Duration::from_secs(1) * turns.fetch_add(1, Ordering::Relaxed)
                            / per_second;
                    if due.max(Instant::now()) >= end {
                        return calls;
                    }
                    tokio::time::sleep_until(due).await;
                    calls.make_one(consumer, path).await;
                }
            });
        let mut all = Self::default();
        join_all(callers)
            .await
            .into_iter()
            .for_each(|calls| all.add(calls));
        all.admitted.sort_unstable();
        all.refused.sort_unstable();
        all
    }

    /// Posts once; gives the status.
    pub async fn make_one(&mut self, consumer: &Rest, path: &str) -> u16 {
        let from = Instant::now();
        let answer = consumer.post(path, &serde_json::json!({"total": 1})).await;
        match answer.status {
            200 => {
                self.admitted.push((from, Instant::now()));
                self.last = Some(Timestamp::now());
            }
            429 => {
                let pause: u64 = answer.header("retry-after").parse().expect("whole seconds");
                assert!(pause >= 1, "{:?}", answer.headers);
                self.refused.push(from);
            }
            other => panic!("{other}: {}", answer.text),
        }
        answer.status
    }

    pub fn add(&mut self, other: Self) {
        self.admitted.extend(other.admitted);
        self.refused.extend(other.refused);
        self.last = self.last.max(other.last);
    }

    /// Returns the largest number of calls that were certainly let in within one second.
    pub fn peak_per_second(&self) -> usize {
        let inside = |from: Instant| {
            let end = from + Duration::from_secs(1);
            self.admitted
                .iter()
                .filter(|(begun, answered)| *begun >= from && *answered <= end)
                .count()
        };
        self.admitted
            .iter()
            .map(|(begun, _)| inside(*begun))
            .max()
            .unwrap_or_default()
    }

    /// Asserts that no t seconds, of any length and from any instant, let in more than
    /// `limit` x (t + 1) calls.
    pub fn assert_within(&self, limit: u32) {
        let mut admitted = self.admitted.clone();
        admitted.sort_unstable();
        let mut ends: Vec<Instant> = Vec::new();
        for (from, end) in admitted.into_iter().rev() {
            ends.insert(ends.partition_point(|other| *other < end), end);
            for (earlier, end) in ends.iter().enumerate() {
                let seconds = (*end - from).as_secs_f64();
                let allowed = f64::from(limit) * (seconds + 1.0);
                assert!(
                    (earlier + 1) as f64 <= allowed + 1e-6,
                    "{} calls in {seconds} s",
                    earlier + 1
                );
            }
        }
    }

    /// Number of calls that a limit of `limit` a second could have let in: for each second the
    /// limit, or the calls that were made.
    pub fn max_allowed(&self, limit: u32) -> usize {
        let begun = self
            .admitted
            .iter()
            .map(|(from, _)| *from)
            .chain(self.refused.iter().copied());
        let Some(first) = begun.clone().min() else {
            return 0;
        };
        let mut seconds: Vec<usize> = Vec::new();
        for from in begun {
            let second = usize::try_from((from - first).as_secs()).expect("a test is short");
            seconds.resize(seconds.len().max(second + 1), 0);
            seconds[second] += 1;
        }
        let limit = usize::try_from(limit).expect("a limit is small");
        seconds.into_iter().map(|asked| asked.min(limit)).sum()
    }
}
