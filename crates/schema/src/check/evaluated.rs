//! The parts of a value that schemas have evaluated, for `unevaluatedItems` and
//! `unevaluatedProperties`.

/// Set of items of a list, or members of an object, by their places.
#[derive(Debug, Default)]
pub(super) struct EvaluatedSet {
    pub(super) all: bool,
    /// Number of places from the front that belong to the set.
    first: usize,
    bits: Vec<u64>,
}

impl EvaluatedSet {
    pub(super) fn has(&self, place: usize) -> bool {
        self.all
            || place < self.first
            || self
                .bits
                .get(place / 64)
                .is_some_and(|bits| bits & 1 << (place % 64) != 0)
    }

    pub(super) fn add(&mut self, place: usize) {
        if self.bits.len() <= place / 64 {
            self.bits.resize(place / 64 + 1, 0);
        }
        self.bits[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn add_first(&mut self, count: usize) {
        self.first = self.first.max(count);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.all |= other.all;
        self.first = self.first.max(other.first);
        if self.bits.len() < other.bits.len() {
            self.bits.resize(other.bits.len(), 0);
        }
        self.bits
            .iter_mut()
            .zip(&other.bits)
            .for_each(|(bits, other)| *bits |= other);
    }

    /// Returns the steps of creating or merging it.
    pub(super) fn work(&self) -> u64 {
        self.bits.len() as u64
    }
}
