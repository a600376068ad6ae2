//! Circuit breaker of one connector: closed while the connector answers, open after too many
//! failures in a row, half-open while one call probes the connector. Pure: the caller passes the
//! time.

use std::time::{Duration, Instant};

/// Settings of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Failures in a row; 0 for a breaker that never opens.
    pub failures: u32,
    /// Shortest time from the first of these failures to the last one.
    pub min_span: Duration,
    /// Time from the opening to the first probe.
    pub open_for: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Breaker {
    rules: Rules,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
        /// Time of the first of them.
        since: Option<Instant>,
    },
    Open {
        until: Instant,
    },
    /// One probe is in progress.
    HalfOpen {
        /// Time at which the probe is considered lost.
        until: Instant,
    },
}

/// Decision on one more call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Allow,
    /// The call is the probe.
    Probe,
    /// No call is allowed before this time has passed.
    Wait(Duration),
}

/// Result of a call as far as it shows the health of the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The connector answered, if only to refuse the call.
    Success,
    /// The connector did not answer, or reported an error of its own.
    Failure,
    /// The call shows nothing.
    Unknown,
}

/// Kind of a call that was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Regular,
    Probe,
}

/// Change of state that a result caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transition {
    Opened,
    Closed,
}

/// Longest time that a half-open breaker waits for its probe: the caller may have gone away.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay of calls while a probe is in progress.
const PROBE_RETRY_DELAY: Duration = Duration::from_millis(500);

const CLOSED: State = State::Closed {
    failures: 0,
    since: None,
};

