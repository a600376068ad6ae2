//! Buckets of several nodes on one ledger, with a clock that is set by hand.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, ConsumerKeyId, NodeId};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::{Bucket, ClusterView, Decision, Key, Ledger, Limits, Phase, Rate, Requester};

const DAY: u64 = 24 * 60 * 60 * 1_000;
/// A minute before midnight.
const BEGIN: u64 = 20_478 * DAY - 60_000;

fn key() -> Key {
    ConsumerKeyId::new("ck_1").into()
}

/// Several nodes on one key. Time is in milliseconds since the begin.
struct Nodes {
    begin: Instant,
    now: u64,
    ledger: Ledger,
    limits: Limits,
    nodes: Vec<Node>,
    boots: u32,
    /// When the last boot began.
    booted: u64,
    away_since: Option<u64>,
    /// When calls were let in.
    admitted: Vec<u64>,
    /// Duration of an exchange, there and back.
    round_trip: u64,
    exchanges: u32,
    /// When the last tick was.
    ticked_at: u64,
}

struct Node {
    owner: BootId,
    bucket: Bucket,
}

impl Nodes {
    fn new(count: usize, per_second: u32, per_day: u64) -> Self {
        Self::of(count, Limits::per_second_and_day(per_second, per_day))
    }

    fn of(count: usize, limits: Limits) -> Self {
        let begin = Instant::now();
        let ledger = Ledger::new(limits.rate, Timestamp::from_millis(BEGIN as i64));
        let node = |number| Node {
            owner: BootId::new(format!("{number}")),
            bucket: Bucket::new(limits, begin),
        };
        let nodes = (0..count).map(node).collect();
        let now = 0;
        let boots = 0;
        let booted = 0;
        let away_since = None;
        let admitted = Vec::new();
        Self {
            begin,
            now,
            ledger,
            limits,
            nodes,
            boots,
            booted,
            away_since,
            admitted,
            round_trip: 0,
            exchanges: 0,
            ticked_at: 0,
        }
    }

    fn at(&self, now: u64) -> Instant {
        self.begin + Duration::from_millis(now)
    }

    fn view(&self) -> ClusterView {
        let store = BEGIN + self.now;
        ClusterView {
            now: self.at(self.now),
            wall: Timestamp::from_millis(store as i64),
            today: (store / DAY) as i64,
            to_midnight: Duration::from_millis(DAY - store % DAY),
            nodes: self.nodes.len() as u32,
            has_store_answered: true,
            unreachable_since: self.away_since.map(|since| self.at(since)),
        }
    }

    /// A call at a node; `None` when the store has to be asked.
    fn call(&mut self, node: usize) -> bool {
        let view = self.view();
        let limits = self.limits;
        let admitted = match self.nodes[node].bucket.try_admit(limits, 0, &view) {
            Decision::Admit(_) => {
                self.admitted.push(self.now);
                true
            }
            Decision::Refuse(limited) => {
                assert!(limited.retry_after >= Duration::from_secs(1));
                false
            }
            Decision::AskStore => self.exchange(node, 1) > 0,
        };
        if self.away_since.is_none() && self.nodes[node].bucket.allowance_runs_low() {
            self.exchange(node, 0);
        }
        admitted
    }

    /// Says how many of the calls that waited were let in.
    fn exchange(&mut self, node: usize, calls: u32) -> u32 {
        self.exchanges += 1;
        let view = self.view();
        let begun = self.now;
        let (request, pending) =
            self.nodes[node]
                .bucket
                .request(key(), calls, Phase::Running, &view);
        self.now += self.round_trip;
        let now = Timestamp::from_millis((BEGIN + self.now) as i64);
        let name = NodeId::new(format!("node {node}"));
        let owner = self.nodes[node].owner.clone();
        let nodes = self.nodes.len() as u32;
        let owner_created_at = Timestamp::from_millis((BEGIN + self.booted) as i64);
        let gain = self.ledger.exchange(
            &request,
            Requester {
                node: &name,
                owner: &owner,
                now,
                owner_created_at,
                nodes,
            },
        );
        self.now += self.round_trip;
        let view = self.view();
        let sent = self.at(begun);
        let bucket = &mut self.nodes[node].bucket;
        bucket.apply(&gain, pending, sent, &view);
        for _ in 0..gain.admitted {
            bucket.count_admitted(&view);
            self.admitted.push(self.now);
        }
        let mut admitted = gain.admitted;
        for _ in gain.admitted..calls {
            if let Decision::Admit(_) = self.nodes[node].bucket.try_take(&view) {
                self.admitted.push(self.now);
                admitted += 1;
            }
        }
        if self.nodes[node].bucket.exceeds_target() {
            self.exchange(node, 0);
        }
        admitted
    }

