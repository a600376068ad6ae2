//! Shares and tokens as they move, with a clock that is set by hand.

use super::*;
use kanat_model::id::ConsumerKeyId;

const MIDNIGHT: i64 = 20_478 * DAY_MS;

/// One key of all nodes, at a time.
struct Key {
    ledger: Ledger,
    now: i64,
    /// When those that request began.
    owner_created_at: Timestamp,
    nodes: u32,
}

impl Key {
    fn new(per_second: u32) -> Self {
        let now = MIDNIGHT + 1_000;
        let begun = Timestamp::from_millis(now);
        Self {
            ledger: Ledger::new(Rate::per_second(per_second), begun),
            now,
            owner_created_at: begun,
            nodes: 3,
        }
    }

    fn asks(&mut self, name: &str, change: impl FnOnce(&mut ShareRequest)) -> ShareGrant {
        let mut request = ShareRequest::new(
            ConsumerKeyId::new("ck_1"),
            Rate {
                calls: self.ledger.limit,
                period: self.ledger.period,
            },
            0,
        );
        request.wanted = Some(0);
        change(&mut request);
        let (node, owner) = name.split_once('/').unwrap_or((name, "boot_1"));
        let node = NodeId::new(node);
        let owner = BootId::new(format!("{name} {owner}"));
        let now = Timestamp::from_millis(self.now);
        // As a store keeps it between one exchange and the next.
        self.ledger = Ledger::from_json(&self.ledger.to_json(), Rate::NONE, now);
        let requester = Requester {
            node: &node,
            owner: &owner,
            now,
            owner_created_at: self.owner_created_at,
            nodes: self.nodes,
        };
        let gain = self.ledger.exchange(&request, requester);
        assert!(
            self.ledger.microtokens <= capacity(self.ledger.unheld_share()),
            "{:?}",
            self.ledger
        );
        gain
    }

    fn admits(&mut self, name: &str, calls: u32) -> u32 {
        self.asks(name, |request| request.waiting_calls = calls)
            .admitted
    }
}

#[test]
fn nodes_without_a_share_use_one_bucket_together() {
    let mut key = Key::new(5);
    for (node, admitted) in [("a", 1), ("b", 1), ("c", 1), ("a", 1), ("b", 1), ("c", 0)] {
        assert_eq!(key.admits(node, 1), admitted);
    }
    let refused = key.asks("a", |request| request.waiting_calls = 9);
    assert_eq!(refused.admitted, 0);
    assert_eq!(refused.time_to_next_token, Some(Duration::from_millis(200)));
    key.now += 200;
    assert_eq!(key.admits("b", 9), 1);
    key.now += 60_000;
    assert_eq!(key.admits("b", 9), 5);
}

#[test]
fn a_node_alone_is_given_the_whole_bucket() {
    let mut key = Key::new(10);
    key.nodes = 1;
    let gain = key.asks("a", |request| request.waiting_calls = 1);
    assert_eq!(gain.admitted, 1);
    assert_eq!(gain.share, 10);
    assert_eq!(gain.microtokens, 9 * MICROTOKENS_PER_TOKEN);
    assert_eq!(gain.target, 10);
    // Another one comes: the first is to give up what it does not need.
    key.nodes = 2;
    let refused = key.asks("b", |request| request.waiting_calls = 1);
    assert_eq!(refused.admitted, 0);
    assert_eq!(refused.time_to_next_token, None);
    let gain = key.asks("a", |request| {
        (request.held, request.wanted) = (10, Some(2))
    });
    assert_eq!(gain.share, 10);
    assert_eq!(gain.target, 2);
    let gain = key.asks("a", |request| {
        (request.held, request.returned_microtokens, request.wanted) =
            (2, 7 * MICROTOKENS_PER_TOKEN, Some(2))
    });
    assert_eq!(gain.share, 2);
    assert_eq!(gain.target, 2);
    assert_eq!(gain.pool_microtokens, 7 * MICROTOKENS_PER_TOKEN);
    assert_eq!(key.admits("b", 9), 7);
}

