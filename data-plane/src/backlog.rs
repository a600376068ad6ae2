//! Bound on the backlog: messages that were accepted and have not ended. Beyond it, messages are
//! refused, first those of the flow with the largest backlog.
//!
//! The log counts its backlog now and then ([`Backlog::follow`]). Between two counts, this node
//! adds what it appends and subtracts what it ends, so that intake costs two atomic additions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kanat_message_log::{DeliveryStore, Error};
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_telemetry::{Throttle, metrics};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Shortest time from one count to the next.
const MIN_COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Inverse of the part of the time that counting may take.
const COUNT_SHARE: u32 = 20;
/// Ratio of a flow's backlog to the bytes that are left to all flows: a single flow reaches four
/// fifths of the bound, and the rest is for others.
const FLOW_FACTOR: u64 = 4;
/// Value of [`Share::oldest`] for a flow of which nothing waits for its first attempt.
const NOTHING_WAITS: i64 = i64::MAX;

/// The bounds of the backlog.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all unfinished messages of the log.
    pub bytes: u64,
    /// How long the oldest message of a flow may wait for its first attempt, where the flow does
    /// not say. Without a bound when `None`.
    pub age: Option<Duration>,
}

/// The backlog of the log, as this node knows it.
pub(crate) struct Backlog {
    limits: Limits,
    total: Estimate,
    flows: Mutex<HashMap<FlowId, Arc<Share>>>,
    lines: Throttle,
}

/// The part of one flow in the backlog.
pub(crate) struct Share {
    bytes: Estimate,
    /// Instant since which the oldest message waits for its first attempt, in milliseconds by the
    /// clock of waits.
    oldest: AtomicI64,
}

/// Bytes as the log counted them last, and as this node has changed them since.
#[derive(Default)]
struct Estimate {
    counted: AtomicI64,
    changed: AtomicI64,
}

/// Reason why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Overload {
    #[error("too many messages wait for their delivery")]
    All,
    #[error("too many messages of this flow wait for their delivery")]
    Flow,
    #[error("messages of this flow wait for too long for their delivery")]
    Age,
}

/// Bytes of a message that is being stored. They leave the backlog when this is dropped.
pub(crate) struct Entry<'b> {
    backlog: &'b Backlog,
    share: &'b Share,
    bytes: i64,
}

/// Bytes of an unfinished message, which leave the backlog with its end.
pub(crate) struct Exit {
    backlog: Arc<Backlog>,
    share: Arc<Share>,
    bytes: u64,
}