    fn tick(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].bucket.tick() && self.away_since.is_none() {
                self.exchange(node, 0);
            }
        }
    }

    /// Replaces idle buckets by new ones, as a node does.
    fn drop_idle_buckets(&mut self) {
        let view = self.view();
        for node in &mut self.nodes {
            if node.bucket.is_droppable(&view) {
                node.bucket = Bucket::new(self.limits, view.now);
            }
        }
    }

    /// It starts again without a word.
    fn dies(&mut self, node: usize) {
        self.boots += 1;
        self.booted = self.now;
        let owner = BootId::new(format!("{node} {}", self.boots));
        self.nodes[node] = Node {
            owner,
            bucket: Bucket::new(self.limits, self.at(self.now)),
        };
    }

    /// Never more than the limit × (t + 1) in t periods.
    fn holds(&self) {
        let limit = u64::from(self.limits.rate.calls);
        let period = self.limits.rate.period.as_micros();
        for (first, from) in self.admitted.iter().enumerate() {
            for (last, until) in self.admitted.iter().enumerate().skip(first) {
                let calls = (last - first + 1) as u64;
                let time = (until - from) * 1_000;
                assert!(
                    calls * period <= limit * (time + period),
                    "{calls} calls in {} ms",
                    until - from
                );
            }
        }
    }

    /// Calls come for so many seconds, so many in each to each node.
    fn load(&mut self, seconds: u64, per_node: &[u64]) -> usize {
        let before = self.admitted.len();
        let begun = self.now;
        let mut sent = vec![0; per_node.len()];
        while self.now < begun + seconds * 1_000 {
            for (node, per_second) in per_node.iter().enumerate() {
                while sent[node] * 1_000 < (self.now - begun) * per_second {
                    sent[node] += 1;
                    self.call(node);
                }
            }
            if self.now >= self.ticked_at + 1_000 {
                self.ticked_at = self.now;
                self.tick();
            }
            self.now += 1;
        }
        self.admitted.len() - before
    }
}

#[test]
fn a_lone_node_is_a_plain_bucket() {
    let mut one = Nodes::new(1, 10, 0);
    let let_in = (0..15).filter(|_| one.call(0)).count();
    assert_eq!(let_in, 10);
    for (pause, let_in) in [(99, 0), (1, 1), (250, 2), (50, 1), (10_000, 10)] {
        one.now += pause;
        assert_eq!(
            (0..20).filter(|_| one.call(0)).count(),
            let_in,
            "after {pause} ms"
        );
    }
    assert_eq!(one.exchanges, 2, "the lease ran out in the last pause");
    one.holds();
}

#[test]
fn a_lone_call_a_second_passes_at_once() {
    let mut one = Nodes::new(1, 1, 0);
    for _ in 0..5 {
        assert!(one.call(0) && !one.call(0));
        one.tick();
        one.now += 1_000;
    }
    one.holds();
}

#[test]
fn calls_at_any_node_use_one_bucket() {
    let mut three = Nodes::new(3, 5, 0);
    let let_in: Vec<bool> = (0..7).map(|call| three.call(call % 3)).collect();
    assert_eq!(let_in, [true, true, true, true, true, false, false]);
}

#[test]
fn three_nodes_use_what_the_key_allows_and_no_more() {
    for (limit, load) in [
        (100, [70, 70, 70]),
        (100, [200, 10, 10]),
        (30, [100, 100, 100]),
        (1_000, [900, 900, 5]),
    ] {
        let mut three = Nodes::new(3, limit, 0);
        three.round_trip = u64::from(limit < 1_000);
        let let_in = three.load(30, &load);
        let least = usize::try_from(limit * 30 * 95 / 100).unwrap();
        assert!(let_in >= least, "{let_in} of {} with {load:?}", limit * 30);
        let exchanges = three.exchanges;
        if limit < 1_000 {
            three.holds();
        }
        println!("{limit}/s, calls {load:?}: {let_in} in 30 s, {exchanges} exchanges");
    }
}

#[test]
fn a_load_that_moves_to_another_node_is_followed() {
    let mut three = Nodes::new(3, 100, 0);
    let mut let_in = 0;
    for load in [[150, 0, 0], [0, 150, 0], [0, 0, 150], [50, 50, 50]] {
        let_in += three.load(5, &load);
    }
    assert!(let_in >= 1_850, "{let_in} of 2000");
    three.holds();
}

