//! The ledger of one key: the part of its bucket that no node holds, the shares of the nodes, and
//! the calls of a day.
//!
//! The shares of the nodes and the share that no node holds (the pool) add up to the limit n.
//! Moving a share moves its tokens, and creates none. So all buckets together never hold more than
//! n tokens, gain n in a period, and let at most n × (t + 1) calls pass in t periods, however the
//! shares move. After the limit was lowered, the shares may exceed it until their holders ask
//! again. A node that is silent for [`SHARE_LEASE`] loses its share: its tokens are gone, and the
//! share refills.
//!
//! A day's calls are counted when they are granted, so that the allowance of a node that dies
//! counts as used.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};
use serde::{Deserialize, Serialize};

use crate::{
    DAY_MS, MICROTOKENS_PER_TOKEN, Period, Rate, SHARE_LEASE, ShareGrant, ShareRequest, capacity,
};

/// Divisor for the largest allowance of one node, which is (calls left of the day) / (256 x nodes).
/// The allowance is small, because that of a dead node is lost.
const ALLOWANCE_DIVISOR: u64 = 256;

/// Time by which exchanges may arrive out of order, in milliseconds. A larger step back means that
/// the clock was changed.
const CLOCK_SLACK_MS: i64 = 10_000;

/// Limits of one key as the store keeps them, in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Calls per period that are divided into the shares of the nodes and that of the pool.
    limit: u32,
    /// Period in which the bucket gains `limit` tokens.
    period: Period,
    /// Tokens of the pool at `refilled_at`, in millionths.
    #[serde(rename = "tokens")]
    microtokens: u64,
    /// Instant up to which the pool was refilled, by the store's clock, in milliseconds since 1970.
    #[serde(rename = "at")]
    refilled_at: i64,
    /// Remainder of the last refill, in (millionths of a token) / (microseconds of the period).
    #[serde(rename = "rest")]
    remainder: u64,
    leases: Vec<ShareLease>,
    /// Day, counted from 1970.
    day: i64,
    /// Calls of the day that are granted, also those that were not made yet.
    #[serde(rename = "spent")]
    granted_today: u64,
}

/// Share of one node, with the end of its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShareLease {
    node: NodeId,
    owner: BootId,
    share: u32,
    wanted: u32,
    until: i64,
}

/// The node that makes a request, and the instant.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    pub node: &'a NodeId,
    pub owner: &'a BootId,
    /// Time by the store's clock.
    pub now: Timestamp,
    /// Instant at which the owner was created, by the same clock.
    pub owner_created_at: Timestamp,
    /// Number of live nodes.
    pub nodes: u32,
}

impl Ledger {
    /// Returns the ledger of a key that was not used before: its bucket is full.
    pub fn new(rate: Rate, now: Timestamp) -> Self {
        let limit = rate.calls;
        let period = rate.period;
        Self {
            limit,
            period,
            microtokens: capacity(limit),
            refilled_at: now.as_millis(),
            ..Self::default()
        }
    }

    /// Reads a ledger from the JSON that the store has, or creates one for an empty text. A text
    /// that cannot be read is logged, and gives a ledger with an empty bucket.
    pub fn from_json(text: &str, rate: Rate, now: Timestamp) -> Self {
        if text.is_empty() {
            return Self::new(rate, now);
        }
        serde_json::from_str(text).unwrap_or_else(|error| {
            tracing::error!(
                %error,
                "rate-limit state of a key unreadable, resetting",
            );
            Self {
                microtokens: 0,
                ..Self::new(rate, now)
            }
        })
    }