#[test]
fn shares_follow_what_nodes_want_and_never_add_up_to_more_than_the_limit() {
    let mut key = Key::new(100);
    let mut held = [0_u32; 3];
    let wanted = [400, 100, 20];
    for _ in 0..4 {
        for (node, name) in ["a", "b", "c"].into_iter().enumerate() {
            key.now += 10;
            let gain = key.asks(name, |request| {
                (request.held, request.wanted) = (held[node], Some(wanted[node]))
            });
            held[node] = gain.share.min(gain.target);
            if gain.target < gain.share {
                held[node] = key
                    .asks(name, |request| {
                        (request.held, request.wanted) = (gain.target, Some(wanted[node]))
                    })
                    .share;
            }
            assert!(held.iter().sum::<u32>() <= 100, "{held:?}");
        }
    }
    assert_eq!(held, [45, 45, 9]);
}

#[test]
fn a_share_that_is_given_back_takes_no_token_that_was_spent_along() {
    let mut key = Key::new(100);
    let gain = key.asks("a", |request| request.wanted = Some(60));
    assert_eq!(gain.share, 33);
    assert_eq!(gain.microtokens, 33 * MICROTOKENS_PER_TOKEN);
    assert_eq!(gain.pool_microtokens, 67 * MICROTOKENS_PER_TOKEN);
    let gain = key.asks("a", |request| (request.held, request.wanted) = (0, None));
    assert_eq!(gain.share, 0);
    assert_eq!(gain.pool_microtokens, 67 * MICROTOKENS_PER_TOKEN);
    key.now += 100;
    assert_eq!(
        key.asks("b", |_| {}).pool_microtokens,
        77 * MICROTOKENS_PER_TOKEN
    );
}

#[test]
fn a_silent_node_loses_its_share_without_its_tokens() {
    let mut key = Key::new(90);
    assert_eq!(key.asks("a", |request| request.wanted = Some(90)).share, 30);
    assert_eq!(key.admits("b", 100), 60);
    key.now += 2_999;
    assert_eq!(key.admits("b", 1_000), 60, "what nobody holds is full");
    key.now += 1;
    assert_eq!(key.admits("b", 1_000), 0);
    key.now += 500;
    assert_eq!(key.admits("b", 1_000), 45);
    // What the silent one says of its share now is late.
    let late = key.asks("a", |request| {
        (request.held, request.returned_microtokens) = (30, 30 * MICROTOKENS_PER_TOKEN)
    });
    assert_eq!(late.share, 0, "a millisecond's gain");
    assert_eq!(late.pool_microtokens, 60_000, "a millisecond's gain");
}

#[test]
fn a_restarted_node_does_not_wait_for_its_former_self() {
    let mut key = Key::new(10);
    key.nodes = 1;
    assert_eq!(
        key.asks("a/1", |request| request.waiting_calls = 4).share,
        10
    );
    key.now += 700;
    key.owner_created_at = Timestamp::from_millis(key.now - 200);
    let gain = key.asks("a/2", |request| request.waiting_calls = 1);
    // Nobody knows what the former one had left.
    assert_eq!(gain.admitted, 1, "what came since it began");
    assert_eq!(gain.share, 10, "what came since it began");
    assert_eq!(
        gain.microtokens, MICROTOKENS_PER_TOKEN,
        "what came since it began"
    );
}

#[test]
fn a_share_that_ran_out_gains_for_all_only_since_then() {
    let mut key = Key::new(10);
    key.nodes = 1;
    assert_eq!(key.asks("a", |request| request.waiting_calls = 1).share, 10);
    key.now += 3_100;
    key.nodes = 2;
    let gain = key.asks("a", |request| request.held = 10);
    assert_eq!(gain.share, 0, "a tenth of a second");
    assert_eq!(
        gain.pool_microtokens, MICROTOKENS_PER_TOKEN,
        "a tenth of a second"
    );
}

