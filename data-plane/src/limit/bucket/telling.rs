//! What a caller is told of a bucket, and when it should come back.

use std::time::Duration;

use kanat_message_log::quota::TOKEN;

use super::{Bucket, Limits};
use crate::limit::standing::{Limited, Standing, Window};
use crate::limit::view::View;

/// Who waits looks again after this time at the latest: limits change, and the store comes and
/// goes.
const LOOK: Duration = Duration::from_millis(500);

impl Bucket {
    pub(super) fn limited(&self, view: &View) -> Limited {
        let per_second = u64::from(self.limits.rate.calls.max(1));
        let nodes = if view.away.is_some() {
            u64::from(view.nodes.max(1))
        } else {
            1
        };
        let wait = Duration::from_secs(nodes.div_ceil(per_second).max(1));
        let standing = Standing {
            remaining: 0,
            reset: wait,
            ..self.second()
        };
        Limited {
            retry_after: wait,
            again: self.again(view),
            standing,
        }
    }

    pub(super) fn over(&self, view: &View) -> Limited {
        let standing = Standing {
            remaining: 0,
            ..self.of_day(view)
        };
        Limited {
            retry_after: view.to_midnight.max(Duration::from_secs(1)),
            again: LOOK,
            standing,
        }
    }

    /// When a token may be here: by what comes in here, or when the store is to be asked again.
    fn again(&self, view: &View) -> Duration {
        let missing = TOKEN.saturating_sub(self.tokens);
        let Limits { rate, .. } = self.limits;
        let (share, nodes) = match (self.until, self.alone_since(view)) {
            (Some(_), _) => (self.share, 1),
            (None, Some(_)) => (rate.calls, view.nodes),
            (None, None) => (0, 1),
        };
        let here = rate.period.until(missing, share, nodes);
        let there = self
            .shut_until
            .filter(|_| view.away.is_none())
            .map(|until| until.saturating_duration_since(view.now));
        here.into_iter()
            .chain(there)
            .min()
            .unwrap_or(LOOK)
            .clamp(Duration::from_millis(1), LOOK)
    }

    /// Where a call that is let in leaves its consumer: by the limit of which less is left.
    pub(super) fn standing(&self, view: &View) -> Standing {
        let second = self.second();
        let day = self.of_day(view);
        match (self.limits.rate.calls, self.limits.per_day) {
            (0, 0) => Standing {
                window: Window::None,
                ..second
            },
            (_, 0) => second,
            (0, _) => day,
            _ if day.remaining < second.remaining => day,
            _ => second,
        }
    }

    fn second(&self) -> Standing {
        let limit = u64::from(self.limits.rate.calls);
        let remaining = (self.tokens.saturating_add(self.pool) / TOKEN).min(limit);
        let reset = Duration::from_secs(u64::from(remaining < limit));
        Standing {
            window: Window::Second,
            limits: self.limits,
            remaining,
            reset,
        }
    }

    fn of_day(&self, view: &View) -> Standing {
        let left = self
            .day
            .alone
            .filter(|_| view.away.is_some())
            .unwrap_or(self.day.left);
        let remaining = self
            .day
            .allowance
            .saturating_add(left)
            .min(self.limits.per_day);
        Standing {
            window: Window::Day,
            limits: self.limits,
            remaining,
            reset: view.to_midnight,
        }
    }
}
