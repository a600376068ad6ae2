//! How the limits of one key hold over all nodes, as a pure function of what was known and what is
//! asked.
//!
//! A limit of n calls per second is a bucket of n tokens that gains n in a second. It is divided
//! into shares of whole tokens: a node that holds a share of k has a bucket of k tokens that gains
//! k in a second, and the store keeps what nobody holds, by the same rule. Shares always add up to
//! n, and a token changes hands but is never made by it. So all buckets together never hold more
//! than n, gain n in a second, and let at most n × (t + 1) calls pass in t seconds, however the
//! shares move. Limits that are no whole number have another period than a second, and are the same
//! else. Who is silent for [`LEASE`] holds nothing any more; its tokens are gone, its share
//! refills.
//!
//! A day's calls are counted when they are given out, so that those of a node that dies count as
//! made.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};
use serde::{Deserialize, Serialize};

use super::{Ask, Gain, LEASE, Period, Rate, TOKEN};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Of what is left of a day, each node is given this part beforehand at most, because what a dead
/// node had is lost.
const DAY_PART: u64 = 256;

/// Exchanges overtake each other by less than this; a clock that is further back was set.
const CLOCK_SLACK_MS: i64 = 10_000;

/// What is known of one key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// The limit that the shares add up to, and the period in which as much comes in.
    limit: u32,
    period: Period,
    /// What nobody holds, in millionths, as of `at` by the store's clock.
    tokens: u64,
    at: i64,
    /// What came in beyond whole millionths, in parts of the period.
    rest: u64,
    leases: Vec<Lease>,
    /// The day, counted from 1970, and how many of its calls are given out.
    day: i64,
    spent: u64,
}

/// What one node holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    node: NodeId,
    owner: BootId,
    share: u32,
    wanted: u32,
    until: i64,
}

/// Who asks, and when.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    pub node: &'a NodeId,
    pub owner: &'a BootId,
    /// By the store's clock.
    pub now: Timestamp,
    /// When the boot began, by the same clock.
    pub begun: Timestamp,
    /// Nodes that live.
    pub nodes: u32,
}

impl Ledger {
    /// A key that was not used before: its bucket is full.
    pub fn new(rate: Rate, now: Timestamp) -> Self {
        let limit = rate.calls;
        let period = rate.period;
        Self {
            limit,
            period,
            tokens: full(limit),
            at: now.as_millis(),
            ..Self::default()
        }
    }

    /// The ledger that a store has kept; a new one when it has none. One that cannot be read begins
    /// with nothing.
    pub fn read(text: &str, rate: Rate, now: Timestamp) -> Self {
        if text.is_empty() {
            return Self::new(rate, now);
        }
        serde_json::from_str(text).unwrap_or_else(|error| {
            tracing::error!(
                %error,
                "what is known of a key's limits cannot be read, and begins anew",
            );
            Self {
                tokens: 0,
                ..Self::new(rate, now)
            }
        })
    }