#[test]
fn a_changed_limit_counts_at_once_for_what_nobody_holds() {
    let mut key = Key::new(100);
    assert_eq!(
        key.asks("a", |request| request.wanted = Some(100)).share,
        33
    );
    let gain = key.asks("b", |request| {
        (request.rate.calls, request.waiting_calls) = (40, 100)
    });
    assert_eq!(gain.admitted, 7);
    assert_eq!(gain.pool_microtokens, 0);
    let gain = key.asks("a", |request| {
        (request.held, request.wanted, request.rate.calls) = (33, Some(10), 40)
    });
    assert_eq!(gain.target, 10);
    let gain = key.asks("b", |request| request.rate.calls = 200);
    assert_eq!(gain.pool_microtokens, 0, "a higher limit makes no tokens");
    key.now += 100;
    assert_eq!(key.admits("b", 1_000), 16);
}

#[test]
fn a_rate_that_is_no_whole_number_comes_in_as_exactly() {
    let mut key = Key::new(1);
    key.ledger = Ledger::new(
        Rate::from_calls_per_second(2.5),
        Timestamp::from_millis(key.now),
    );
    assert_eq!(key.admits("a", 9), 2);
    let refused = key.asks("b", |request| request.waiting_calls = 1);
    assert_eq!(refused.admitted, 0);
    assert_eq!(refused.time_to_next_token, Some(Duration::from_millis(400)));
    let mut admitted = 0;
    for _ in 0..10_000 {
        key.now += 7;
        admitted += key.admits("b", 1);
    }
    assert_eq!(admitted, 175, "in 70 s");

    // One an hour, asked for again and again: what comes in between two requests is less than a
    // millionth.
    let mut key = Key::new(1);
    key.ledger = Ledger::new(
        Rate::from_calls_per_second(1.0 / 3_600.0),
        Timestamp::from_millis(key.now),
    );
    assert_eq!(key.admits("a", 1), 1);
    let begun = key.now;
    while key.admits("b", 1) == 0 {
        key.now += 1_001;
    }
    assert_eq!(
        key.now - begun,
        3_597 * 1_001,
        "the first request after an hour"
    );
}

#[test]
fn a_ledger_of_before_is_read() {
    let text = r#"{"limit":5,"tokens":3000000,"at":1000,"leases":[],"day":0,"spent":0}"#;
    let ledger = Ledger::from_json(text, Rate::NONE, Timestamp::from_millis(2_000));
    assert_eq!(ledger.limit, 5);
    assert_eq!(ledger.period, Rate::NONE.period);
    assert_eq!(ledger.refilled_at, 1_000);
    assert_eq!(ledger.microtokens, 3_000_000);
    assert_eq!(ledger.remainder, 0);
}

