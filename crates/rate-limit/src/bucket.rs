//! The bucket of one key at one node. Its decisions are pure: the caller passes the instant. It
//! holds a share of the key's tokens, and calls of the day that it may admit. When these do not
//! suffice, the store is asked. While the store is unreachable, each node uses an equal part of the
//! limits.

mod status;

use std::time::Duration;

use kanat_model::Timestamp;
use tokio::time::Instant;

use crate::{
    ClusterView, Key, LimitExceeded, LimitStatus, MICROTOKENS_PER_TOKEN, Rate, SHARE_LEASE,
    ShareGrant, ShareRequest, capacity,
};

/// Calls per tick from which a node gets a share. With fewer, one of several nodes has no share,
/// and the ledger's pool decides each of its calls. A single node gets the whole limit as its
/// share.
const MIN_SHARE_CALLS: u32 = 4;

/// Shortest delay before a store without tokens is asked again.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Cap of the delay before a store without tokens is asked again. A period whose eighth is longer
/// has that as its cap.
const RETRY_DELAY_CAP: Duration = Duration::from_millis(100);

/// Delay before a store whose day is used up is asked again.
const DAY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Ticks without a call after which a bucket returns everything.
const IDLE_TICKS: u32 = 2;

/// Limits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub rate: Rate,
    /// Calls per UTC day; 0 for no limit.
    pub per_day: u64,
}

impl Limits {
    /// Returns limits in calls per second and per day; 0 for no limit.
    pub fn per_second_and_day(per_second: u32, per_day: u64) -> Self {
        Self {
            rate: Rate::per_second(per_second),
            per_day,
        }
    }
}

/// Phase of a node's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Running,
    /// The node returns all that it holds.
    Leaving,
}

/// Decision on a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    Admit(LimitStatus),
    Refuse(LimitExceeded),
    /// Only the store can decide.
    AskStore,
}

/// Decision on a call by the limit per day alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayDecision {
    Admit,
    Refuse,
    AskStore,
}

/// Tokens and calls of the day that this node has for one key.
#[derive(Debug)]
pub struct Bucket {
    limits: Limits,
    /// Share of the bucket that this node holds, in calls per period.
    share: u32,
    /// End of the lease of the share; `None` without a share.
    share_expires_at: Option<Instant>,
    /// Tokens of the share at `refilled_at`, in millionths.
    microtokens: u64,
    /// Instant up to which the bucket was refilled.
    refilled_at: Instant,
    /// Share that this node should hold, by the last grant.
    target: u32,
    /// Tokens of the pool, in millionths, by the last grant.
    pool_microtokens: u64,
    /// Instant before which the store is not asked for a token again.
    next_pool_request_at: Option<Instant>,
    day: Day,
    /// Attempts since the last tick. A call that waits for its turn counts once per attempt.
    tick_calls: u32,
    /// Demand at the last tick: attempts plus the largest number of waiting calls. At each tick it
    /// falls to an eighth of its former value at the lowest.
    demand: u32,
    /// Most calls that waited in the queue at once since the last tick.
    peak_queued_calls: u32,
    idle_ticks: u32,
    /// Admitted calls that were not reported to the store.
    used: u64,
    /// Instant of the last admitted call.
    last_used_at: Option<Timestamp>,
}

/// The calls of a day.
#[derive(Debug, Clone, Copy, Default)]
struct Day {
    number: i64,
    /// Calls that this node may still admit without asking the store.
    allowance: u64,
    /// Allowance of the last grant.
    last_grant: u64,
    /// Calls that were admitted since the last request.
    used_since_request: u64,
    /// Calls of the day that were granted to all nodes, by the last grant.
    granted: u64,
    /// Instant before which the store is not asked for calls of the day again. Other nodes may
    /// return some earlier.
    next_day_request_at: Option<Instant>,
    /// Calls that this node has admitted from its equal part of the day in an outage of the store,
    /// since the last grant.
    outage_admitted: u64,
    /// Calls of `outage_admitted` that were not reported yet.
    outage_used: u64,
}

/// Tokens that a request to the store has set aside for its waiting calls, while the request is in
/// flight.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reservation {
    /// Calls that wait for the answer.
    pub waiting_calls: u32,
    /// Whole tokens of this node that pay for some of the calls. The bucket gets back those that
    /// the grant does not use, and all of them if the grant is lost.
    own_tokens: u32,
}

