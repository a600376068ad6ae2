//! Lanes: one per target, or per flow with steps, with adapters or without a target. Each has
//! bounded numbers of messages in flight and in its queue. A slow target fills its own lane only;
//! further messages wait in the log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_net::budget::{Budget, Reservation};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bounds of every lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Messages in flight to a target.
    pub in_flight: usize,
    /// Messages in memory that wait in the queue.
    pub queued: usize,
}

/// Lanes of a node by the id of a connector instance or of a flow. `J` is a queued job.
pub(crate) struct Lanes<J> {
    limits: Limits,
    /// Memory of all lanes together.
    budget: Arc<Budget>,
    lanes: Mutex<HashMap<String, Arc<Lane<J>>>>,
    room: Arc<RoomNotifier>,
}

pub(crate) struct Lane<J> {
    limits: Limits,
    state: Mutex<State<J>>,
    room: Arc<RoomNotifier>,
}

/// Wakes tasks that wait for room.
#[derive(Default)]
struct RoomNotifier {
    found: Notify,
    /// True while a task waits for memory, which any lane may give back.
    memory_wanted: AtomicBool,
}

/// Origin of a message. A quarter of each queue is reserved for messages from the log, so that new
/// messages do not starve old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageOrigin {
    Ingress,
    Log,
}

impl Limits {
    fn slots(self, origin: MessageOrigin) -> usize {
        match origin {
            MessageOrigin::Ingress => self.in_flight + self.queued - self.queued / 4,
            MessageOrigin::Log => self.in_flight + self.queued,
        }
    }
}

struct State<J> {
    /// Slots in use.
    held: usize,
    /// Bytes that their holders have reserved.
    bytes: usize,
    running: usize,
    queue: VecDeque<J>,
    /// True after a reservation failed for lack of room.
    wanted: bool,
}

/// Slot of one message in a lane. It is released on drop.
pub(crate) struct Slot<J> {
    lane: Arc<Lane<J>>,
    bytes: usize,
    _memory: Reservation,
}

/// Room of a lane for messages of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Free {
    pub messages: usize,
    /// Bytes of all of them together.
    pub bytes: usize,
    /// Bytes of a single message that may exceed those; none while the lane holds one.
    pub single_bytes: usize,
}

/// Memory usage of all lanes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub lanes: usize,
    /// Slots given out.
    pub messages: usize,
    /// Bytes that these have reserved.
    pub bytes: usize,
}

/// Inverse of the share of the free memory that one lane may take, so that lanes with stalled
/// targets leave room to the others.
const SHARE: usize = 8;

/// Number of lanes from which unused ones are dropped.
const PRUNE_THRESHOLD: usize = 1024;

impl<J> Lanes<J> {
    pub fn new(limits: Limits, budget: Arc<Budget>) -> Self {
        Self {
            limits,
            budget,
            lanes: Mutex::default(),
            room: Arc::default(),
        }
    }

