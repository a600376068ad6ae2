//! Bounds on what requests may hold in memory together while they are read and stored.

use std::sync::Arc;

use kanat_net::budget::{Budget, Reservation};

/// Bytes that a request costs beside its body.
const OVERHEAD: usize = 16 << 10;

/// Room that a body of unknown size gets to begin with.
const FIRST: usize = 64 << 10;

pub(crate) struct Admission {
    budget: Arc<Budget>,
    body_limit: usize,
}

/// Room for one body.
pub(crate) struct Room {
    reservation: Reservation,
    limit: usize,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoom {
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("too many requests are being read")]
    Busy,
}

impl Admission {
    /// `body_limit` bounds one body; all of them together get `memory` bytes, or as many as one body needs.
    pub fn new(body_limit: usize, memory: usize) -> Self {
        Self { budget: Budget::new(memory.max(cost(body_limit))), body_limit }
    }

    /// Room for a body of `size` bytes, or for the beginning of one of unknown size.
    pub fn admit(&self, size: Option<u64>) -> Result<Room, NoRoom> {
        let limit = self.body_limit;
        let size = size.map_or(FIRST.min(limit), |size| usize::try_from(size).unwrap_or(usize::MAX));
        if size > limit {
            return Err(NoRoom::TooLarge { limit });
        }
        let reservation = self.budget.take(cost(size)).ok_or(NoRoom::Busy)?;
        Ok(Room { reservation, limit })
    }
}

impl Room {
    /// Makes room for a body that has come to `size` bytes.
    pub fn grow(&mut self, size: usize) -> Result<(), NoRoom> {
        if size > self.limit {
            return Err(NoRoom::TooLarge { limit: self.limit });
        }
        if self.reservation.grow(cost(size)) { Ok(()) } else { Err(NoRoom::Busy) }
    }

    /// The size that no body may exceed.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// A body stands in memory as it came and once more as its payload.
fn cost(size: usize) -> usize {
    size.saturating_mul(2).saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_requests_while_there_is_room() {
        let admission = Admission::new(1000, 3 * cost(1000));
        let held = [admission.admit(Some(1000)), admission.admit(None), admission.admit(Some(0))];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(admission.admit(Some(1000)).err(), Some(NoRoom::Busy));
        drop(held);
        assert!(admission.admit(Some(1000)).is_ok());
        assert_eq!(admission.admit(Some(1001)).err(), Some(NoRoom::TooLarge { limit: 1000 }));
    }

    #[test]
    fn room_grows_with_a_body_up_to_the_limit() {
        let admission = Admission::new(1 << 20, 0);
        let mut room = admission.admit(None).unwrap();
        assert_eq!([room.grow(10), room.grow(1 << 20)], [Ok(()), Ok(())]);
        assert_eq!(room.grow((1 << 20) + 1), Err(NoRoom::TooLarge { limit: 1 << 20 }));
        assert_eq!(admission.admit(None).err(), Some(NoRoom::Busy));
    }
}