impl Bucket {
    /// Returns an empty bucket: the first call asks the store.
    pub fn new(limits: Limits, now: Instant) -> Self {
        Self {
            limits,
            share: 0,
            share_expires_at: None,
            microtokens: 0,
            refilled_at: now,
            target: 0,
            pool_microtokens: 0,
            next_pool_request_at: None,
            day: Day::default(),
            tick_calls: 0,
            demand: 0,
            peak_queued_calls: 0,
            idle_ticks: 0,
            used: 0,
            last_used_at: None,
        }
    }

    /// Returns a bucket with as many tokens as the limits allow.
    pub fn new_full(limits: Limits, now: Instant) -> Self {
        Self {
            microtokens: capacity(limits.rate.calls),
            ..Self::new(limits, now)
        }
    }

    /// Decides on a call, or on the next attempt of a call that waits for its turn, and counts the
    /// attempt. `queued_calls` is the number of calls that wait in the queue behind this one.
    pub fn try_admit(&mut self, limits: Limits, queued_calls: u32, view: &ClusterView) -> Decision {
        self.tick_calls = self.tick_calls.saturating_add(1);
        self.peak_queued_calls = self.peak_queued_calls.max(queued_calls);
        self.idle_ticks = 0;
        self.set_limits(limits, view);
        self.try_take(view)
    }

    /// Takes a token and a call of the day, if this node has them. Otherwise the call is refused,
    /// or the store has to decide.
    pub fn try_take(&mut self, view: &ClusterView) -> Decision {
        self.refill(view);
        let has_token = self.limits.rate.calls == 0 || self.microtokens >= MICROTOKENS_PER_TOKEN;
        match self.day_decision(view) {
            DayDecision::Refuse => return Decision::Refuse(self.day_refusal(view)),
            DayDecision::Admit | DayDecision::AskStore
                if !has_token && self.pool_is_empty(view) =>
            {
                return Decision::Refuse(self.rate_refusal(view));
            }
            DayDecision::Admit if has_token => {}
            DayDecision::Admit | DayDecision::AskStore => return Decision::AskStore,
        }
        if self.limits.rate.calls > 0 {
            self.microtokens -= MICROTOKENS_PER_TOKEN;
        }
        self.take_of_day(view);
        Decision::Admit(self.count_admitted(view))
    }

    /// Counts an admitted call whose token was taken already, here or from the pool.
    pub fn count_admitted(&mut self, view: &ClusterView) -> LimitStatus {
        self.used += 1;
        self.day.used_since_request += 1;
        self.last_used_at = Some(view.wall);
        self.status(view)
    }

    /// Decides on a call without asking the store.
    pub fn decide_without_store(
        &mut self,
        view: &ClusterView,
    ) -> Result<LimitStatus, LimitExceeded> {
        match self.try_take(view) {
            Decision::Admit(status) => Ok(status),
            Decision::Refuse(exceeded) => Err(exceeded),
            Decision::AskStore => Err(self.refusal(view)),
        }
    }

    /// Returns which limit refuses a call that got no token from the store.
    pub fn refusal(&mut self, view: &ClusterView) -> LimitExceeded {
        if self.day_decision(view) == DayDecision::Refuse {
            self.day_refusal(view)
        } else {
            self.rate_refusal(view)
        }
    }

    /// Returns whether at most half of the last allowance of the day is left. The store should then
    /// be asked for more, so that later calls need not wait.
    pub fn allowance_runs_low(&self) -> bool {
        self.limits.per_day > 0
            && self.day.last_grant > 0
            && self.day.allowance <= self.day.last_grant / 2
    }

    /// Ends a counting interval. Returns whether the bucket has something to report to the store,
    /// or needs a share.
    pub fn tick(&mut self) -> bool {
        self.idle_ticks = if self.tick_calls == 0 {
            self.idle_ticks.saturating_add(1)
        } else {
            0
        };
        self.demand = self
            .tick_calls
            .saturating_add(self.peak_queued_calls)
            .max(self.demand / 8);
        (self.tick_calls, self.peak_queued_calls) = (0, 0);
        self.used > 0
            || self.share > 0
            || self.day.allowance > 0
            || self.day.outage_used > 0
            || self.demand >= MIN_SHARE_CALLS
    }

