//! A bound on the bytes that a set of things may hold in memory together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes, shared by whoever takes of them.
#[derive(Debug)]
pub struct Budget {
    all: usize,
    left: AtomicUsize,
}

/// Bytes taken of a budget; they go back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

/// The cause of a body that breaks off because nothing is left for it. The answer to it is 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are being read")]
pub struct NoRoom;

impl Budget {
    /// Returns a budget of which nothing is taken.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            all: bytes,
            left: AtomicUsize::new(bytes),
        })
    }

    /// `None` when fewer than `bytes` are left.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        self.subtract(bytes).then(|| Reservation {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Returns a reservation of nothing, which can be made larger.
    pub fn open(self: &Arc<Self>) -> Reservation {
        Reservation {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }

    fn subtract(&self, bytes: usize) -> bool {
        self.left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(bytes)
            })
            .is_ok()
    }

    /// Bytes that nothing holds.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Bytes that reservations hold.
    pub fn taken(&self) -> usize {
        self.all.saturating_sub(self.left())
    }
}

impl Reservation {
    /// Makes the reservation one of `bytes` at least; `false`, and as it was, when so many are not
    /// left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else {
            return true;
        };
        let taken = self.budget.subtract(more);
        self.bytes += if taken { more } else { 0 };
        taken
    }

    /// Makes the reservation one of exactly `bytes`.
    ///
    /// # Errors
    /// When so many are not left; the reservation is as it was.
    pub fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.budget.left.fetch_add(less, Ordering::AcqRel);
        if self.grow(bytes) {
            Ok(())
        } else {
            Err(NoRoom)
        }
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
        assert_eq!(
            [third.hold(3), third.hold(8), third.hold(5)],
            [Ok(()), Err(NoRoom), Ok(())]
        );
        assert_eq!(budget.left(), 2);
        drop(third);
        drop(second);
        assert_eq!(budget.left(), 10);
    }
}
