//! What this node knows of one key's limits, and what it decides by that alone: values in, values
//! out, at an instant that the caller names. A share of the key's bucket lies here, and calls of
//! the day that may be let in; where they do not suffice, the store is asked, and while it is away,
//! the key's share by the number of nodes is used.

mod telling;

use std::time::Duration;

use kanat_message_log::quota::{Key, LEASE, Rate, TOKEN};
use kanat_message_log::{Ask, Gain};
use kanat_model::Timestamp;
use tokio::time::Instant;

use super::standing::{Limited, Standing};
use super::view::View;

/// Fewer calls between two beats are not worth a share: each asks the store, and all nodes use one
/// bucket.
const FEW: u32 = 4;

/// A store that has nothing is not asked again before this time, nor later than after the other; of
/// a rate with a longer period than a second, not later than after an eighth of it.
const SHUT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// A store whose day is over is not asked again before this time.
const DAY_SHUT: Duration = Duration::from_secs(1);

/// After so many beats without a call everything is given back.
const IDLE_BEATS: u32 = 2;

/// Limits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub rate: Rate,
    /// 0 for none.
    pub per_day: u64,
}

impl Limits {
    /// Calls a second and a day; 0 for no limit.
    pub fn of_key(per_second: u32, per_day: u64) -> Self {
        Self {
            rate: Rate::per_second(per_second),
            per_day,
        }
    }
}

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Admit(Standing),
    Refuse(Limited),
    /// It is for the store to say.
    Ask,
}

/// What a key has here.
#[derive(Debug)]
pub(super) struct Bucket {
    limits: Limits,
    /// The part of the bucket that is ours until an instant, in calls per second.
    share: u32,
    until: Option<Instant>,
    /// What there is of it, in millionths, as of an instant.
    tokens: u64,
    at: Instant,
    /// The share that we should have, as the store said last.
    target: u32,
    /// What was left to all, in millionths, as the store said last.
    pool: u64,
    /// The store has no token before.
    shut_until: Option<Instant>,
    day: Day,
    /// Calls since the last beat, and between the two beats before.
    calls: u32,
    demand: u32,
    /// The most of them that waited for their turn at once.
    waiting: u32,
    idle_beats: u32,
    /// Calls let in that the store was not told of, and when the last of them was.
    used: u64,
    last_used_at: Option<Timestamp>,
}

/// What is known of a day.
#[derive(Debug, Clone, Copy, Default)]
struct Day {
    number: i64,
    /// Calls that may be let in without asking, and how many were given last.
    allowance: u64,
    given: u64,
    /// Calls let in since.
    taken: u64,
    /// Calls that were left to all, as the store said last.
    left: u64,
    /// The store has none before.
    shut_until: Option<Instant>,
    /// While the store is away: calls that may still be let in, and that were.
    alone: Option<u64>,
    owed: u64,
}

/// What an ask took out of the bucket: it comes back when the ask came to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    /// Calls that wait for the answer.
    pub calls: u32,
    /// Tokens among what is asked that are our own.
    own: u32,
}

impl Bucket {
    pub fn new(limits: Limits, now: Instant) -> Self {
        Self {
            limits,
            share: 0,
            until: None,
            tokens: 0,
            at: now,
            target: 0,
            pool: 0,
            shut_until: None,
            day: Day::default(),
            calls: 0,
            demand: 0,
            waiting: 0,
            idle_beats: 0,
            used: 0,
            last_used_at: None,
        }
    }

    /// The same with all that the limits allow in it.
    pub fn full(limits: Limits, now: Instant) -> Self {
        Self {
            tokens: full(limits.rate.calls),
            ..Self::new(limits, now)
        }
    }

    /// A call comes, or one that waits for its turn comes again, with so many behind it.
    pub fn call(&mut self, limits: Limits, behind: u32, view: &View) -> Decision {
        self.calls = self.calls.saturating_add(1);
        self.waiting = self.waiting.max(behind);
        self.idle_beats = 0;
        self.set_limits(limits, view);
        self.decide(view)
    }

    /// Lets a call in, or not, by what is here.
    pub fn decide(&mut self, view: &View) -> Decision {
        self.refill(view);
        let has_token = self.limits.rate.calls == 0 || self.tokens >= TOKEN;
        match self.day_has_room(view) {
            Some(false) => return Decision::Refuse(self.over(view)),
            Some(true) | None if !has_token && self.is_dry(view) => {
                return Decision::Refuse(self.limited(view));
            }
            Some(true) if has_token => {}
            Some(true) | None => return Decision::Ask,
        }
        if self.limits.rate.calls > 0 {
            self.tokens -= TOKEN;
        }
        self.take_of_day(view);
        Decision::Admit(self.admitted(view))
    }

    /// A call is let in that was paid for otherwise.
    pub fn admitted(&mut self, view: &View) -> Standing {
        self.used += 1;
        self.day.taken += 1;
        self.last_used_at = Some(view.wall);
        self.standing(view)
    }