    /// Returns whether the bucket of a local key, which no store knows, can be dropped: it is idle
    /// and full, so that a new one would be equal.
    pub fn is_droppable_local(&mut self, view: &ClusterView) -> bool {
        self.refill(view);
        self.idle_ticks >= IDLE_TICKS && self.microtokens >= capacity(self.limits.rate.calls)
    }

    /// Returns whether the bucket can be dropped: it is idle, and holds nothing that the store has
    /// to know. The bucket of a key with a limit per day stays until the day ends, because it knows
    /// how many calls are left if the store becomes unreachable.
    pub fn is_droppable(&self, view: &ClusterView) -> bool {
        let has_nothing = self.share == 0 && self.day.allowance == 0 && self.day.outage_used == 0;
        let knows_today = self.limits.per_day > 0 && self.day.number == view.today;
        self.idle_ticks >= IDLE_TICKS && self.used == 0 && has_nothing && !knows_today
    }

    /// Returns the request to the store for `waiting_calls` calls. An idle bucket returns all it
    /// has, and so does the bucket of a node that leaves.
    pub fn request(
        &mut self,
        key: Key,
        waiting_calls: u32,
        phase: Phase,
        view: &ClusterView,
    ) -> (ShareRequest, Reservation) {
        self.refill(view);
        let is_idle = self.idle_ticks >= IDLE_TICKS && waiting_calls == 0;
        let leaving = phase == Phase::Leaving || is_idle;
        let own_tokens = self.own_tokens(waiting_calls);
        self.microtokens -= u64::from(own_tokens) * MICROTOKENS_PER_TOKEN;
        let wanted = self.wanted(view);
        self.share = match view.nodes {
            _ if leaving => 0,
            0 | 1 => self.share,
            _ => self.share.min(self.target).min(wanted),
        };
        let returned_microtokens = self.microtokens.saturating_sub(capacity(self.share));
        self.microtokens -= returned_microtokens;
        let day = self.day;
        let is_today = day.number == view.today;
        let day_returned = if leaving {
            day.allowance
        } else {
            day.allowance.min(u64::from(waiting_calls))
        };
        self.day.allowance = if is_today {
            day.allowance - day_returned
        } else {
            0
        };
        let day_wanted = day
            .used_since_request
            .saturating_mul(4)
            .max(u64::from(self.demand))
            .saturating_sub(self.day.allowance);
        (self.day.used_since_request, self.day.outage_used) = (0, 0);
        let request = ShareRequest {
            key,
            rate: self.limits.rate,
            per_day: self.limits.per_day,
            waiting_calls,
            own_tokens,
            held: self.share,
            returned_microtokens,
            wanted: (!leaving).then_some(wanted),
            day: day.number,
            day_returned: if is_today { day_returned } else { 0 },
            day_owed: day.outage_used,
            day_wanted: if leaving { 0 } else { day_wanted },
            used: std::mem::take(&mut self.used),
            last_used_at: self.last_used_at,
        };
        (
            request,
            Reservation {
                waiting_calls,
                own_tokens,
            },
        )
    }

    /// Applies the grant for a request that was sent at `sent_at`. The caller admits the granted
    /// calls.
    pub fn apply(
        &mut self,
        grant: &ShareGrant,
        reservation: Reservation,
        sent_at: Instant,
        view: &ClusterView,
    ) {
        self.refill(view);
        self.share = grant.share.min(self.limits.rate.calls);
        let unused = reservation.own_tokens.saturating_sub(grant.admitted);
        let tokens = self
            .microtokens
            .saturating_add(grant.microtokens)
            .saturating_add(u64::from(unused) * MICROTOKENS_PER_TOKEN);
        self.microtokens = tokens.min(capacity(self.share));
        self.share_expires_at = (self.share > 0).then(|| sent_at + SHARE_LEASE);
        (self.target, self.pool_microtokens) = (grant.target, grant.pool_microtokens);
        if self.day.number != grant.day {
            self.day = Day {
                number: grant.day,
                ..Day::default()
            };
        }
        self.day.allowance += grant.allowance;
        self.day.last_grant = grant.allowance;
        self.day.granted = self.limits.per_day.saturating_sub(grant.day_left);
        // `granted` includes the calls that were reported.
        self.day.outage_admitted = self.day.outage_used;
        // Other nodes may return some.
        self.day.next_day_request_at = (grant.day_left == 0).then(|| view.now + DAY_RETRY_DELAY);
        let max = RETRY_DELAY_CAP.max(self.limits.rate.period.as_duration() / 8);
        let pause = grant
            .time_to_next_token
            .unwrap_or(RETRY_DELAY_CAP)
            .clamp(MIN_RETRY_DELAY, max);
        self.next_pool_request_at =
            (grant.admitted < reservation.waiting_calls).then(|| view.now + pause);
    }