#[test]
fn what_a_dead_node_held_is_used_again_after_its_lease() {
    let mut two = Nodes::new(2, 100, 0);
    two.load(3, &[100, 100]);
    // The other stays away.
    two.now += 3_000;
    let let_in = two.load(5, &[200]);
    assert!(let_in >= 490, "{let_in} of 500");
    two.holds();
}

#[test]
fn the_day_ends_with_its_last_call_and_begins_anew_at_midnight() {
    let mut two = Nodes::new(2, 0, 1_000);
    assert_eq!(two.load(30, &[30, 10]), 1_000);
    assert!(!two.call(0));
    let view = two.view();
    let limits = two.limits;
    assert!(matches!(
        two.nodes[0].bucket.try_admit(limits, 0, &view),
        Decision::Refuse(limited) if limited.retry_after == view.to_midnight
    ));
    two.now = 60_000;
    assert_eq!(two.load(30, &[30, 10]), 1_000);
}

#[test]
fn a_node_that_dies_costs_the_day_little() {
    let mut one = Nodes::new(1, 0, 10_000);
    one.load(20, &[100]);
    let before = one.admitted.len();
    one.dies(0);
    one.load(30, &[1_000]);
    assert_eq!(before, 2_000);
    assert!(
        (9_950..=10_000).contains(&one.admitted.len()),
        "{}",
        one.admitted.len()
    );
}

#[test]
fn small_days_are_exact_when_a_node_dies() {
    let mut one = Nodes::new(1, 100, 20);
    for _ in 0..7 {
        assert!(one.call(0));
    }
    one.dies(0);
    one.now += 1_000;
    assert_eq!((0..20).filter(|_| one.call(0)).count(), 13);
}

#[test]
fn without_a_store_each_node_has_its_part() {
    let mut three = Nodes::new(3, 30, 90);
    three.load(2, &[20, 5, 5]);
    let before = three.admitted.len();
    three.away_since = Some(three.now);
    let let_in = three.load(20, &[100, 100, 100]);
    // What is left of the day, as far as each has heard of it.
    let left = 90 - before;
    assert!(
        let_in <= left + 5 && let_in + 5 >= left,
        "{let_in} of {left}"
    );
    three.holds();

    let mut three = Nodes::new(3, 30, 0);
    three.load(2, &[60, 5, 5]);
    three.away_since = Some(three.now);
    let let_in = three.load(20, &[100, 100, 0]);
    // Two of three parts, from when no earlier share is good any more.
    assert!(
        (2 * 10 * 16..=2 * 10 * 18 + 60).contains(&let_in),
        "{let_in}"
    );
    three.holds();

    let mut one = Nodes::new(1, 30, 0);
    one.load(2, &[40]);
    one.away_since = Some(one.now);
    let let_in = one.load(20, &[40]);
    assert!((595..=630).contains(&let_in), "{let_in}");
    one.holds();
}

#[test]
fn a_node_that_never_reached_the_store_admits_no_call_of_a_day() {
    let mut one = Nodes::new(1, 0, 10);
    one.away_since = Some(0);
    let view = ClusterView {
        has_store_answered: false,
        ..one.view()
    };
    let limits = one.limits;
    let decision = one.nodes[0].bucket.try_admit(limits, 0, &view);
    let Decision::Refuse(refusal) = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(refusal.retry_after, Duration::from_secs(1));
}

#[test]
fn a_used_up_day_stays_so_for_an_idle_key_without_a_store() {
    let mut two = Nodes::new(2, 0, 100);
    assert_eq!(two.load(5, &[30, 30]), 100);
    for _ in 0..5 {
        two.now += 1_000;
        two.tick();
    }
    two.drop_idle_buckets();
    two.away_since = Some(two.now);
    assert!(!two.call(0));
    // The next day has a part for each node.
    two.now = 60_000;
    assert_eq!((0..100).filter(|_| two.call(0)).count(), 50);
}

#[test]
fn limits_that_change_without_a_store_leave_the_part_of_a_new_day() {
    let mut two = Nodes::new(2, 0, 100);
    assert!(two.call(0));
    two.away_since = Some(two.now);
    two.now = 60_000;
    let mut admitted = |per_day, calls| {
        two.limits.per_day = per_day;
        (0..calls).filter(|_| two.call(0)).count()
    };
    assert_eq!(admitted(100, 10), 10, "of a part of 50");
    assert_eq!(admitted(60, 100), 20, "of a part of 30");
    assert_eq!(admitted(20, 100), 0, "of a part of 10");
    assert_eq!(admitted(200, 100), 70, "of a part of 100");
}