    /// What a call is told that the store refused.
    pub fn refused(&mut self, view: &View) -> Limited {
        if self.day_has_room(view) == Some(false) {
            self.over(view)
        } else {
            self.limited(view)
        }
    }

    /// Whether the store should be asked soon, so that calls to come need not wait.
    pub fn runs_low(&self) -> bool {
        self.limits.per_day > 0 && self.day.given > 0 && self.day.allowance <= self.day.given / 2
    }

    /// A beat of the node: how much is called is counted anew. Says whether the store is to be told
    /// something.
    pub fn beat(&mut self) -> bool {
        self.idle_beats = if self.calls == 0 {
            self.idle_beats.saturating_add(1)
        } else {
            0
        };
        self.demand = self.calls.saturating_add(self.waiting).max(self.demand / 8);
        (self.calls, self.waiting) = (0, 0);
        self.used > 0
            || self.share > 0
            || self.day.allowance > 0
            || self.day.owed > 0
            || self.demand >= FEW
    }

    /// Whether nobody calls a bucket that no store knows of, and all is in it: a new one is as
    /// good.
    pub fn is_full(&mut self, view: &View) -> bool {
        self.refill(view);
        self.idle_beats >= IDLE_BEATS && self.tokens >= full(self.limits.rate.calls)
    }

    /// Whether nobody calls, and nothing is here that the store must hear of.
    pub fn is_idle(&self) -> bool {
        let has_nothing = self.share == 0 && self.day.allowance == 0 && self.day.owed == 0;
        self.idle_beats >= IDLE_BEATS && self.used == 0 && has_nothing
    }

    /// What is told and asked for, with so many calls waiting. With `leaving`, all is given back.
    pub fn ask(&mut self, key: Key, calls: u32, leaving: bool, view: &View) -> (Ask, Asked) {
        self.refill(view);
        let leaving = leaving || (self.idle_beats >= IDLE_BEATS && calls == 0);
        let own = self.own(calls);
        self.tokens -= u64::from(own) * TOKEN;
        let wanted = self.wanted(view);
        self.share = match view.nodes {
            _ if leaving => 0,
            0 | 1 => self.share,
            _ => self.share.min(self.target).min(wanted),
        };
        let tokens_back = self.tokens.saturating_sub(full(self.share));
        self.tokens -= tokens_back;
        let day = self.day;
        let is_today = day.number == view.today;
        let day_back = if leaving {
            day.allowance
        } else {
            day.allowance.min(u64::from(calls))
        };
        self.day.allowance = if is_today {
            day.allowance - day_back
        } else {
            0
        };
        let day_wanted = day
            .taken
            .saturating_mul(4)
            .max(u64::from(self.demand))
            .saturating_sub(self.day.allowance);
        (self.day.taken, self.day.owed) = (0, 0);
        let ask = Ask {
            key,
            rate: self.limits.rate,
            per_day: self.limits.per_day,
            calls,
            own,
            held: self.share,
            tokens_back,
            wanted: (!leaving).then_some(wanted),
            day: day.number,
            day_back: if is_today { day_back } else { 0 },
            day_owed: day.owed,
            day_wanted: if leaving { 0 } else { day_wanted },
            used: std::mem::take(&mut self.used),
            last_used_at: self.last_used_at,
        };
        (ask, Asked { calls, own })
    }

    /// What the store gave to an ask that was sent at an instant. Calls that it let in are the
    /// caller's to give out.
    pub fn gain(&mut self, gain: &Gain, asked: Asked, sent: Instant, view: &View) {
        self.refill(view);
        self.share = gain.share.min(self.limits.rate.calls);
        let unused = asked.own.saturating_sub(gain.admitted);
        let tokens = self
            .tokens
            .saturating_add(gain.tokens)
            .saturating_add(u64::from(unused) * TOKEN);
        self.tokens = tokens.min(full(self.share));
        self.until = (self.share > 0).then(|| sent + LEASE);
        (self.target, self.pool) = (gain.target, gain.pool);
        if self.day.number != gain.day {
            self.day = Day {
                number: gain.day,
                ..Day::default()
            };
        }
        self.day.allowance += gain.allowance;
        self.day.given = gain.allowance;
        (self.day.left, self.day.alone) = (gain.day_left, None);
        // Other nodes may give some back.
        self.day.shut_until = (gain.day_left == 0).then(|| view.now + DAY_SHUT);
        let most = SHUT.1.max(self.limits.rate.period.as_duration() / 8);
        let pause = gain.next_token.unwrap_or(SHUT.1).clamp(SHUT.0, most);
        self.shut_until = (gain.admitted < asked.calls).then(|| view.now + pause);
    }

    /// The ask had been heard before, and what it gave is lost.
    pub fn lost(&mut self, asked: Asked) {
        self.tokens = self
            .tokens
            .saturating_add(u64::from(asked.own) * TOKEN)
            .min(full(self.share));
    }