    /// Takes back the reserved tokens of a request whose grant is lost.
    pub fn cancel_reservation(&mut self, reservation: Reservation) {
        self.microtokens = self
            .microtokens
            .saturating_add(u64::from(reservation.own_tokens) * MICROTOKENS_PER_TOKEN)
            .min(capacity(self.share));
    }

    /// Takes back admitted calls whose callers have gone.
    pub fn cancel_admissions(&mut self, calls: u32) {
        self.microtokens = self
            .microtokens
            .saturating_add(u64::from(calls) * MICROTOKENS_PER_TOKEN)
            .min(capacity(self.share));
        if self.limits.per_day > 0 {
            self.day.allowance += u64::from(calls);
        }
    }

    /// Returns whether this node holds a larger share than the store wants.
    pub fn exceeds_target(&self) -> bool {
        self.share > self.target
    }

    fn set_limits(&mut self, limits: Limits, view: &ClusterView) {
        if self.limits == limits {
            return;
        }
        // Up to now the bucket has gained by the former limits.
        self.refill(view);
        self.limits = limits;
        self.share = self.share.min(limits.rate.calls);
        let size = match (self.share_expires_at, self.outage_rate_since(view)) {
            (None, Some(_)) => self.outage_bucket_size(view),
            _ => capacity(self.share),
        };
        self.microtokens = self.microtokens.min(size);
        self.next_pool_request_at = None;
        self.day.allowance = self.day.allowance.min(limits.per_day);
        self.day.next_day_request_at = None;
    }

    /// Refills the bucket up to now: by the share until the end of its lease, then by the equal
    /// part that each node has while the store is unreachable.
    fn refill(&mut self, view: &ClusterView) {
        if let Some(until) = self.share_expires_at
            && until <= view.now
        {
            self.gain_until(until, self.share, 1, capacity(self.share));
            (self.share, self.share_expires_at) = (0, None);
            // While the store is unreachable, a single node keeps its tokens. Otherwise the store
            // may have granted the share to another node.
            if view.unreachable_since.is_none() || view.nodes > 1 {
                self.microtokens = 0;
            }
        }
        match (self.share_expires_at, self.outage_rate_since(view)) {
            (Some(_), _) => self.gain_until(view.now, self.share, 1, capacity(self.share)),
            (None, Some(since)) => {
                let limit = self.limits.rate.calls;
                let nodes = view.nodes.max(1);
                self.refilled_at = self.refilled_at.max(since.min(view.now));
                self.gain_until(view.now, limit, nodes, self.outage_bucket_size(view));
            }
            (None, None) => (self.microtokens, self.refilled_at) = (0, view.now),
        }
    }

    /// Adds the tokens gained up to `until`, at `rate / divisor` tokens per period, up to `size`
    /// millionths. The divisor is 1 for a share, and the number of nodes for the equal part.
    fn gain_until(&mut self, until: Instant, rate: u32, divisor: u32, size: u64) {
        let period = self.limits.rate.period;
        let elapsed = until
            .saturating_duration_since(self.refilled_at)
            .as_micros();
        let micros = u128::from(period.as_micros()) * u128::from(divisor);
        let gained =
            u64::try_from(elapsed * u128::from(rate) * u128::from(MICROTOKENS_PER_TOKEN) / micros)
                .unwrap_or(u64::MAX);
        self.microtokens = self.microtokens.saturating_add(gained).min(size);
        if self.microtokens == size {
            self.refilled_at = self.refilled_at.max(until);
        } else if gained > 0 {
            // Advances by the time of the whole millionths: the remainder counts with the next
            // gain.
            self.refilled_at += period
                .time_to_gain(gained, rate, divisor)
                .unwrap_or_default();
        }
    }