    /// As it is kept.
    pub fn write(&self) -> String {
        // Numbers, texts and lists of them always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Gives and takes.
    pub fn exchange(&mut self, ask: &Ask, asker: Asker<'_>) -> Gain {
        let now = self.roll(asker);
        self.change_limit(ask.rate);
        self.take_back(ask, asker.owner);
        let day_left = self.day_left(ask, now);
        let own = u64::from(ask.own);
        let by_tokens = if ask.rate.calls == 0 {
            u64::MAX
        } else {
            self.tokens / TOKEN + own
        };
        let admitted = u64::from(ask.calls)
            .min(by_tokens)
            .min(day_left.unwrap_or(u64::MAX));
        if ask.rate.calls > 0 {
            self.tokens -= admitted.saturating_sub(own) * TOKEN;
        }
        let (share, tokens, target) = self.divide(ask, asker, now);
        let allowance = day_left.map_or(0, |left| {
            let left = left - admitted;
            let allowance = ask
                .day_wanted
                .min(left / (DAY_PART * u64::from(asker.nodes.max(1))));
            self.spent = self.spent.saturating_add(admitted + allowance);
            allowance
        });
        Gain {
            admitted: u32::try_from(admitted).unwrap_or(u32::MAX),
            share,
            tokens,
            target,
            day: self.day,
            allowance,
            day_left: day_left.map_or(0, |left| left - admitted - allowance),
            pool: self.tokens,
            next_token: self.next_token(),
        }
    }

    /// Brings the pool up to now, and ends the leases that ran out on the way. Gives the instant
    /// that it is.
    fn roll(&mut self, asker: Asker<'_>) -> i64 {
        let now = asker.now.as_millis();
        let now = if now < self.at && self.at - now <= CLOCK_SLACK_MS {
            self.at
        } else {
            now
        };
        self.at = self.at.min(now);
        self.leases.sort_by_key(|lease| lease.until);
        let (ended, going): (Vec<_>, Vec<_>) = std::mem::take(&mut self.leases)
            .into_iter()
            .partition(|lease| {
                let replaced = lease.node == *asker.node && lease.owner != *asker.owner;
                lease.until <= now || replaced
            });
        self.leases = going;
        let mut held: u32 = ended.iter().map(|lease| lease.share).sum();
        for lease in ended {
            let replaced = lease.node == *asker.node && lease.owner != *asker.owner;
            let until = if replaced {
                asker.begun.as_millis()
            } else {
                now
            };
            self.refill(lease.until.min(until).min(now), held);
            held -= lease.share;
        }
        self.refill(now, 0);
        now
    }

    /// What nobody holds, but for the shares of some whose leases have not been ended yet, gains
    /// until an instant.
    fn refill(&mut self, until: i64, held: u32) {
        let elapsed = u64::try_from(until - self.at).unwrap_or(0);
        let pool = self.pool().saturating_sub(held);
        let all = u128::from(elapsed) * u128::from(pool) * u128::from(TOKEN) * 1_000
            + u128::from(self.rest);
        let period = u128::from(self.period.as_micros());
        let gained = u64::try_from(all / period).unwrap_or(u64::MAX);
        self.rest = u64::try_from(all % period).unwrap_or(0);
        // What it has beyond its size it never had a right to.
        self.tokens = self.tokens.saturating_add(gained).min(full(pool));
        self.at = self.at.max(until);
    }

    fn pool(&self) -> u32 {
        let held = self
            .leases
            .iter()
            .fold(0_u32, |held, lease| held.saturating_add(lease.share));
        self.limit.saturating_sub(held)
    }

    /// Shares beyond a lower limit come back with the next word of their holders.
    fn change_limit(&mut self, rate: Rate) {
        if self.period != rate.period {
            (self.period, self.rest) = (rate.period, 0);
        }
        self.limit = rate.calls;
        self.tokens = self.tokens.min(full(self.pool()));
    }

    fn take_back(&mut self, ask: &Ask, owner: &BootId) {
        let Some(lease) = self.leases.iter_mut().find(|lease| lease.owner == *owner) else {
            return;
        };
        lease.share = lease.share.min(ask.held);
        if ask.wanted.is_none() {
            self.leases.retain(|lease| lease.owner != *owner);
        }
        self.tokens = self
            .tokens
            .saturating_add(ask.tokens_back)
            .min(full(self.pool()));
    }

    /// Calls of the day that are left; `None` when days are not limited.
    fn day_left(&mut self, ask: &Ask, now: i64) -> Option<u64> {
        let today = now.div_euclid(DAY_MS);
        if self.day != today {
            (self.day, self.spent) = (today, 0);
        }
        if ask.day == today {
            self.spent = self
                .spent
                .saturating_sub(ask.day_back)
                .saturating_add(ask.day_owed);
        }
        (ask.per_day > 0).then(|| ask.per_day.saturating_sub(self.spent))
    }

    /// The share of the asker: what it holds from now on, the tokens that it gains with it, and
    /// what it should hold.
    fn divide(&mut self, ask: &Ask, asker: Asker<'_>, now: i64) -> (u32, u64, u32) {
        let Some(wanted) = ask.wanted.filter(|_| self.limit > 0) else {
            return (0, 0, 0);
        };
        let wanted = if asker.nodes <= 1 {
            self.limit
        } else {
            wanted.min(self.limit)
        };
        let others = self
            .leases
            .iter()
            .filter(|lease| lease.owner != *asker.owner);
        let all = u64::from(wanted)
            + others
                .map(|lease| u64::from(lease.wanted.min(self.limit)))
                .sum::<u64>();
        let target = match u64::from(self.limit) {
            limit if all <= limit => wanted,
            limit => u32::try_from(limit * u64::from(wanted) / all).unwrap_or(wanted),
        };
        let held = self
            .leases
            .iter()
            .find(|lease| lease.owner == *asker.owner)
            .map_or(0, |lease| lease.share);
        // Others may be about to ask for the first time as well.
        let first = if held == 0 {
            self.limit / asker.nodes.max(1)
        } else {
            self.limit
        };
        let pool = self.pool();
        let added = target.min(first).saturating_sub(held).min(pool);
        let tokens = match pool {
            0 => 0,
            pool if pool == added => self.tokens,
            // Whole ones: two halves would let nobody in.
            pool => self.tokens / TOKEN * u64::from(added) / u64::from(pool) * TOKEN,
        };
        let share = held + added;
        self.tokens -= tokens;
        self.leases.retain(|lease| lease.owner != *asker.owner);
        if share > 0 || wanted > 0 {
            let until = now.saturating_add(i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX));
            let node = asker.node.clone();
            let owner = asker.owner.clone();
            self.leases.push(Lease {
                node,
                owner,
                share,
                wanted,
                until,
            });
        }
        (share, tokens, target)
    }

    fn next_token(&self) -> Option<Duration> {
        let missing = TOKEN.saturating_sub(self.tokens);
        let left = self.period.until(missing, self.pool(), 1)?;
        // The clock here has no finer steps.
        Some(Duration::from_millis(
            u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
        ))
    }
}

fn full(share: u32) -> u64 {
    u64::from(share) * TOKEN
}

#[cfg(test)]
mod tests;
