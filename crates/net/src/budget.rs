//! Memory budgets: bounds on the bytes that a set of holders may reserve.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A number of bytes that reservations share.
#[derive(Debug)]
pub struct Budget {
    all: usize,
    left: AtomicUsize,
}

/// Bytes reserved from a budget, released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    /// Share of one holder, from which the bytes are reserved too.
    share: Option<Arc<Budget>>,
    bytes: usize,
}

/// Reservation that several stages of a request share, and whether there was room for it.
#[derive(Debug, Clone)]
pub struct SharedReservation(Arc<Mutex<Holding>>);

#[derive(Debug)]
struct Holding {
    reservation: Reservation,
    outcome: Result<(), NoRoom>,
}

/// Shares of single holders in a budget.
#[derive(Debug)]
pub struct Shares<K> {
    bytes: usize,
    /// Shares that may be in use.
    known: Mutex<HashMap<K, Weak<Budget>>>,
}

/// Error of a body for which no memory is left. The response is 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are being read")]
pub struct NoRoom;

impl Budget {
    /// Returns an unused budget.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            all: bytes,
            left: AtomicUsize::new(bytes),
        })
    }

    /// Reserves `bytes`; `None` when fewer are left.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.open();
        reservation.grow(bytes).then_some(reservation)
    }

    /// Returns an empty reservation, which can grow.
    pub fn open(self: &Arc<Self>) -> Reservation {
        Reservation {
            budget: Arc::clone(self),
            share: None,
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

    fn add(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Returns the number of bytes that are not reserved.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Returns the number of reserved bytes.
    pub fn taken(&self) -> usize {
        self.all.saturating_sub(self.left())
    }
}

impl Reservation {
    /// Extends the reservation to at least `bytes`. Returns `false`, and changes nothing, when so
    /// many are not left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else {
            return true;
        };
        if !self.budget.subtract(more) {
            return false;
        }
        if let Some(share) = &self.share
            && !share.subtract(more)
        {
            self.budget.add(more);
            return false;
        }
        self.bytes += more;
        true
    }

    /// Resizes the reservation to exactly `bytes`.
    ///
    /// # Errors
    /// When so many are not left; the reservation is as it was.
    pub fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.give_back(less);
        if self.grow(bytes) {
            Ok(())
        } else {
            Err(NoRoom)
        }
    }

    fn give_back(&self, bytes: usize) {
        self.budget.add(bytes);
        if let Some(share) = &self.share {
            share.add(bytes);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

impl SharedReservation {
    /// Returns an empty reservation.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self(Arc::new(Mutex::new(Holding {
            reservation: budget.open(),
            outcome: Ok(()),
        })))
    }

    /// Reserves the held bytes from `share` as well.
    ///
    /// # Errors
    /// When it has less left.
    pub fn within(&self, share: &Arc<Budget>) -> Result<(), NoRoom> {
        let mut holding = self.0.lock();
        if !share.subtract(holding.reservation.bytes) {
            return Err(NoRoom);
        }
        let former = holding.reservation.share.replace(Arc::clone(share));
        if let Some(former) = former {
            former.add(holding.reservation.bytes);
        }
        Ok(())
    }

    /// Resizes the reservation to exactly `bytes`.
    ///
    /// # Errors
    /// When so many are not left; what was held still is.
    pub fn hold(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut holding = self.0.lock();
        holding.outcome = holding.reservation.hold(bytes);
        holding.outcome
    }

    /// Returns whether there was room for the last size.
    pub fn outcome(&self) -> Result<(), NoRoom> {
        self.0.lock().outcome
    }
}

impl<K: Eq + Hash> Shares<K> {
    /// Makes shares of `bytes` each.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            known: Mutex::default(),
        }
    }

    /// Returns the share of a holder.
    pub fn of(&self, holder: K) -> Arc<Budget> {
        let mut known = self.known.lock();
        if let Some(share) = known.get(&holder).and_then(Weak::upgrade) {
            return share;
        }
        known.retain(|_, share| share.strong_count() > 0);
        let share = Budget::new(self.bytes);
        known.insert(holder, Arc::downgrade(&share));
        share
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

    #[test]
    fn a_holder_has_its_share_and_no_more() {
        let budget = Budget::new(10);
        let shares = Shares::new(4);
        let held = |holder| {
            let held = SharedReservation::new(&budget);
            held.within(&shares.of(holder)).unwrap();
            held
        };
        let mut of_one = [held(1), held(1)];
        assert_eq!(of_one[0].hold(3), Ok(()));
        assert_eq!(of_one[1].hold(2), Err(NoRoom));
        assert_eq!(of_one[1].outcome(), Err(NoRoom));
        assert_eq!(budget.taken(), 3);
        assert_eq!(held(2).hold(4), Ok(()), "another holder has its own");
        assert_eq!(of_one[0].hold(1), Ok(()));
        assert_eq!(of_one[1].hold(3), Ok(()));
        of_one[0] = held(1);
        assert_eq!(of_one[0].hold(1), Ok(()));
        drop(of_one);
        assert_eq!(budget.taken(), 0);
        shares.of(3);
        assert_eq!(
            shares.known.lock().len(),
            1,
            "those that hold nothing are forgotten"
        );
    }
}