#[test]
fn the_names_in_the_json_of_a_ledger_stay() {
    let ledger = Ledger {
        remainder: 7,
        granted_today: 9,
        ..Ledger::new(Rate::per_second(5), Timestamp::from_millis(1_000))
    };
    let json = r#"{"limit":5,"period":1000000,"tokens":5000000,"at":1000,"rest":7,"leases":[],"#;
    assert_eq!(ledger.to_json(), format!(r#"{json}"day":0,"spent":9}}"#));
}

#[test]
fn a_day_is_counted_when_it_is_given_out_and_ends_at_midnight() {
    let mut key = Key::new(0);
    key.nodes = 1;
    let day = |request: &mut ShareRequest, calls, wanted| {
        (request.per_day, request.waiting_calls, request.day_wanted) = (1_000, calls, wanted)
    };
    let gain = key.asks("a", |request| day(request, 10, 100));
    assert_eq!(gain.admitted, 10);
    assert_eq!(gain.allowance, 3);
    assert_eq!(gain.day_left, 987);
    let gain = key.asks("a", |request| {
        day(request, 0, 0);
        (request.day, request.day_returned) = (gain.day, 2);
    });
    assert_eq!(gain.day_left, 989);
    assert_eq!(
        key.asks("b", |request| day(request, 2_000, 100)).admitted,
        989
    );
    assert_eq!(key.asks("b", |request| day(request, 1, 100)).admitted, 0);
    let yesterday = gain.day;
    key.now = MIDNIGHT + DAY_MS - 1;
    assert_eq!(key.asks("b", |request| day(request, 1, 0)).admitted, 0);
    key.now += 1;
    let gain = key.asks("b", |request| {
        day(request, 1, 0);
        // What is left of yesterday is worth nothing today.
        (request.day, request.day_returned) = (yesterday, 500);
    });
    assert_eq!(gain.admitted, 1);
    assert_eq!(gain.day, yesterday + 1);
    assert_eq!(gain.day_left, 999);
}

#[test]
fn calls_that_one_limit_refuses_do_not_count_for_the_other() {
    let mut key = Key::new(2);
    let gain = key.asks("a", |request| {
        (request.waiting_calls, request.per_day) = (5, 10)
    });
    assert_eq!(gain.admitted, 2);
    assert_eq!(gain.day_left, 8);
    key.now += 60_000;
    let gain = key.asks("a", |request| {
        (request.waiting_calls, request.per_day) = (2, 2)
    });
    assert_eq!(gain.admitted, 0);
    assert_eq!(gain.day_left, 0);
    assert_eq!(gain.pool_microtokens, 2 * MICROTOKENS_PER_TOKEN);
}

#[test]
fn calls_that_bring_a_token_need_none_of_the_others() {
    let mut key = Key::new(3);
    key.nodes = 1;
    assert_eq!(
        key.asks("a", |request| request.waiting_calls = 1)
            .microtokens,
        2 * MICROTOKENS_PER_TOKEN
    );
    let gain = key.asks("a", |request| {
        request.held = 3;
        request.waiting_calls = 2;
        request.own_tokens = 2;
        request.per_day = 10;
    });
    assert_eq!(gain.admitted, 2);
    assert_eq!(gain.pool_microtokens, 0);
    assert_eq!(gain.day_left, 8);
}

#[test]
fn a_clock_that_goes_back_gives_nothing_twice() {
    let mut key = Key::new(10);
    assert_eq!(key.admits("a", 10), 10);
    for _ in 0..20 {
        // Exchanges overtake each other.
        key.now -= 100;
        assert_eq!(key.admits("a", 10), 0);
        key.now += 100;
        assert_eq!(key.admits("a", 10), 0);
    }
    // It was set: from here on it counts as ever.
    key.now -= 3_600_000;
    assert_eq!(key.admits("a", 10), 0);
    key.now += 500;
    assert_eq!(key.admits("a", 10), 5);
}

#[test]
fn what_cannot_be_read_begins_with_nothing() {
    let now = Timestamp::from_millis(MIDNIGHT);
    assert_eq!(
        Ledger::from_json("", Rate::per_second(5), now).microtokens,
        5 * MICROTOKENS_PER_TOKEN
    );
    assert_eq!(
        Ledger::from_json("not a ledger", Rate::per_second(5), now).microtokens,
        0
    );
}

#[test]
fn the_share_of_a_node_that_died_before_the_clock_went_back_returns_after_one_lease() {
    let mut key = Key::new(10);
    key.nodes = 2;
    let gain = key.asks("a", |request| request.wanted = Some(10));
    assert_eq!(gain.share, 5);
    key.now -= 3_600_000;
    key.asks("b", |_| {});
    key.now += i64::try_from(SHARE_LEASE.as_millis()).unwrap();
    key.asks("b", |_| {});
    assert_eq!(key.ledger.unheld_share(), 10);
}

#[test]
fn a_node_alone_need_not_give_up_what_it_holds_for_a_lease_that_is_left() {
    let mut key = Key::new(100);
    key.nodes = 2;
    key.asks("a", |request| request.wanted = Some(75));
    key.asks("b", |request| request.wanted = Some(20));
    key.nodes = 1;
    key.asks("b", |request| {
        (request.held, request.wanted) = (20, Some(100))
    });
    let gain = key.asks("a", |request| {
        (request.held, request.wanted) = (50, Some(100))
    });
    assert_eq!(gain.target, 100);
    assert!(gain.share >= 50);
}