#[test]
fn limits_that_change_without_a_store_give_no_second_part_of_the_day() {
    let mut two = Nodes::new(2, 0, 100);
    assert!((0..20).all(|_| two.call(0)));
    two.away_since = Some(two.now);
    let mut admitted = |per_day, calls| {
        two.limits.per_day = per_day;
        (0..calls).filter(|_| two.call(0)).count()
    };
    assert_eq!(admitted(100, 10), 10, "of a part of 40");
    assert_eq!(admitted(60, 100), 10, "of a part of 20");
    assert_eq!(admitted(100, 100), 20, "of a part of 40");
}

#[test]
fn a_limit_per_day_that_is_set_without_a_store_has_a_part() {
    let mut two = Nodes::new(2, 10, 0);
    assert!(two.call(0));
    two.away_since = Some(two.now);
    two.now += 20_000;
    two.limits.per_day = 4;
    assert_eq!((0..5).filter(|_| two.call(0)).count(), 2);
}

#[test]
fn a_lower_limit_holds_at_once() {
    let mut one = Nodes::new(1, 100, 0);
    one.load(2, &[50]);
    one.limits.rate.calls = 5;
    assert_eq!((0..50).filter(|_| one.call(0)).count(), 5);
    one.limits.rate.calls = 200;
    assert_eq!((0..50).filter(|_| one.call(0)).count(), 0);
}

#[test]
fn a_connector_of_one_node_keeps_its_tokens_when_its_rate_changes() {
    let created_at = Instant::now();
    let view = ClusterView::local(created_at);
    let limits = |calls| Limits {
        rate: Rate::per_second(calls),
        per_day: 0,
    };
    let mut bucket = Bucket::new_full(limits(10), view.now);
    let mut admits = |calls| {
        matches!(
            bucket.try_admit(limits(calls), 0, &view),
            Decision::Admit(_)
        )
    };
    assert!(admits(10));
    assert_eq!((0..50).filter(|_| admits(5)).count(), 5);
    assert!(!admits(20));
}

#[test]
fn an_idle_key_gives_all_back() {
    let mut two = Nodes::new(2, 100, 100_000);
    two.load(3, &[60, 60]);
    for _ in 0..3 {
        two.tick();
        two.now += 1_000;
    }
    let view = two.view();
    let tomorrow = ClusterView {
        today: view.today + 1,
        ..view
    };
    for node in &two.nodes {
        assert!(!node.bucket.is_droppable(&view));
        assert!(node.bucket.is_droppable(&tomorrow));
    }
    assert_eq!(
        (0..200).filter(|_| two.call(0)).count(),
        100,
        "all of the bucket is there again"
    );
    let spent = two.admitted.len() as u64;
    let limits = Limits::per_second_and_day(0, 100_000);
    two.limits = limits;
    let gain = {
        let view = two.view();
        let (request, _) = two.nodes[1].bucket.request(key(), 0, Phase::Leaving, &view);
        let now = view.wall;
        let begun = view.wall;
        let node = NodeId::new("node 1");
        let owner = two.nodes[1].owner.clone();
        two.ledger.exchange(
            &request,
            Requester {
                node: &node,
                owner: &owner,
                now,
                owner_created_at: begun,
                nodes: 2,
            },
        )
    };
    assert!(
        100_000 - gain.day_left - spent < 200,
        "{} left of 100000 after {spent}",
        gain.day_left
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_window_ever_holds_more_calls_than_the_limit(
        quarters in 1_u32..160,
        round_trip in 0_u64..3,
        steps in proptest::collection::vec((0_usize..3, 0_u64..400, 0_u8..12, 1_usize..30), 1..60),
    ) {
        let rate = Rate::from_calls_per_second(f64::from(quarters) / 4.0);
        let mut three = Nodes::of(3, Limits { rate, per_day: 0 });
        three.round_trip = round_trip;
        for (node, pause, what, calls) in steps {
            match what {
                0 => three.dies(node),
                1 | 2 => three.tick(),
                3 => {
                    three.exchange(node, 0);
                }
                4 => three.now += 1_000,
                _ => (0..calls).for_each(|_| {
                    three.call(node);
                }),
            }
            three.now += pause;
        }
        three.holds();
    }
}
