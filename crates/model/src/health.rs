//! How a connector instance does: a state that what was observed leads on from.

texts! {
    /// How a connector instance does.
    #[derive(Default)]
    pub enum Health {
        /// Nothing has been observed yet.
        #[default]
        Unknown = "unknown",
        Healthy = "healthy",
        /// It works for some.
        Degraded = "degraded",
        Failing = "failing",
    }
}

/// Something that tells how an instance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// A connection test went well, or a person has connected it anew.
    Passed,
    /// A connection test did not.
    Failed,
    /// The provider gave new tokens after it had not done so for a while.
    TokensGranted,
    /// The provider could not be asked for new tokens, and those at hand have run out.
    TokensLate,
    /// The provider will give no more tokens.
    TokensRefused,
    /// Calls of flows within some time, and how many of them failed by the other side's fault.
    Traffic { calls: u64, failures: u64 },
}

/// Calls that are enough for a judgement.
const MIN_CALLS: u64 = 5;

impl Observation {
    /// Returns whether all calls went well, however few: a former verdict of calls is over then.
    pub fn heals(self) -> bool {
        matches!(self, Self::Traffic { calls, failures: 0 } if calls > 0)
    }

    /// Returns whether the calls are enough for a judgement.
    pub fn is_conclusive(self) -> bool {
        match self {
            Self::Traffic { calls, .. } => calls >= MIN_CALLS,
            Self::Passed
            | Self::Failed
            | Self::TokensGranted
            | Self::TokensLate
            | Self::TokensRefused => true,
        }
    }
}

impl Health {
    /// The state after an observation.
    pub fn after(self, observation: Observation) -> Self {
        match observation {
            Observation::Passed | Observation::TokensGranted => Self::Healthy,
            Observation::Failed | Observation::TokensRefused => Self::Failing,
            Observation::TokensLate => match self {
                Self::Unknown | Self::Healthy | Self::Degraded => Self::Degraded,
                Self::Failing => Self::Failing,
            },
            Observation::Traffic { .. } if !observation.is_conclusive() => self,
            Observation::Traffic { calls, failures } if failures.saturating_mul(2) >= calls => {
                Self::Failing
            }
            Observation::Traffic { calls, failures } if failures.saturating_mul(10) >= calls => {
                Self::Degraded
            }
            Observation::Traffic { .. } => Self::Healthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_lead_from_state_to_state() {
        use Health::{Degraded, Failing, Healthy, Unknown};
        use Observation::{Failed, Passed, TokensGranted, TokensLate, TokensRefused, Traffic};
        let cases = [
            (Unknown, Passed, Healthy),
            (Failing, Passed, Healthy),
            (Healthy, Failed, Failing),
            (Healthy, TokensRefused, Failing),
            (Failing, TokensGranted, Healthy),
            (Healthy, TokensLate, Degraded),
            (Failing, TokensLate, Failing),
            (
                Healthy,
                Traffic {
                    calls: 4,
                    failures: 4,
                },
                Healthy,
            ),
            (
                Healthy,
                Traffic {
                    calls: 5,
                    failures: 5,
                },
                Failing,
            ),
            (
                Healthy,
                Traffic {
                    calls: 100,
                    failures: 50,
                },
                Failing,
            ),
            (
                Failing,
                Traffic {
                    calls: 100,
                    failures: 49,
                },
                Degraded,
            ),
            (
                Healthy,
                Traffic {
                    calls: 100,
                    failures: 10,
                },
                Degraded,
            ),
            (
                Degraded,
                Traffic {
                    calls: 100,
                    failures: 9,
                },
                Healthy,
            ),
            (
                Unknown,
                Traffic {
                    calls: 0,
                    failures: 0,
                },
                Unknown,
            ),
        ];
        for (before, observation, after) in cases {
            assert_eq!(before.after(observation), after, "{before} {observation:?}");
        }
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for health in [
            Health::Unknown,
            Health::Healthy,
            Health::Degraded,
            Health::Failing,
        ] {
            assert_eq!(Health::parse(health.as_str()), Some(health));
        }
        assert_eq!(Health::parse("splendid"), None);
    }
}
