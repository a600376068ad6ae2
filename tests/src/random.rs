//! Numbers that look random and are the same for one seed.

use std::time::Duration;

/// A generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % limit as u64).expect("it is below a usize")
    }

    /// Returns one of these, which are not none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns a time from `least` to `most`, in whole milliseconds.
    pub fn pause(&mut self, least: Duration, most: Duration) -> Duration {
        let span = usize::try_from((most - least).as_millis()).expect("pauses are short");
        least + Duration::from_millis(self.below(span + 1) as u64)
    }
}

/// Spreads a number over all 64 bits.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
