//! A bound on the bytes that a set of things may hold in memory together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes, shared by whoever takes of them.
#[derive(Debug)]
pub(crate) struct Budget {
    all: usize,
    left: AtomicUsize,
}

/// Bytes taken of a budget; they go back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { all: bytes, left: AtomicUsize::new(bytes) })
    }

    /// `None` when fewer than `bytes` are left.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        self.subtract(bytes).then(|| Reservation { budget: Arc::clone(self), bytes })
    }

    fn subtract(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes)).is_ok()
    }

    pub fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    pub fn taken(&self) -> usize {
        self.all.saturating_sub(self.left())
    }
}

impl Reservation {
    /// Makes the reservation one of `bytes` at least; `false`, and as it was, when so many are not left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else { return true };
        let taken = self.budget.subtract(more);
        self.bytes += if taken { more } else { 0 };
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_no_more_than_it_has_and_takes_back() {
        let budget = Budget::new(10);
        let first = budget.take(7).unwrap();
        assert!(budget.take(4).is_none());
        let second = budget.take(3).unwrap();
        assert_eq!(budget.left(), 0);
        drop(first);
        assert_eq!(budget.left(), 7);
        let mut third = budget.take(1).unwrap();
        assert!(third.grow(7) && third.grow(2) && !third.grow(8));
        assert_eq!(budget.left(), 0);
        drop(third);
        drop(second);
        assert_eq!(budget.left(), 10);
    }
}