    /// Returns the instant from which the node uses an equal part of the rate in an outage of the
    /// store: one share lease after the store became unreachable, when all shares have expired. A
    /// single node uses the whole rate at once. The equal part of the day needs no such wait: see
    /// [`day_decision`](Self::day_decision).
    fn outage_rate_since(&self, view: &ClusterView) -> Option<Instant> {
        let since = view.unreachable_since.filter(|_| view.has_store_answered)?
            + if view.nodes > 1 {
                SHARE_LEASE
            } else {
                Duration::ZERO
            };
        (since <= view.now).then_some(since)
    }

    /// Returns the size of the bucket with this node's equal part of the rate in an outage, in
    /// millionths of a token.
    fn outage_bucket_size(&self, view: &ClusterView) -> u64 {
        let part = capacity(self.limits.rate.calls) / u64::from(view.nodes.max(1));
        part.max(MICROTOKENS_PER_TOKEN)
    }

    /// Returns whether the store has no token to give.
    fn pool_is_empty(&self, view: &ClusterView) -> bool {
        let holds_all = self.share > 0 && self.share == self.limits.rate.calls;
        view.unreachable_since.is_some()
            || holds_all
            || self.next_pool_request_at.is_some_and(|at| view.now < at)
    }

    /// Decides on a call by the limit per day. While the store is unreachable, this begins a new
    /// day at midnight, and the node has an equal part of the day. A node that never reached the
    /// store knows neither the calls that are left nor the number of nodes, and has no part.
    fn day_decision(&mut self, view: &ClusterView) -> DayDecision {
        if self.limits.per_day == 0 {
            return DayDecision::Admit;
        }
        let is_today = self.day.number == view.today;
        if is_today && self.day.allowance > 0 {
            return DayDecision::Admit;
        }
        if view.unreachable_since.is_some() {
            if !view.has_store_answered {
                return DayDecision::Refuse;
            }
            if !is_today {
                self.day = Day {
                    number: view.today,
                    ..Day::default()
                };
            }
            return match self.outage_left_of_day(view) {
                0 => DayDecision::Refuse,
                _ => DayDecision::Admit,
            };
        }
        let next_day_request_at = self.day.next_day_request_at.filter(|_| is_today);
        match next_day_request_at {
            Some(at) if view.now < at => DayDecision::Refuse,
            Some(_) | None => DayDecision::AskStore,
        }
    }

    fn take_of_day(&mut self, view: &ClusterView) {
        if self.limits.per_day == 0 {
            return;
        }
        if self.day.allowance > 0 {
            self.day.allowance -= 1;
        } else if view.unreachable_since.is_some() {
            self.day.outage_admitted += 1;
            self.day.outage_used += 1;
        }
    }

    /// Returns the calls of the day that were granted to no node, as far as this node knows.
    fn left_of_day(&self) -> u64 {
        self.limits.per_day.saturating_sub(self.day.granted)
    }

    /// Returns the calls that are left of this node's equal part of the day in an outage.
    fn outage_left_of_day(&self, view: &ClusterView) -> u64 {
        let part = self.left_of_day() / u64::from(view.nodes.max(1));
        part.saturating_sub(self.day.outage_admitted)
    }

    /// Returns the number of whole tokens of this node that pay for waiting calls.
    fn own_tokens(&self, waiting_calls: u32) -> u32 {
        u32::try_from(self.microtokens / MICROTOKENS_PER_TOKEN)
            .unwrap_or(u32::MAX)
            .min(waiting_calls)
    }

    /// Returns the share that recent calls need, with a reserve of a quarter.
    fn wanted(&self, view: &ClusterView) -> u32 {
        let calls = if view.nodes > 1 {
            self.demand
        } else {
            // This node may not know yet that it is not alone. The calls since the last tick count
            // then, because there may have been no tick with demand. The store gives a node that is
            // alone the whole limit, whatever it wants.
            self.demand.max(self.tick_calls)
        };
        if calls < MIN_SHARE_CALLS {
            0
        } else {
            calls
                .saturating_add(calls / 4 + 1)
                .min(self.limits.rate.calls)
        }
    }
}