    pub fn lane(&self, target: &str) -> Arc<Lane<J>> {
        let mut lanes = self.lanes.lock();
        if let Some(lane) = lanes.get(target) {
            return Arc::clone(lane);
        }
        if lanes.len() >= PRUNE_THRESHOLD && lanes.len().is_power_of_two() {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = Arc::new(Lane::new(self.limits, Arc::clone(&self.room)));
        lanes.insert(target.to_owned(), Arc::clone(&lane));
        lane
    }

    /// Reserves a slot for a message of `bytes`. Returns `None` when the lane is full, or when it
    /// would exceed its share of the memory. A single message may exceed the share.
    pub fn reserve(
        &self,
        lane: &Arc<Lane<J>>,
        bytes: usize,
        origin: MessageOrigin,
    ) -> Option<Slot<J>> {
        let memory = self.budget.take(bytes);
        let mut state = lane.state.lock();
        let fits = state.held == 0 || state.bytes + bytes <= (self.budget.left() + bytes) / SHARE;
        let Some(memory) = memory.filter(|_| fits) else {
            self.room.memory_wanted.store(true, Ordering::Release);
            return None;
        };
        if state.held >= self.limits.slots(origin) {
            state.wanted = true;
            return None;
        }
        state.held += 1;
        state.bytes += bytes;
        Some(Slot {
            lane: Arc::clone(lane),
            bytes,
            _memory: memory,
        })
    }

    /// Returns the bytes that all lanes together have room for. When these are fewer than a message
    /// of `largest` bytes needs, the caller is woken once there is more.
    pub fn memory_left(&self, largest: usize) -> usize {
        let left = self.budget.left();
        if left < largest {
            self.room.memory_wanted.store(true, Ordering::Release);
        }
        left
    }

    /// Returns the room of a lane, by its slots and by its share of the memory. A message takes at
    /// most `largest` bytes. The caller is woken once there is room for more.
    pub fn free(&self, lane: &Lane<J>, largest: usize) -> Free {
        let mut state = lane.state.lock();
        state.wanted = true;
        let messages = self
            .limits
            .slots(MessageOrigin::Log)
            .saturating_sub(state.held);
        let left = self.budget.left();
        // Each message adds to what the lane holds, and takes from what its share is of.
        let share = left.saturating_sub(SHARE * state.bytes) / (SHARE + 1);
        if share < largest {
            self.room.memory_wanted.store(true, Ordering::Release);
        }
        Free {
            messages,
            bytes: share,
            single_bytes: if state.held == 0 { left } else { 0 },
        }
    }

    /// Returns the current usage.
    pub fn usage(&self) -> Usage {
        let lanes: Vec<_> = self.lanes.lock().values().cloned().collect();
        let messages = lanes.iter().map(|lane| lane.state.lock().held).sum();
        Usage {
            lanes: lanes.len(),
            messages,
            bytes: self.budget.taken(),
        }
    }

    /// Woken when there is room again after a failed reservation.
    pub fn room(&self) -> &Notify {
        &self.room.found
    }
}

impl<J> Lane<J> {
    fn new(limits: Limits, room: Arc<RoomNotifier>) -> Self {
        let state = State {
            held: 0,
            bytes: 0,
            running: 0,
            queue: VecDeque::new(),
            wanted: false,
        };
        Self {
            limits,
            state: Mutex::new(state),
            room,
        }
    }

    /// Returns the job when it may run now; otherwise queues it.
    pub fn enter(&self, job: J) -> Option<J> {
        let mut state = self.state.lock();
        if state.running < self.limits.in_flight {
            state.running += 1;
            Some(job)
        } else {
            state.queue.push_back(job);
            None
        }
    }

    /// Ends a run. Returns the next job, to run in its place.
    pub fn next(&self) -> Option<J> {
        let mut state = self.state.lock();
        let next = state.queue.pop_front();
        if next.is_none() {
            state.running -= 1;
        }
        next
    }

