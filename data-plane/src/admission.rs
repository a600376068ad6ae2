//! Bounds on what requests may hold in memory together while they are read and stored.

mod shares;

use std::sync::Arc;

use kanat_net::budget::{Budget, Reservation};

pub(crate) use shares::Holders;
use shares::{Share, Shares};

/// Overhead of a request beside its body, in bytes.
const OVERHEAD: usize = 16 << 10;

/// Initial reservation of a body, in bytes. Most bodies need no more.
const INITIAL_BYTES: usize = 4 << 10;

/// Inverse of the share of the memory that waiting bodies of one flow, or of one peer, may take.
const SHARES: usize = 4;

pub(crate) struct Admission {
    budget: Arc<Budget>,
    shares: Shares,
    body_limit: usize,
}

/// Memory reservation of one body.
pub(crate) struct BodyReservation {
    reservation: Reservation,
    limit: usize,
}

/// Share of a body that waits for its rest.
pub(super) struct Waiting<'a>(Share<'a>);

/// Reason why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoom {
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("too many requests are being read")]
    Busy,
}

impl Admission {
    /// `body_limit` bounds one body; all of them together get `memory` bytes, or as many as one
    /// body needs. Those of one flow, and those of one peer, get a quarter of that while they are
    /// waited for, or as many as one body needs.
    pub fn new(body_limit: usize, memory: usize) -> Self {
        let shares = Shares::new((memory / SHARES).max(cost(body_limit)));
        Self {
            budget: Budget::new(memory.max(cost(body_limit))),
            shares,
            body_limit,
        }
    }

    /// Reserves memory for the beginning of a body, whose length may be known. Bytes that have not
    /// arrived take no memory.
    pub fn admit(&self, size: Option<u64>) -> Result<BodyReservation, NoRoom> {
        let limit = self.body_limit;
        let size = size.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
        if size > limit {
            return Err(NoRoom::TooLarge { limit });
        }
        let reservation = self
            .budget
            .take(cost(size.min(INITIAL_BYTES)))
            .ok_or(NoRoom::Busy)?;
        Ok(BodyReservation { reservation, limit })
    }

    /// Takes of the shares of its holders for a waiting body of which `size` bytes were read.
    pub(super) fn wait<'a>(
        &'a self,
        holders: Holders<'a>,
        size: usize,
    ) -> Result<Waiting<'a>, NoRoom> {
        self.shares
            .take(holders, cost(size))
            .map(Waiting)
            .ok_or(NoRoom::Busy)
    }
}

impl BodyReservation {
    /// Extends the reservation of a body to `size` bytes.
    pub fn grow(&mut self, size: usize) -> Result<(), NoRoom> {
        if size > self.limit {
            return Err(NoRoom::TooLarge { limit: self.limit });
        }
        if self.reservation.grow(cost(size)) {
            Ok(())
        } else {
            Err(NoRoom::Busy)
        }
    }

    /// Returns the maximum size of a body.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl Waiting<'_> {
    /// Extends the shares of a body to `size` bytes.
    pub fn grow(&mut self, size: usize) -> Result<(), NoRoom> {
        if self.0.grow(cost(size)) {
            Ok(())
        } else {
            Err(NoRoom::Busy)
        }
    }
}

/// Returns the memory that a body takes: once as received and once as its payload.
fn cost(size: usize) -> usize {
    size.saturating_mul(2).saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kanat_model::id::FlowId;

    #[test]
    fn takes_requests_while_there_is_room() {
        let admission = Admission::new(1000, 3 * cost(1000));
        let held = [
            admission.admit(Some(1000)),
            admission.admit(Some(1000)),
            admission.admit(Some(1000)),
        ];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(admission.admit(None).err(), Some(NoRoom::Busy));
        drop(held);
        assert!(admission.admit(Some(1000)).is_ok());
        assert_eq!(
            admission.admit(Some(1001)).err(),
            Some(NoRoom::TooLarge { limit: 1000 })
        );
    }

    #[test]
    fn what_is_declared_takes_no_room() {
        let limit = 1 << 20;
        let admission = Admission::new(limit, cost(limit));
        let declared: Vec<_> = (0..64)
            .map(|_| admission.admit(Some(limit as u64)))
            .collect();
        assert!(declared.iter().all(Result::is_ok));
        let mut rooms = declared.into_iter().map(Result::unwrap);
        let mut first = rooms.next().unwrap();
        assert_eq!(
            first.grow(limit),
            Err(NoRoom::Busy),
            "the others have their beginnings"
        );
        drop(rooms);
        assert_eq!(first.grow(limit), Ok(()));
    }

    #[test]
    fn room_grows_with_a_body_up_to_the_limit() {
        let admission = Admission::new(1 << 20, 0);
        let mut room = admission.admit(None).unwrap();
        assert_eq!(room.grow(10), Ok(()));
        assert_eq!(room.grow(1 << 20), Ok(()));
        assert_eq!(
            room.grow((1 << 20) + 1),
            Err(NoRoom::TooLarge { limit: 1 << 20 })
        );
        assert_eq!(admission.admit(None).err(), Some(NoRoom::Busy));
    }

    #[test]
    fn bodies_of_one_flow_that_are_waited_for_leave_room_for_others() {
        let admission = Admission::new(1000, 8 * cost(1000));
        let [one, other] = ["flw_1", "flw_2"].map(FlowId::from);
        let of = |flow| Holders { flow, peer: None };
        let held = [
            admission.wait(of(&one), 1000),
            admission.wait(of(&one), 1000),
        ];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(admission.wait(of(&one), 0).err(), Some(NoRoom::Busy));
        let mut waiting = admission.wait(of(&other), 0).unwrap();
        assert_eq!(waiting.grow(1000), Ok(()));
        drop(held);
        assert!(admission.wait(of(&one), 1000).is_ok());
    }
}