impl Backlog {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            total: Estimate::default(),
            flows: Mutex::default(),
            lines: Throttle::new(),
        })
    }

    /// Returns the share of a flow, the same one at every call.
    pub fn share(&self, flow: &FlowId) -> Arc<Share> {
        let mut flows = self.flows.lock();
        if let Some(share) = flows.get(flow) {
            return Arc::clone(share);
        }
        let share = Arc::new(Share::default());
        flows.insert(flow.clone(), Arc::clone(&share));
        share
    }

    /// Returns the bytes of all unfinished messages, about.
    pub fn bytes(&self) -> u64 {
        self.total.bytes()
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Checks whether a flow takes another message. `age` is the flow's own bound.
    ///
    /// # Errors
    /// The reason why the flow takes no message at present; a later call may find room.
    pub fn check(&self, share: &Share, age: Option<Duration>) -> Result<(), Overload> {
        self.check_bytes(share.bytes.bytes(), share.bytes.bytes(), 0)?;
        let Some(age) = age.or(self.limits.age) else {
            return Ok(());
        };
        let oldest = share.oldest.load(Ordering::Relaxed);
        if oldest != NOTHING_WAITS
            && Timestamp::steady().since(Timestamp::from_millis(oldest)) > age
        {
            return Err(self.refused(Overload::Age));
        }
        Ok(())
    }

    /// Adds a message that is about to be stored.
    ///
    /// # Errors
    /// It does not fit within the bound.
    pub fn enter<'b>(&'b self, share: &'b Share, bytes: u64) -> Result<Entry<'b>, Overload> {
        let before = share.bytes.bytes();
        let entry = Entry {
            backlog: self,
            share,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        };
        self.total.add(entry.bytes);
        share.bytes.add(entry.bytes);
        self.check_bytes(before, share.bytes.bytes(), bytes)?;
        Ok(entry)
    }

    /// Returns what takes a message out of the backlog that it is in.
    pub fn exit(self: &Arc<Self>, share: Arc<Share>, bytes: u64) -> Exit {
        Exit {
            backlog: Arc::clone(self),
            share,
            bytes,
        }
    }

    /// Checks the bound for a flow that had `before` bytes and has `after` bytes with the
    /// `entering` ones, which are part of the total.
    fn check_bytes(&self, before: u64, after: u64, entering: u64) -> Result<(), Overload> {
        let total = self.total.bytes();
        if total.saturating_sub(entering) >= self.limits.bytes {
            return Err(self.refused(Overload::All));
        }
        let left = self.limits.bytes.saturating_sub(total);
        // A flow without a backlog may have one message, however large it is.
        if before > 0 && after > left.saturating_mul(FLOW_FACTOR) {
            return Err(self.refused(Overload::Flow));
        }
        Ok(())
    }

    fn refused(&self, overload: Overload) -> Overload {
        metrics::metrics().backlog_refusals.count(match overload {
            Overload::All => "all",
            Overload::Flow => "flow",
            Overload::Age => "age",
        });
        if let Some(count) = self.lines.count() {
            tracing::warn!(
                reason = %overload,
                count,
                backlog_bytes = self.bytes(),
                "messages were refused: the backlog is at its bound",
            );
        }
        overload
    }

    /// Has the log count its backlog while there is one, until `stopped`.
    pub async fn follow(&self, log: &dyn DeliveryStore, stopped: &CancellationToken) {
        let mut claimable = log.claimable();
        let following = async {
            let mut seen = 0;
            let mut is_idle = false;
            loop {
                let begun = Instant::now();
                let changed = self.total.changed.load(Ordering::Relaxed);
                let is_woken = claimable.has_changed().unwrap_or(false);
                if !is_idle || changed != seen || is_woken {
                    claimable.mark_unchanged();
                    seen = changed;
                    match self.count(log).await {
                        Ok(()) => is_idle = self.total.counted.load(Ordering::Relaxed) + seen == 0,
                        Err(error) => tracing::debug!(%error, "the backlog could not be counted"),
                    }
                }
                sleep(
                    begun
                        .elapsed()
                        .saturating_mul(COUNT_SHARE)
                        .max(MIN_COUNT_INTERVAL),
                )
                .await;
            }
        };
        tokio::select! {
            () = following => {}
            () = stopped.cancelled() => {}
        }
    }

    /// Replaces the estimates by what the log counts now.
    ///
    /// # Errors
    /// The log cannot be read; the estimates are as before.
    pub async fn count(&self, log: &dyn DeliveryStore) -> Result<(), Error> {
        let total_before = self.total.changed.load(Ordering::Relaxed);
        let before: HashMap<FlowId, i64> = {
            let flows = self.flows.lock();
            flows
                .iter()
                .map(|(id, share)| (id.clone(), share.bytes.changed.load(Ordering::Relaxed)))
                .collect()
        };
        let counted = log.backlog().await?;
        let total = counted.iter().map(|flow| flow.bytes).sum();
        self.total.count(total, total_before);
        for flow in &counted {
            let share = self.share(&flow.flow_id);
            share
                .bytes
                .count(flow.bytes, before.get(&flow.flow_id).copied().unwrap_or(0));
            share.oldest.store(
                flow.oldest.map_or(NOTHING_WAITS, Timestamp::as_millis),
                Ordering::Relaxed,
            );
        }
        let mut flows = self.flows.lock();
        flows.retain(|id, share| {
            if counted
                .binary_search_by(|flow| flow.flow_id.cmp(id))
                .is_ok()
            {
                return true;
            }
            share.bytes.count(0, before.get(id).copied().unwrap_or(0));
            share.oldest.store(NOTHING_WAITS, Ordering::Relaxed);
            Arc::strong_count(share) > 1
        });
        Ok(())
    }
}