    /// Returns the ledger as JSON, for the store.
    pub fn to_json(&self) -> String {
        // Numbers, texts and lists of them always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Applies a request, and returns the grant: waiting calls that are admitted, a share, and an
    /// allowance of the day.
    pub fn exchange(&mut self, request: &ShareRequest, requester: Requester<'_>) -> ShareGrant {
        let now = self.advance_to_now(requester);
        self.change_limit(request.rate);
        self.apply_returns(request, requester.owner);
        let day_left = self.update_day_usage(request, now);
        let own_tokens = u64::from(request.own_tokens);
        let by_tokens = if request.rate.calls == 0 {
            u64::MAX
        } else {
            self.microtokens / MICROTOKENS_PER_TOKEN + own_tokens
        };
        let admitted = u64::from(request.waiting_calls)
            .min(by_tokens)
            .min(day_left.unwrap_or(u64::MAX));
        if request.rate.calls > 0 {
            self.microtokens -= admitted.saturating_sub(own_tokens) * MICROTOKENS_PER_TOKEN;
        }
        let (share, microtokens, target) = self.grant_share(request, requester, now);
        let allowance = day_left.map_or(0, |left| {
            let left = left - admitted;
            let allowance = request
                .day_wanted
                .min(left / (ALLOWANCE_DIVISOR * u64::from(requester.nodes.max(1))));
            self.granted_today = self.granted_today.saturating_add(admitted + allowance);
            allowance
        });
        ShareGrant {
            admitted: u32::try_from(admitted).unwrap_or(u32::MAX),
            share,
            microtokens,
            target,
            day: self.day,
            allowance,
            day_left: day_left.map_or(0, |left| left - admitted - allowance),
            pool_microtokens: self.microtokens,
            time_to_next_token: self.time_to_next_token(),
        }
    }

    /// Refills the pool up to now, and ends the leases that have expired. Returns the present
    /// instant.
    fn advance_to_now(&mut self, requester: Requester<'_>) -> i64 {
        let now = requester.now.as_millis();
        let now = if now < self.refilled_at && self.refilled_at - now <= CLOCK_SLACK_MS {
            self.refilled_at
        } else {
            now
        };
        self.refilled_at = self.refilled_at.min(now);
        // Leases that were granted before the clock went back last no longer than others.
        let latest = lease_end(now);
        for lease in &mut self.leases {
            lease.until = lease.until.min(latest);
        }
        self.leases.sort_by_key(|lease| lease.until);
        let (ended, active): (Vec<_>, Vec<_>) = std::mem::take(&mut self.leases)
            .into_iter()
            .partition(|lease| {
                let replaced = lease.node == *requester.node && lease.owner != *requester.owner;
                lease.until <= now || replaced
            });
        self.leases = active;
        let mut held: u32 = ended.iter().map(|lease| lease.share).sum();
        for lease in ended {
            let replaced = lease.node == *requester.node && lease.owner != *requester.owner;
            let until = if replaced {
                requester.owner_created_at.as_millis()
            } else {
                now
            };
            self.refill(lease.until.min(until).min(now), held);
            held -= lease.share;
        }
        self.refill(now, 0);
        now
    }

    /// Refills the pool up to `until`. Up to then, leases that have ended since were still valid.
    /// `held` is the sum of their shares; tokens gained by these belong to the holders.
    fn refill(&mut self, until: i64, held: u32) {
        let elapsed = u64::try_from(until - self.refilled_at).unwrap_or(0);
        let share = self.unheld_share().saturating_sub(held);
        let all =
            u128::from(elapsed) * u128::from(share) * u128::from(MICROTOKENS_PER_TOKEN) * 1_000
                + u128::from(self.remainder);
        let period = u128::from(self.period.as_micros());
        let gained = u64::try_from(all / period).unwrap_or(u64::MAX);
        self.remainder = u64::try_from(all % period).unwrap_or(0);
        // The pool never has more tokens than its size.
        self.microtokens = self.microtokens.saturating_add(gained).min(capacity(share));
        self.refilled_at = self.refilled_at.max(until);
    }

    /// Returns the share of the pool: the limit less the shares of the nodes.
    fn unheld_share(&self) -> u32 {
        let held = self
            .leases
            .iter()
            .fold(0_u32, |held, lease| held.saturating_add(lease.share));
        self.limit.saturating_sub(held)
    }

    /// Changes the limit. Shares beyond a lower limit return with the next requests of their
    /// holders.
    fn change_limit(&mut self, rate: Rate) {
        if self.period != rate.period {
            (self.period, self.remainder) = (rate.period, 0);
        }
        self.limit = rate.calls;
        self.microtokens = self.microtokens.min(capacity(self.unheld_share()));
    }

    fn apply_returns(&mut self, request: &ShareRequest, owner: &BootId) {
        let Some(lease) = self.leases.iter_mut().find(|lease| lease.owner == *owner) else {
            return;
        };
        lease.share = lease.share.min(request.held);
        if request.wanted.is_none() {
            self.leases.retain(|lease| lease.owner != *owner);
        }
        self.microtokens = self
            .microtokens
            .saturating_add(request.returned_microtokens)
            .min(capacity(self.unheld_share()));
    }

    /// Counts the calls of the day that the node returns or owes, in a new day when one has begun.
    /// Returns the calls that are left of the day; `None` without a limit per day.
    fn update_day_usage(&mut self, request: &ShareRequest, now: i64) -> Option<u64> {
        let today = now.div_euclid(DAY_MS);
        if self.day != today {
            (self.day, self.granted_today) = (today, 0);
        }
        if request.day == today {
            self.granted_today = self
                .granted_today
                .saturating_sub(request.day_returned)
                .saturating_add(request.day_owed);
        }
        (request.per_day > 0).then(|| request.per_day.saturating_sub(self.granted_today))
    }

    /// Sets the share of the requester by the demand of all nodes. Returns the share, the tokens
    /// that come with its growth, and the share that the requester should hold.
    fn grant_share(
        &mut self,
        request: &ShareRequest,
        requester: Requester<'_>,
        now: i64,
    ) -> (u32, u64, u32) {
        let Some(wanted) = request.wanted.filter(|_| self.limit > 0) else {
            return (0, 0, 0);
        };
        let wanted = if requester.nodes <= 1 {
            self.limit
        } else {
            wanted.min(self.limit)
        };
        let others = self
            .leases
            .iter()
            .filter(|lease| lease.owner != *requester.owner);
        let all = u64::from(wanted)
            + others
                .map(|lease| u64::from(lease.wanted.min(self.limit)))
                .sum::<u64>();
        let target = match u64::from(self.limit) {
            // A lease that is left is that of a node which has gone.
            _ if requester.nodes <= 1 => wanted,
            limit if all <= limit => wanted,
            limit => u32::try_from(limit * u64::from(wanted) / all).unwrap_or(wanted),
        };
        let held = self
            .leases
            .iter()
            .find(|lease| lease.owner == *requester.owner)
            .map_or(0, |lease| lease.share);
        // A first share is at most an equal part, so that other nodes that ask for the first time
        // find a share too.
        let max_share = if held == 0 {
            self.limit / requester.nodes.max(1)
        } else {
            self.limit
        };
        let unheld = self.unheld_share();
        let added = target.min(max_share).saturating_sub(held).min(unheld);
        let tokens = match unheld {
            0 => 0,
            unheld if unheld == added => self.microtokens,
            // Only whole tokens are moved: half a token here and half a token in the pool could not
            // admit a call.
            unheld => {
                self.microtokens / MICROTOKENS_PER_TOKEN * u64::from(added) / u64::from(unheld)
                    * MICROTOKENS_PER_TOKEN
            }
        };
        let share = held + added;
        self.microtokens -= tokens;
        self.leases.retain(|lease| lease.owner != *requester.owner);
        if share > 0 || wanted > 0 {
            let until = lease_end(now);
            let node = requester.node.clone();
            let owner = requester.owner.clone();
            self.leases.push(ShareLease {
                node,
                owner,
                share,
                wanted,
                until,
            });
        }
        (share, tokens, target)
    }

    /// Returns the time until the pool has a whole token.
    fn time_to_next_token(&self) -> Option<Duration> {
        let missing = MICROTOKENS_PER_TOKEN.saturating_sub(self.microtokens);
        let left = self.period.time_to_gain(missing, self.unheld_share(), 1)?;
        // The store's clock counts milliseconds.
        Some(Duration::from_millis(
            u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
        ))
    }
}

/// Returns the end of a lease that is granted at `now`.
fn lease_end(now: i64) -> i64 {
    now.saturating_add(i64::try_from(SHARE_LEASE.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
