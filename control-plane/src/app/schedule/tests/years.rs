//! Two simulated years in four zones, two at a time, with three control planes whose clocks differ,
//! and which stop in the midst of a firing now and then. Every firing is compared with another
//! reckoning.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::join_all;
use jiff::civil::{DateTime, Weekday};
use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use super::at;
use super::planes::{Planes, scheduled_at};
use super::reckoning::{Kind, due};
use crate::app::schedule::fire_due;

const START: &str = "2017-01-31T12:00:00Z";
const END: &str = "2019-01-31T12:00:00Z";

/// How far the clock of each control plane is ahead.
const AHEAD: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(400),
    Duration::from_millis(1_900),
];

/// So many rounds pass between two in which a control plane stops.
const STOPS: usize = 20;

/// So many rounds pass between two in which all look at once; in the others one looks, each in its
/// turn, which costs a third of the time.
const ALL: usize = 6;

/// The longest delay: a claim of one that stopped, the look of another, the difference of their
/// clocks.
const LATE: Duration = Duration::from_secs(14);

type Matches = fn(DateTime) -> bool;

/// Expressions that are due where clocks are changed, and what they say.
const EXPRESSIONS: [(&str, Kind, Matches); 3] = [
    ("30 2 * * *", Kind::Fixed, |now| {
        (now.hour(), now.minute()) == (2, 30)
    }),
    ("15,45 0-3 * 2-4,10-11 sun", Kind::Fixed, |now| {
        (now.minute() == 15 || now.minute() == 45) && now.hour() <= 3 && in_season(now)
    }),
    ("*/20 0-3 * 2-4,10-11 0", Kind::Elapsed, |now| {
        now.minute() % 20 == 0 && now.hour() <= 3 && in_season(now)
    }),
];

/// The Sundays of the months in which clocks are changed.
fn in_season(now: DateTime) -> bool {
    now.weekday() == Weekday::Sunday && matches!(now.month(), 2..=4 | 10..=11)
}

#[tokio::test]
async fn every_due_time_of_two_years_in_the_north_is_fired_once_by_three_control_planes() {
    fire_two_years(["America/New_York", "Europe/Berlin"]).await;
}

#[tokio::test]
async fn every_due_time_of_two_years_in_the_south_is_fired_once_by_three_control_planes() {
    fire_two_years(["Australia/Lord_Howe", "America/Sao_Paulo"]).await;
}

async fn fire_two_years(zones: [&str; 2]) {
    let mut planes = Planes::start(3).await;
    let start = at(START);
    let end = at(END);
    let mut flows = Vec::new();
    for zone in zones {
        for (n, (cron, kind, matches)) in EXPRESSIONS.into_iter().enumerate() {
            let name = format!("{} {n}", zone.replace('/', " "));
            let flow = planes.deploy(&name, cron, zone, start).await;
            flows.push((name, flow, due(zone, kind, matches, start, end)));
        }
    }
    let stopped = simulate(&mut planes, start, end).await;
    let mut total = 0;
    for (name, flow, expected) in &flows {
        compare(&planes, name, flow, expected).await;
        total += expected.len();
    }
    println!(
        "{total} firings of {} schedules, {stopped} control planes stopped on the way",
        flows.len()
    );
    assert!(stopped > 25, "{stopped}");
}

/// Lets control planes look whenever something is due; says how often one was stopped.
async fn simulate(planes: &mut Planes, start: Timestamp, end: Timestamp) -> usize {
    let mut now = start;
    let mut rounds = 0usize;
    let mut stopped = 0;
    // What was claimed by one that stopped is there for whoever looks next, by whichever clock.
    let mut after_stop = false;
    while now <= end {
        rounds += 1;
        let victim = rounds
            .is_multiple_of(STOPS)
            .then_some(rounds / STOPS % planes.apps.len());
        let all = after_stop || victim.is_some() || rounds.is_multiple_of(ALL);
        let turn = rounds % planes.apps.len();
        let look = planes
            .apps
            .iter()
            .zip(AHEAD)
            .enumerate()
            .filter(|(n, _)| all || *n == turn);
        let looks = look.map(|(n, (app, ahead))| {
            let steps = if victim == Some(n) {
                1 + rounds / STOPS % 40
            } else {
                usize::MAX
            };
            until_stopped(steps, fire_due(app, now.after(ahead)))
        });
        let looks = join_all(looks).await;
        // All looked when one of them stopped.
        if let Some(victim) = looks.iter().position(Option::is_none) {
            planes.restart(victim).await;
            stopped += 1;
        }
        after_stop = victim.is_some();
        // What was claimed by one that stopped is nobody's for a while: nobody knows that it is
        // due, and all look anyway.
        let idle = if victim.is_some() {
            Duration::from_secs(11)
        } else {
            Duration::from_secs(24 * 60 * 60)
        };
        let next = looks.into_iter().flatten().filter_map(Result::unwrap).min();
        now = next
            .map_or(now.after(idle), |next| next.min(now.after(idle)))
            .max(now.after(Duration::from_secs(1)));
    }
    stopped
}

/// Lets `work` go on for so many steps, and drops it then, as the end of its process would; `None`
/// when it was dropped.
async fn until_stopped<F: Future>(steps: usize, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut left = steps;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

async fn compare(planes: &Planes, name: &str, flow: &FlowId, expected: &[Timestamp]) {
    let text = |times: &[Timestamp]| times.iter().map(Timestamp::to_string).collect::<Vec<_>>();
    let fired = planes.fired(flow).await;
    let missing: Vec<_> = expected
        .iter()
        .filter(|due| !fired.contains(due))
        .copied()
        .collect();
    let surplus: Vec<_> = fired
        .iter()
        .filter(|due| !expected.contains(due))
        .copied()
        .collect();
    assert_eq!(text(&missing), [""; 0], "{name}: missing, and too many");
    assert_eq!(text(&surplus), [""; 0], "{name}: missing, and too many");
    assert_eq!(text(&fired), text(expected), "{name}");
    for message in planes.messages(flow).await {
        let late = message.received_at.since(scheduled_at(&message));
        assert!(
            late <= LATE,
            "{name}: {} was fired {late:?} late",
            scheduled_at(&message)
        );
    }
}

#[test]
fn what_is_stopped_goes_no_further() {
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(
        pin!(until_stopped(1, async { 7 })).poll(&mut cx),
        Poll::Ready(Some(7))
    );
    let endless = std::future::pending::<()>();
    let mut stopped = pin!(until_stopped(1, endless));
    assert_eq!(stopped.as_mut().poll(&mut cx), Poll::Pending);
    assert_eq!(stopped.as_mut().poll(&mut cx), Poll::Ready(None));
}