impl Breaker {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: CLOSED,
        }
    }

    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Returns the time for which no call is made, if the breaker is open.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        match self.state {
            State::Open { until } => Some(until.saturating_duration_since(now)),
            State::Closed { .. } | State::HalfOpen { .. } => None,
        }
    }

    /// Returns the decision on a call without reserving the probe.
    pub fn peek(&self, now: Instant) -> Admission {
        match self.state {
            State::Closed { .. } => Admission::Allow,
            State::Open { until } if now < until => Admission::Wait(until - now),
            State::HalfOpen { until } if now < until => Admission::Wait(PROBE_RETRY_DELAY),
            State::Open { .. } | State::HalfOpen { .. } => Admission::Probe,
        }
    }

    /// Returns the decision on a call that is made if it is allowed. A probe is reserved.
    pub fn try_acquire(&mut self, now: Instant) -> Admission {
        let answer = self.peek(now);
        if answer == Admission::Probe {
            self.state = State::HalfOpen {
                until: now + PROBE_TIMEOUT,
            };
        }
        answer
    }

    /// Records the result of a call.
    pub fn record(&mut self, outcome: Outcome, kind: CallKind, now: Instant) -> Option<Transition> {
        match (outcome, self.state) {
            (Outcome::Success, state) => {
                self.state = CLOSED;
                (!matches!(state, State::Closed { .. })).then_some(Transition::Closed)
            }
            (Outcome::Failure, State::Closed { failures, since }) => {
                self.record_failure(failures + 1, since.unwrap_or(now), now)
            }
            (Outcome::Failure, State::HalfOpen { .. }) if kind == CallKind::Probe => {
                self.state = State::Open {
                    until: now + self.rules.open_for,
                };
                None
            }
            // The next call is the probe.
            (Outcome::Unknown, State::HalfOpen { .. }) if kind == CallKind::Probe => {
                self.state = State::Open { until: now };
                None
            }
            // The call began before the breaker opened.
            (Outcome::Failure, State::Open { .. } | State::HalfOpen { .. }) => None,
            (
                Outcome::Unknown,
                State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. },
            ) => None,
        }
    }

    fn record_failure(
        &mut self,
        failures: u32,
        since: Instant,
        now: Instant,
    ) -> Option<Transition> {
        let rules = self.rules;
        let span = now.saturating_duration_since(since);
        if rules.failures > 0 && failures >= rules.failures && span >= rules.min_span {
            self.state = State::Open {
                until: now + rules.open_for,
            };
            return Some(Transition::Opened);
        }
        self.state = State::Closed {
            failures,
            since: Some(since),
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        failures: 3,
        min_span: Duration::ZERO,
        open_for: Duration::from_secs(10),
    };

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    fn opened(begin: Instant) -> Breaker {
        let mut breaker = Breaker::new(RULES);
        let turns = [(); 3].map(|()| breaker.record(Outcome::Failure, CallKind::Regular, begin));
        assert_eq!(turns, [None, None, Some(Transition::Opened)]);
        breaker
    }

    #[test]
    fn opens_after_failures_in_a_row_and_lets_one_call_probe() {
        let begin = Instant::now();
        let mut breaker = opened(begin);
        assert_eq!(
            breaker.try_acquire(after(begin, 4)),
            Admission::Wait(Duration::from_secs(6))
        );
        assert_eq!(breaker.try_acquire(after(begin, 10)), Admission::Probe);
        assert_eq!(
            breaker.try_acquire(after(begin, 10)),
            Admission::Wait(PROBE_RETRY_DELAY)
        );
        assert_eq!(
            breaker.record(Outcome::Success, CallKind::Probe, after(begin, 11)),
            Some(Transition::Closed)
        );
        assert_eq!(breaker.try_acquire(after(begin, 11)), Admission::Allow);
    }

    #[test]
    fn a_probe_that_fails_reopens_it_and_one_without_an_outcome_lets_the_next_call_probe() {
        let begin = Instant::now();
        let mut breaker = opened(begin);
        assert_eq!(breaker.try_acquire(after(begin, 10)), Admission::Probe);
        assert_eq!(
            breaker.record(Outcome::Failure, CallKind::Probe, after(begin, 12)),
            None
        );
        assert_eq!(
            breaker.try_acquire(after(begin, 13)),
            Admission::Wait(Duration::from_secs(9))
        );
        assert_eq!(breaker.try_acquire(after(begin, 22)), Admission::Probe);
        assert_eq!(
            breaker.record(Outcome::Unknown, CallKind::Probe, after(begin, 22)),
            None
        );
        assert_eq!(breaker.try_acquire(after(begin, 22)), Admission::Probe);
        assert_eq!(
            breaker.try_acquire(after(begin, 22) + PROBE_TIMEOUT),
            Admission::Probe
        );
    }

    #[test]
    fn a_success_in_between_begins_the_count_anew() {
        let begin = Instant::now();
        let mut breaker = Breaker::new(RULES);
        for outcome in [
            Outcome::Failure,
            Outcome::Failure,
            Outcome::Success,
            Outcome::Failure,
            Outcome::Unknown,
            Outcome::Failure,
        ] {
            assert_eq!(breaker.record(outcome, CallKind::Regular, begin), None);
        }
        assert_eq!(
            breaker.record(Outcome::Failure, CallKind::Regular, begin),
            Some(Transition::Opened)
        );
    }

    #[test]
    fn what_began_before_does_not_count_while_it_is_open_unless_it_went_well() {
        let begin = Instant::now();
        let mut breaker = opened(begin);
        assert_eq!(
            breaker.record(Outcome::Failure, CallKind::Regular, after(begin, 5)),
            None
        );
        assert_eq!(breaker.try_acquire(after(begin, 10)), Admission::Probe);
        assert_eq!(
            breaker.record(Outcome::Failure, CallKind::Regular, after(begin, 10)),
            None
        );
        assert_eq!(
            breaker.try_acquire(after(begin, 10)),
            Admission::Wait(PROBE_RETRY_DELAY)
        );
        assert_eq!(
            breaker.record(Outcome::Success, CallKind::Regular, after(begin, 10)),
            Some(Transition::Closed)
        );
    }

    #[test]
    fn a_burst_of_failures_is_too_short_where_a_time_is_asked_for_and_none_counts_where_it_is_off()
    {
        let begin = Instant::now();
        let mut breaker = Breaker::new(Rules {
            min_span: Duration::from_secs(5),
            ..RULES
        });
        for _ in 0..100 {
            assert_eq!(
                breaker.record(Outcome::Failure, CallKind::Regular, after(begin, 4)),
                None
            );
        }
        assert_eq!(
            breaker.record(Outcome::Failure, CallKind::Regular, after(begin, 9)),
            Some(Transition::Opened)
        );
        let mut off = Breaker::new(Rules {
            failures: 0,
            ..RULES
        });
        for second in 0..100 {
            assert_eq!(
                off.record(Outcome::Failure, CallKind::Regular, after(begin, second)),
                None
            );
        }
    }
}
