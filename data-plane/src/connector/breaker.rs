//! The circuit breaker of one connector: closed as long as it answers, open when it failed too
//! often in a row, half-open for one call that tries whether it is back. Pure: the time is handed
//! in.

use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Failures in a row; 0 for a breaker that never opens.
    pub failures: u32,
    /// From the first of them to the last, at least.
    pub over: Duration,
    /// From its opening to the call that tries.
    pub pause: Duration,
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
        /// The first of them.
        since: Option<Instant>,
    },
    Open {
        until: Instant,
    },
    /// One call is under way that tries.
    HalfOpen {
        /// It is given up for lost then.
        until: Instant,
    },
}

/// What a breaker says to one more call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Go,
    /// The call is the one that tries.
    Try,
    /// Not for so long.
    Wait(Duration),
}

/// What a call says of its connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered, whatever it thought of the call.
    Well,
    /// No answer, or one of its own trouble.
    Ill,
    /// Nothing can be told.
    Unknown,
}

/// What a verdict changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Opened,
    Closed,
}

/// A call that tries is not waited for longer: whoever made it may have gone away.
const LONGEST_TRY: Duration = Duration::from_secs(60);
/// Who finds a call under way that tries comes back after this time.
const TRY_PAUSE: Duration = Duration::from_millis(500);

impl Breaker {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: State::Closed {
                failures: 0,
                since: None,
            },
        }
    }

    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// What a call would be told, which is not made.
    pub fn outlook(&self, now: Instant) -> Answer {
        match self.state {
            State::Closed { .. } => Answer::Go,
            State::Open { until } if now < until => Answer::Wait(until - now),
            State::HalfOpen { until } if now < until => Answer::Wait(TRY_PAUSE),
            State::Open { .. } | State::HalfOpen { .. } => Answer::Try,
        }
    }

    /// The same for a call that is made if it may be.
    pub fn ask(&mut self, now: Instant) -> Answer {
        let answer = self.outlook(now);
        if answer == Answer::Try {
            self.state = State::HalfOpen {
                until: now + LONGEST_TRY,
            };
        }
        answer
    }

    /// Takes in how a call ended; `tried` when it was told to try.
    pub fn heard(&mut self, verdict: Verdict, tried: bool, now: Instant) -> Option<Turn> {
        match (verdict, self.state) {
            (Verdict::Well, State::Closed { .. }) => {
                self.state = State::Closed {
                    failures: 0,
                    since: None,
                };
                None
            }
            (Verdict::Well, State::Open { .. } | State::HalfOpen { .. }) => {
                self.state = State::Closed {
                    failures: 0,
                    since: None,
                };
                Some(Turn::Closed)
            }
            (Verdict::Ill, State::Closed { failures, since }) => {
                self.failed(failures + 1, since.unwrap_or(now), now)
            }
            (Verdict::Ill, State::HalfOpen { .. }) if tried => {
                self.state = State::Open {
                    until: now + self.rules.pause,
                };
                None
            }
            // The next one tries.
            (Verdict::Unknown, State::HalfOpen { .. }) if tried => {
                self.state = State::Open { until: now };
                None
            }
            // Of a call that began before the breaker opened.
            (Verdict::Ill, State::Open { .. } | State::HalfOpen { .. }) => None,
            (
                Verdict::Unknown,
                State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. },
            ) => None,
        }
    }

    fn failed(&mut self, failures: u32, since: Instant, now: Instant) -> Option<Turn> {
        let Rules {
            failures: most,
            over,
            pause,
        } = self.rules;
        if most > 0 && failures >= most && now.saturating_duration_since(since) >= over {
            self.state = State::Open { until: now + pause };
            return Some(Turn::Opened);
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
        over: Duration::ZERO,
        pause: Duration::from_secs(10),
    };

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    fn opened(begin: Instant) -> Breaker {
        let mut breaker = Breaker::new(RULES);
        let turns = [(); 3].map(|()| breaker.heard(Verdict::Ill, false, begin));
        assert_eq!(turns, [None, None, Some(Turn::Opened)]);
        breaker
    }

    #[test]
    fn opens_after_failures_in_a_row_and_lets_one_call_try() {
        let begin = Instant::now();
        let mut breaker = opened(begin);
        assert_eq!(
            breaker.ask(after(begin, 4)),
            Answer::Wait(Duration::from_secs(6))
        );
        assert_eq!(breaker.ask(after(begin, 10)), Answer::Try);
        assert_eq!(breaker.ask(after(begin, 10)), Answer::Wait(TRY_PAUSE));
        assert_eq!(
            breaker.heard(Verdict::Well, true, after(begin, 11)),
            Some(Turn::Closed)
        );
        assert_eq!(breaker.ask(after(begin, 11)), Answer::Go);
    }

    #[test]
    fn a_try_that_fails_opens_it_anew_and_one_that_tells_nothing_lets_the_next_try() {
        let begin = Instant::now();
        let mut breaker = opened(begin);
        assert_eq!(breaker.ask(after(begin, 10)), Answer::Try);
        assert_eq!(breaker.heard(Verdict::Ill, true, after(begin, 12)), None);
        assert_eq!(
            breaker.ask(after(begin, 13)),
            Answer::Wait(Duration::from_secs(9))
        );
        assert_eq!(breaker.ask(after(begin, 22)), Answer::Try);
        assert_eq!(
            breaker.heard(Verdict::Unknown, true, after(begin, 22)),
            None
        );
        assert_eq!(breaker.ask(after(begin, 22)), Answer::Try);
        assert_eq!(breaker.ask(after(begin, 22) + LONGEST_TRY), Answer::Try);
    }

    #[test]
    fn a_success_in_between_begins_the_count_anew() {
        let begin = Instant::now();
        let mut breaker = Breaker::new(RULES);
        for verdict in [
            Verdict::Ill,
            Verdict::Ill,
            Verdict::Well,
            Verdict::Ill,
            Verdict::Unknown,
            Verdict::Ill,
        ] {
            assert_eq!(breaker.heard(verdict, false, begin), None);
        }
        assert_eq!(
            breaker.heard(Verdict::Ill, false, begin),
            Some(Turn::Opened)
        );
    }

    #[test]
    fn what_began_before_does_not_count_while_it_is_open_unless_it_went_well() {
        let begin = Instant::now();
        let mut breaker = opened(begin);
        assert_eq!(breaker.heard(Verdict::Ill, false, after(begin, 5)), None);
        assert_eq!(breaker.ask(after(begin, 10)), Answer::Try);
        assert_eq!(breaker.heard(Verdict::Ill, false, after(begin, 10)), None);
        assert_eq!(breaker.ask(after(begin, 10)), Answer::Wait(TRY_PAUSE));
        assert_eq!(
            breaker.heard(Verdict::Well, false, after(begin, 10)),
            Some(Turn::Closed)
        );
    }

    #[test]
    fn a_burst_of_failures_is_too_short_where_a_time_is_asked_for_and_none_counts_where_it_is_off()
    {
        let begin = Instant::now();
        let mut breaker = Breaker::new(Rules {
            over: Duration::from_secs(5),
            ..RULES
        });
        for _ in 0..100 {
            assert_eq!(breaker.heard(Verdict::Ill, false, after(begin, 4)), None);
        }
        assert_eq!(
            breaker.heard(Verdict::Ill, false, after(begin, 9)),
            Some(Turn::Opened)
        );
        let mut off = Breaker::new(Rules {
            failures: 0,
            ..RULES
        });
        for second in 0..100 {
            assert_eq!(off.heard(Verdict::Ill, false, after(begin, second)), None);
        }
    }
}
