//! A bound on the wrong keys of an address. Beyond it a key is only looked up in a set of all key
//! hashes, which is read at most four times a second: a right key is let through, and a flood of
//! wrong ones costs the store next to nothing.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kanat_model::Error;
use kanat_store::{Store, api_key};
use kanat_telemetry::metrics;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Wrong keys of one address that are judged one by one within 3 s.
const MAX_JUDGED: u32 = 2_000;
/// Wrong keys are counted in slots of this length.
const SLOT: Duration = Duration::from_millis(500);
/// Slots that touch any 3 s.
const SLOTS: usize = 7;
/// Addresses that are counted at once. Keys of others are only looked up in the set of all.
const MAX_ADDRESSES: usize = 10_000;
/// Time for which the hashes of all keys are kept.
const RELOAD_INTERVAL: Duration = Duration::from_millis(250);
/// Least time between two warnings in the log.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The wrong keys of all addresses.
#[derive(Clone)]
pub struct WrongKeys(Arc<State>);

struct State {
    since: Instant,
    counted: Mutex<Counters>,
    known: tokio::sync::Mutex<KnownKeys>,
}

#[derive(Default)]
struct Counters {
    addresses: HashMap<IpAddr, SlidingWindow>,
    warned_at: Option<Instant>,
    /// The slot in which those that count no more were last forgotten.
    swept_in: Option<u64>,
}

/// Wrong keys of one address by the slots in which they came.
#[derive(Default)]
struct SlidingWindow {
    /// The newest slot.
    slot: u64,
    counts: [u32; SLOTS],
}

/// Hashes of all keys that were not revoked when they were read.
#[derive(Default)]
struct KnownKeys {
    read_at: Option<Instant>,
    hashes: HashSet<[u8; 32]>,
}

/// A key that is being judged. It counts as wrong until it is known to be right.
pub struct PendingCheck {
    keys: WrongKeys,
    address: IpAddr,
    slot: u64,
}

impl Default for WrongKeys {
    fn default() -> Self {
        Self(Arc::new(State {
            since: Instant::now(),
            counted: Mutex::default(),
            known: tokio::sync::Mutex::default(),
        }))
    }
}

impl WrongKeys {
    /// Begins to judge a key of `address`; none when too many of its keys were wrong.
    pub fn begin(&self, address: IpAddr) -> Option<PendingCheck> {
        let slot = self.slot();
        let mut counted = self.0.counted.lock();
        if !counted.addresses.contains_key(&address) && counted.addresses.len() >= MAX_ADDRESSES {
            // Once a slot: it looks at all of them.
            if counted.swept_in != Some(slot) {
                counted.swept_in = Some(slot);
                counted.addresses.retain(|_, window| window.at(slot) > 0);
            }
            if counted.addresses.len() >= MAX_ADDRESSES {
                return None;
            }
        }
        let window = counted.addresses.entry(address).or_default();
        if window.at(slot) >= MAX_JUDGED {
            return None;
        }
        window.counts[SLOTS - 1] += 1;
        Some(PendingCheck {
            keys: self.clone(),
            address,
            slot,
        })
    }

    /// Returns whether there was a key of this hash when this was asked, or a moment before.
    pub async fn is_known(&self, store: &Store, sha256: &[u8; 32]) -> Result<bool, Error> {
        let asked_at = Instant::now();
        let mut known = self.0.known.lock().await;
        if known.hashes.contains(sha256) {
            return Ok(true);
        }
        if known.read_at.is_none_or(|read_at| read_at < asked_at) {
            if let Some(read_at) = known.read_at {
                tokio::time::sleep_until(read_at + RELOAD_INTERVAL).await;
            }
            let read_at = Instant::now();
            known.hashes = api_key::hashes(&mut *store.read().await?)
                .await?
                .into_iter()
                .collect();
            known.read_at = Some(read_at);
        }
        Ok(known.hashes.contains(sha256))
    }

    /// Notes that a key of `address` was refused because too many were wrong before it.
    pub fn refused(&self, address: IpAddr) {
        metrics().api_keys_refused.count("limited");
        let mut counted = self.0.counted.lock();
        if counted
            .warned_at
            .is_some_and(|at| at.elapsed() < WARNING_INTERVAL)
        {
            return;
        }
        counted.warned_at = Some(Instant::now());
        drop(counted);
        tracing::warn!(
            peer.address = %address,
            "an address sends wrong API keys by the thousand: they are answered 429",
        );
    }

    fn slot(&self) -> u64 {
        u64::try_from(self.0.since.elapsed().as_millis() / SLOT.as_millis()).unwrap_or(u64::MAX)
    }
}

impl SlidingWindow {
    /// Moves on to a slot. Returns the wrong keys of all that are counted still.
    fn at(&mut self, slot: u64) -> u32 {
        let passed = usize::try_from(slot.saturating_sub(self.slot))
            .unwrap_or(SLOTS)
            .min(SLOTS);
        self.counts.rotate_left(passed);
        self.counts[SLOTS - passed..].fill(0);
        self.slot = self.slot.max(slot);
        self.counts.iter().sum()
    }
}

impl PendingCheck {
    /// Ends with a key that is right.
    pub fn right(self) {
        let mut counted = self.keys.0.counted.lock();
        let Some(window) = counted.addresses.get_mut(&self.address) else {
            return;
        };
        let age = usize::try_from(window.slot.saturating_sub(self.slot)).unwrap_or(SLOTS);
        if let Some(count) = (SLOTS - 1)
            .checked_sub(age)
            .and_then(|at| window.counts.get_mut(at))
        {
            *count = count.saturating_sub(1);
        }
    }

    /// Ends with a key that is wrong.
    pub fn wrong(self) {
        metrics().api_keys_refused.count("wrong");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn judged(keys: &WrongKeys) -> u32 {
        (0..)
            .take_while(|_| keys.begin(ADDRESS).is_some())
            .count()
            .try_into()
            .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_so_many_wrong_keys_in_any_three_seconds() {
        let keys = WrongKeys::default();
        tokio::time::advance(Duration::from_millis(499)).await;
        assert_eq!(judged(&keys), MAX_JUDGED);
        assert!(
            keys.begin("::1".parse().unwrap()).is_some(),
            "another address is another matter"
        );
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(judged(&keys), 0);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(judged(&keys), MAX_JUDGED);
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_key_does_not_count() {
        let keys = WrongKeys::default();
        for _ in 0..2 * MAX_JUDGED {
            let check = keys.begin(ADDRESS).unwrap();
            tokio::time::advance(Duration::from_millis(1)).await;
            check.right();
        }
        assert_eq!(judged(&keys), MAX_JUDGED);
    }

    #[tokio::test(start_paused = true)]
    async fn the_addresses_that_are_counted_are_bounded() {
        let keys = WrongKeys::default();
        let address = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(n));
        for n in 0..20_000 {
            let begun = keys.begin(address(n));
            assert_eq!(begun.is_some(), (n as usize) < MAX_ADDRESSES);
        }
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(keys.begin(address(20_000)).is_some());
        assert_eq!(keys.0.counted.lock().addresses.len(), 1);
    }
}
