//! The status of a bucket for callers, and the time after which to call again.

use std::time::Duration;

use super::{Bucket, DAY_RETRY_DELAY, Limits};
use crate::{ClusterView, LimitExceeded, LimitKind, LimitStatus, MICROTOKENS_PER_TOKEN};

/// Longest wait before another attempt, since limits change and the store comes and goes.
const MAX_WAIT: Duration = Duration::from_millis(500);

impl Bucket {
    /// Returns the refusal of a call beyond the rate.
    pub(super) fn rate_refusal(&self, view: &ClusterView) -> LimitExceeded {
        let per_period = u64::from(self.limits.rate.calls.max(1));
        let nodes = if view.unreachable_since.is_some() {
            u64::from(view.nodes.max(1))
        } else {
            1
        };
        let wait = Duration::from_secs(nodes.div_ceil(per_period).max(1));
        let status = LimitStatus {
            remaining: 0,
            reset: wait,
            ..self.rate_status()
        };
        LimitExceeded {
            retry_after: wait,
            next_attempt_in: self.next_attempt_in(view),
            status,
        }
    }

    /// Returns the refusal of a call beyond the limit per day.
    pub(super) fn day_refusal(&self, view: &ClusterView) -> LimitExceeded {
        let status = LimitStatus {
            remaining: 0,
            ..self.day_status(view)
        };
        // A node that never reached the store does not know whether the day is used up.
        let retry_after = if view.has_store_answered {
            view.to_midnight.max(Duration::from_secs(1))
        } else {
            DAY_RETRY_DELAY
        };
        LimitExceeded {
            retry_after,
            next_attempt_in: MAX_WAIT,
            status,
        }
    }

    /// Returns the time until this node may have a token, or until the store is asked again.
    fn next_attempt_in(&self, view: &ClusterView) -> Duration {
        let missing = MICROTOKENS_PER_TOKEN.saturating_sub(self.microtokens);
        let Limits { rate, .. } = self.limits;
        let (share, nodes) = match (self.share_expires_at, self.outage_rate_since(view)) {
            (Some(_), _) => (self.share, 1),
            (None, Some(_)) => (rate.calls, view.nodes),
            (None, None) => (0, 1),
        };
        let own = rate.period.time_to_gain(missing, share, nodes);
        let store = self
            .next_pool_request_at
            .filter(|_| view.unreachable_since.is_none())
            .map(|until| until.saturating_duration_since(view.now));
        own.into_iter()
            .chain(store)
            .min()
            .unwrap_or(MAX_WAIT)
            .clamp(Duration::from_millis(1), MAX_WAIT)
    }

    /// Returns the status after an admitted call: that of the limit with fewer calls left.
    pub(super) fn status(&self, view: &ClusterView) -> LimitStatus {
        let rate = self.rate_status();
        let day = self.day_status(view);
        match (self.limits.rate.calls, self.limits.per_day) {
            (0, 0) => LimitStatus {
                kind: LimitKind::None,
                ..rate
            },
            (_, 0) => rate,
            (0, _) => day,
            _ if day.remaining < rate.remaining => day,
            _ => rate,
        }
    }

    fn rate_status(&self) -> LimitStatus {
        let limit = u64::from(self.limits.rate.calls);
        let remaining = (self.microtokens.saturating_add(self.pool_microtokens)
            / MICROTOKENS_PER_TOKEN)
            .min(limit);
        let reset = Duration::from_secs(u64::from(remaining < limit));
        LimitStatus {
            kind: LimitKind::Rate,
            limits: self.limits,
            remaining,
            reset,
        }
    }

    fn day_status(&self, view: &ClusterView) -> LimitStatus {
        let left = if view.unreachable_since.is_some() {
            self.outage_left_of_day(view)
        } else {
            self.left_of_day()
        };
        let remaining = self
            .day
            .allowance
            .saturating_add(left)
            .min(self.limits.per_day);
        LimitStatus {
            kind: LimitKind::Day,
            limits: self.limits,
            remaining,
            reset: view.to_midnight,
        }
    }
}