    /// Removes the jobs that have not started.
    pub fn clear(&self) -> VecDeque<J> {
        std::mem::take(&mut self.state.lock().queue)
    }
}

impl<J> Lanes<J> {
    /// Removes the jobs of all lanes that have not started.
    pub fn clear(&self) -> Vec<J> {
        let lanes: Vec<Arc<Lane<J>>> = self.lanes.lock().values().cloned().collect();
        lanes.iter().flat_map(|lane| lane.clear()).collect()
    }
}

impl<J> Slot<J> {
    pub fn lane(&self) -> &Arc<Lane<J>> {
        &self.lane
    }
}

impl<J> Drop for Slot<J> {
    fn drop(&mut self) {
        let lane = &self.lane;
        let mut state = lane.state.lock();
        state.held -= 1;
        state.bytes -= self.bytes;
        // A wake-up for every slot would cause a claim for each message.
        let enough = lane.limits.slots(MessageOrigin::Log) - (lane.limits.queued / 8).max(1);
        let wake = state.wanted && state.held <= enough;
        state.wanted &= !wake;
        drop(state);
        if wake || lane.room.memory_wanted.swap(false, Ordering::AcqRel) {
            lane.room.found.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(in_flight: usize, queued: usize, bytes: usize) -> Lanes<u32> {
        Lanes::new(Limits { in_flight, queued }, Budget::new(bytes))
    }

    #[test]
    fn a_full_lane_sends_away_and_leaves_others_alone() {
        let lanes = lanes(1, 1, 100);
        let slow = lanes.lane("slow");
        let fast = lanes.lane("fast");
        let slots = [
            lanes.reserve(&slow, 1, MessageOrigin::Ingress),
            lanes.reserve(&slow, 1, MessageOrigin::Ingress),
        ];
        assert!(slots.iter().all(Option::is_some));
        assert!(lanes.reserve(&slow, 1, MessageOrigin::Ingress).is_none());
        assert!(lanes.reserve(&fast, 1, MessageOrigin::Ingress).is_some());
        drop(slots);
        assert_eq!(lanes.free(&slow, 1).messages, 2);
    }

    #[test]
    fn lanes_that_hang_leave_memory_to_the_others() {
        let lanes = lanes(1000, 0, 900);
        let mut held = Vec::new();
        for (name, share) in [("a", 100), ("b", 88), ("c", 79)] {
            let lane = lanes.lane(name);
            assert_eq!(lanes.free(&lane, 1).bytes, share);
            let slots: Vec<_> =
                std::iter::from_fn(|| lanes.reserve(&lane, 1, MessageOrigin::Ingress)).collect();
            assert!(slots.len() >= share, "{} of {share}", slots.len());
            assert_eq!(lanes.free(&lane, 1).bytes, 0);
            held.push(slots);
        }
        let other = lanes.lane("other");
        assert!(lanes.free(&other, 500).single_bytes >= 500);
        let large = lanes.reserve(&other, 500, MessageOrigin::Log);
        assert!(large.is_some());
        assert!(lanes.reserve(&other, 100, MessageOrigin::Log).is_none());
    }

    #[test]
    fn the_log_has_room_where_the_ingress_has_none() {
        let lanes = lanes(1, 4, 100);
        let lane = lanes.lane("a");
        let slots: Vec<_> =
            std::iter::from_fn(|| lanes.reserve(&lane, 1, MessageOrigin::Ingress)).collect();
        assert_eq!(slots.len(), 4);
        assert_eq!(lanes.free(&lane, 1).messages, 1);
        assert!(lanes.reserve(&lane, 1, MessageOrigin::Log).is_some());
    }

    #[test]
    fn a_lane_takes_as_many_small_messages_as_it_has_places_however_large_one_may_be() {
        let lanes = lanes(4, 1000, 9_000);
        let lane = lanes.lane("a");
        // The largest message is taken when nothing else is held.
        let room = Free {
            messages: 1004,
            bytes: 1_000,
            single_bytes: 9_000,
        };
        assert_eq!(lanes.free(&lane, 2_000), room);
        let _held = lanes.reserve(&lane, 100, MessageOrigin::Log);
        let rest = Free {
            messages: 1003,
            bytes: 900,
            single_bytes: 0,
        };
        assert_eq!(lanes.free(&lane, 2_000), rest);
    }

    #[test]
    fn memory_bounds_all_lanes_together() {
        let lanes = lanes(8, 8, 10);
        let big = lanes.reserve(&lanes.lane("a"), 8, MessageOrigin::Ingress);
        assert!(
            big.is_some()
                && lanes
                    .reserve(&lanes.lane("b"), 3, MessageOrigin::Log)
                    .is_none()
        );
        assert_eq!(lanes.memory_left(1), 2);
        drop(big);
        assert_eq!(lanes.memory_left(1), 10);
    }

    #[test]
    fn jobs_run_in_order_and_no_more_than_allowed_at_once() {
        let lane = lanes(2, 8, 10).lane("a");
        assert_eq!(
            [lane.enter(1), lane.enter(2), lane.enter(3), lane.enter(4)],
            [Some(1), Some(2), None, None]
        );
        assert_eq!([lane.next(), lane.next()], [Some(3), Some(4)]);
        assert_eq!([lane.next(), lane.next()], [None, None]);
        assert_eq!(lane.enter(5), Some(5));
    }

    #[tokio::test]
    async fn who_was_sent_away_is_woken_when_there_is_room() {
        let lanes = lanes(1, 0, 10);
        let lane = lanes.lane("a");
        let slot = lanes.reserve(&lane, 1, MessageOrigin::Ingress);
        assert_eq!(lanes.free(&lane, 1).messages, 0);
        drop(slot);
        lanes.room().notified().await;
        let slot = lanes.reserve(&lane, 8, MessageOrigin::Ingress);
        assert_eq!(lanes.memory_left(3), 2);
        drop(slot);
        lanes.room().notified().await;
    }

    #[test]
    fn idle_lanes_are_dropped() {
        let lanes = lanes(1, 1, 10);
        let kept = lanes.lane("kept");
        for name in 0..5000 {
            lanes.lane(&name.to_string());
        }
        assert!(lanes.lanes.lock().len() <= 2 * PRUNE_THRESHOLD);
        assert!(Arc::ptr_eq(&kept, &lanes.lane("kept")));
    }
}