impl Estimate {
    fn bytes(&self) -> u64 {
        let bytes = self.counted.load(Ordering::Relaxed) + self.changed.load(Ordering::Relaxed);
        u64::try_from(bytes).unwrap_or(0)
    }

    fn add(&self, bytes: i64) {
        self.changed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes over a count that began when the changes were at `before`.
    fn count(&self, bytes: u64, before: i64) {
        self.counted.store(
            i64::try_from(bytes).unwrap_or(i64::MAX) - before,
            Ordering::Relaxed,
        );
    }
}

impl Default for Share {
    fn default() -> Self {
        Self {
            bytes: Estimate::default(),
            oldest: AtomicI64::new(NOTHING_WAITS),
        }
    }
}

impl Entry<'_> {
    /// The message is stored.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.backlog.total.add(-self.bytes);
        self.share.bytes.add(-self.bytes);
    }
}

impl Exit {
    /// The message has come to its end.
    pub fn leave(&self) {
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        self.backlog.total.add(-bytes);
        self.share.bytes.add(-bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(bytes: u64) -> Arc<Backlog> {
        Backlog::new(Limits { bytes, age: None })
    }

    /// Adds messages of 10 bytes until one is refused; says how many were taken, and why no more.
    fn fill(backlog: &Backlog, share: &Share) -> (u64, Overload) {
        let mut taken = 0;
        loop {
            match backlog.enter(share, 10) {
                Ok(entry) => entry.keep(),
                Err(overload) => return (taken, overload),
            }
            taken += 1;
        }
    }

    #[test]
    fn the_flow_with_the_largest_backlog_is_refused_before_others() {
        let backlog = backlog(1_000);
        let busy = backlog.share(&FlowId::new("busy"));
        let quiet = backlog.share(&FlowId::new("quiet"));
        let (taken, overload) = fill(&backlog, &busy);
        assert_eq!(taken, 80);
        assert_eq!(overload, Overload::Flow);
        assert_eq!(backlog.check(&quiet, None), Ok(()));
        let (taken, overload) = fill(&backlog, &quiet);
        assert_eq!(taken, 16);
        assert_eq!(overload, Overload::Flow);
        assert!(backlog.bytes() <= 1_000);
    }

    #[test]
    fn a_message_that_was_not_stored_or_came_to_its_end_makes_room() {
        let backlog = backlog(100);
        let share = backlog.share(&FlowId::new("a"));
        drop(backlog.enter(&share, 60));
        assert_eq!(backlog.bytes(), 0);
        backlog.enter(&share, 60).unwrap().keep();
        assert_eq!(backlog.enter(&share, 60).err(), Some(Overload::Flow));
        assert_eq!(backlog.bytes(), 60);
        backlog.exit(Arc::clone(&share), 60).leave();
        assert_eq!(backlog.bytes(), 0);
    }

    #[test]
    fn a_message_larger_than_the_bound_is_taken_by_an_empty_flow() {
        let backlog = backlog(100);
        let share = backlog.share(&FlowId::new("a"));
        backlog.enter(&share, 200).unwrap().keep();
        assert_eq!(
            backlog.check(&backlog.share(&FlowId::new("b")), None),
            Err(Overload::All)
        );
    }

    #[test]
    fn intake_is_refused_while_the_oldest_message_is_older_than_the_bound_of_the_flow_or_of_all() {
        let backlog = Backlog::new(Limits {
            bytes: 1_000,
            age: Some(Duration::from_secs(600)),
        });
        let share = backlog.share(&FlowId::new("a"));
        assert_eq!(backlog.check(&share, Some(Duration::ZERO)), Ok(()));
        let since = Timestamp::steady().before(Duration::from_secs(300));
        share.oldest.store(since.as_millis(), Ordering::Relaxed);
        assert_eq!(backlog.check(&share, None), Ok(()));
        assert_eq!(
            backlog.check(&share, Some(Duration::from_secs(900))),
            Ok(())
        );
        assert_eq!(
            backlog.check(&share, Some(Duration::from_secs(200))),
            Err(Overload::Age)
        );
    }
}