    /// Calls were let in that nobody waits for any more.
    pub fn returned(&mut self, calls: u32) {
        self.tokens = self
            .tokens
            .saturating_add(u64::from(calls) * TOKEN)
            .min(full(self.share));
        if self.limits.per_day > 0 {
            self.day.allowance += u64::from(calls);
        }
    }

    /// Whether the store said that this node has more than it should.
    pub fn is_to_give_back(&self) -> bool {
        self.share > self.target
    }

    fn set_limits(&mut self, limits: Limits, view: &View) {
        if self.limits == limits {
            return;
        }
        // What came in until now came by the old ones.
        self.refill(view);
        self.limits = limits;
        self.share = self.share.min(limits.rate.calls);
        self.tokens = self.tokens.min(full(self.share));
        self.shut_until = None;
        self.day.allowance = self.day.allowance.min(limits.per_day);
        (self.day.shut_until, self.day.alone) = (None, None);
    }

    /// Brings what there is up to now: by the share as long as it is ours, then by what each node
    /// has without a store.
    fn refill(&mut self, view: &View) {
        if let Some(until) = self.until
            && until <= view.now
        {
            self.gain_until(until, self.share, 1, full(self.share));
            (self.share, self.until) = (0, None);
            // A node alone goes on with what it had; of several, another may have been given it.
            if view.away.is_none() || view.nodes > 1 {
                self.tokens = 0;
            }
        }
        match (self.until, self.alone_since(view)) {
            (Some(_), _) => self.gain_until(view.now, self.share, 1, full(self.share)),
            (None, Some(since)) => {
                let limit = self.limits.rate.calls;
                let nodes = view.nodes.max(1);
                self.at = self.at.max(since.min(view.now));
                self.gain_until(
                    view.now,
                    limit,
                    nodes,
                    (full(limit) / u64::from(nodes)).max(TOKEN),
                );
            }
            (None, None) => (self.tokens, self.at) = (0, view.now),
        }
    }

    /// So many tokens come in so many periods.
    fn gain_until(&mut self, until: Instant, tokens: u32, periods: u32, size: u64) {
        let period = self.limits.rate.period;
        let elapsed = until.saturating_duration_since(self.at).as_micros();
        let micros = u128::from(period.as_micros()) * u128::from(periods);
        let gained = u64::try_from(elapsed * u128::from(tokens) * u128::from(TOKEN) / micros)
            .unwrap_or(u64::MAX);
        self.tokens = self.tokens.saturating_add(gained).min(size);
        if self.tokens == size {
            self.at = self.at.max(until);
        } else if gained > 0 {
            // What is less than a millionth is counted with the next.
            self.at += period.until(gained, tokens, periods).unwrap_or_default();
        }
    }

    /// Since when the node goes by its own part: from when on no other can hold a share that was
    /// given before.
    fn alone_since(&self, view: &View) -> Option<Instant> {
        let since = view.away.filter(|_| view.heard)?
            + if view.nodes > 1 {
                LEASE
            } else {
                Duration::ZERO
            };
        (since <= view.now).then_some(since)
    }

    /// Whether no token is to be had by asking.
    fn is_dry(&self, view: &View) -> bool {
        let holds_all = self.share > 0 && self.share == self.limits.rate.calls;
        view.away.is_some() || holds_all || self.shut_until.is_some_and(|until| view.now < until)
    }

    /// Whether the day has a call left here; `None` when the store has to say.
    fn day_has_room(&mut self, view: &View) -> Option<bool> {
        if self.limits.per_day == 0 {
            return Some(true);
        }
        let is_today = self.day.number == view.today;
        if is_today && self.day.allowance > 0 {
            return Some(true);
        }
        if view.away.is_some() {
            let left = if is_today {
                self.day.left
            } else {
                self.limits.per_day
            };
            if !is_today {
                self.day = Day {
                    number: view.today,
                    ..Day::default()
                };
            }
            return Some(
                *self
                    .day
                    .alone
                    .get_or_insert(left / u64::from(view.nodes.max(1)))
                    > 0,
            );
        }
        (is_today && self.day.shut_until.is_some_and(|until| view.now < until)).then_some(false)
    }

    fn take_of_day(&mut self, view: &View) {
        if self.limits.per_day == 0 {
            return;
        }
        if self.day.allowance > 0 {
            self.day.allowance -= 1;
        } else if let Some(left) = self.day.alone.as_mut().filter(|_| view.away.is_some()) {
            *left -= 1;
            self.day.owed += 1;
        }
    }

    /// Tokens of ours that calls which wait bring along.
    fn own(&self, calls: u32) -> u32 {
        u32::try_from(self.tokens / TOKEN)
            .unwrap_or(u32::MAX)
            .min(calls)
    }

    /// The share that the calls of late would need, with some to spare.
    fn wanted(&self, view: &View) -> u32 {
        let calls = self.demand.max(if view.nodes > 1 { 0 } else { self.calls });
        if calls < FEW {
            0
        } else {
            calls
                .saturating_add(calls / 4 + 1)
                .min(self.limits.rate.calls)
        }
    }
}

fn full(share: u32) -> u64 {
    u64::from(share) * TOKEN
}
