//! The retry grammar, `3x exponential(30s)`, and how long each retry waits.

use std::time::Duration;

use kanat_proto::plan::v1 as plan;

use crate::{duration, nearest};

/// The longest wait before a retry, jitter apart.
pub const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The most retries.
pub const MAX_COUNT: u32 = 100;

/// The part of a wait that jitter may add to it.
const JITTER: f64 = 0.1;

/// How often a failed message is tried again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Retries after the first attempt, 0 to 100.
    pub count: u32,
    /// How the waits grow.
    pub backoff: Backoff,
    /// The wait before the first retry.
    pub duration: Duration,
    /// Only failures that may pass are tried again: network failures, 408, 425, 429 and 5xx.
    pub transient_only: bool,
}

/// How the waits grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// d, 2d, 4d, ...
    Exponential,
    /// d, 2d, 3d, ...
    Linear,
    /// d, d, d, ...
    Fixed,
}

impl Backoff {
    const ALL: [Self; 3] = [Self::Exponential, Self::Linear, Self::Fixed];

    /// As the grammar spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Linear => "linear",
            Self::Fixed => "fixed",
        }
    }
}

/// `3x exponential(30s)`
impl Default for Policy {
    fn default() -> Self {
        let duration = Duration::from_secs(30);
        Self {
            count: 3,
            backoff: Backoff::Exponential,
            duration,
            transient_only: false,
        }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}x {}({})",
            self.count,
            self.backoff.as_str(),
            duration::format(self.duration)
        )
    }
}

impl Policy {
    /// The wait before the `retry_number`-th retry, counted from 1. `jitter` is a random number
    /// from 0 to 1.
    pub fn delay(&self, retry_number: u32, jitter: f64) -> Duration {
        let nth = retry_number.max(1);
        let wait = match self.backoff {
            Backoff::Exponential => 2u32
                .checked_pow(nth - 1)
                .and_then(|factor| self.duration.checked_mul(factor)),
            Backoff::Linear => self.duration.checked_mul(nth),
            Backoff::Fixed => Some(self.duration),
        };
        let wait = wait.map_or(MAX_DELAY, |wait| wait.min(MAX_DELAY));
        let jitter = if jitter.is_finite() {
            jitter.clamp(0.0, 1.0)
        } else {
            0.0
        };
        wait + wait.mul_f64(JITTER * jitter)
    }

    /// The policy of a compiled plan.
    pub fn from_plan(retry: &plan::Retry) -> Self {
        let backoff = match retry.backoff() {
            plan::retry::Backoff::Exponential => Backoff::Exponential,
            plan::retry::Backoff::Linear => Backoff::Linear,
            plan::retry::Backoff::Fixed => Backoff::Fixed,
        };
        Self {
            count: retry.count.min(MAX_COUNT),
            backoff,
            duration: Duration::from_millis(retry.duration_ms),
            transient_only: retry.transient_only,
        }
    }

    pub(crate) fn to_plan(self) -> plan::Retry {
        let backoff = match self.backoff {
            Backoff::Exponential => plan::retry::Backoff::Exponential,
            Backoff::Linear => plan::retry::Backoff::Linear,
            Backoff::Fixed => plan::retry::Backoff::Fixed,
        };
        plan::Retry {
            count: self.count,
            backoff: backoff.into(),
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            transient_only: self.transient_only,
        }
    }
}

/// Returns the byte of a text that [`parse`] refuses at which its fault begins: the backoff when a
/// good count stands before it, else the text's start.
pub fn fault_offset(text: &str) -> usize {
    let Some((count, rest)) = text.split_once('x') else {
        return 0;
    };
    let is_count = count
        .trim_start()
        .parse()
        .is_ok_and(|count: u32| count <= MAX_COUNT);
    let space = rest.len() - rest.trim_start().len();
    if is_count && space > 0 && space < rest.len() {
        count.len() + 1 + space
    } else {
        0
    }
}

/// Reads `<count>x <backoff>(<duration>)`. Errors say what was found and expected.
pub fn parse(text: &str) -> Result<Policy, String> {
    let wrong = |what: &str| {
        format!(
            "found {}, expected {what}, as in 3x exponential(30s)",
            duration::quoted(text)
        )
    };
    let (count, rest) = text
        .trim()
        .split_once('x')
        .ok_or_else(|| wrong("<count>x <backoff>(<duration>)"))?;
    if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong("a count of retries before the x"));
    }
    let count = count
        .parse()
        .ok()
        .filter(|count| *count <= MAX_COUNT)
        .ok_or_else(|| wrong("a count from 0 to 100"))?;
    let call = rest.trim_start();
    if call.len() == rest.len() {
        return Err(wrong("a space after the x"));
    }
    let (name, argument) = call
        .strip_suffix(')')
        .and_then(|call| call.split_once('('))
        .ok_or_else(|| wrong("exponential(<duration>), linear(<duration>) or fixed(<duration>)"))?;
    let backoff = Backoff::ALL
        .into_iter()
        .find(|backoff| backoff.as_str() == name);
    let backoff = backoff.ok_or_else(|| {
        let near = nearest::suggestion(name, Backoff::ALL.map(Backoff::as_str));
        wrong("exponential, linear or fixed") + &near
    })?;
    Ok(Policy {
        count,
        backoff,
        duration: duration::parse(argument.trim())?,
        transient_only: false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_grammar() {
        for (text, count, backoff, seconds) in [
            ("3x exponential(30s)", 3, Backoff::Exponential, 30),
            ("0x fixed(1s)", 0, Backoff::Fixed, 1),
            ("100x linear(1m30s)", 100, Backoff::Linear, 90),
            (" 5x  fixed( 2h ) ", 5, Backoff::Fixed, 7200),
        ] {
            let policy = Policy {
                count,
                backoff,
                duration: Duration::from_secs(seconds),
                transient_only: false,
            };
            assert_eq!(parse(text), Ok(policy), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "3",
            "3x",
            "x exponential(30s)",
            "-1x fixed(1s)",
            "101x fixed(1s)",
            "3x exponential",
            "3x fixed()",
            "3x exponential(30)",
            "3x fibonacci(30s)",
            "3xfixed(1s)",
            "3x fixed(1s",
            "3x fixed(1s))",
            "3x fixed 1s",
            "3 x fixed(1s)",
            "99999999999x fixed(1s)",
            "3x Fixed(1s)",
            "3x fixed(1s) please",
            "٣x fixed(1s)",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn waits_as_each_backoff_says() {
        let waits = |text: &str| -> Vec<u64> {
            let policy = parse(text).unwrap();
            (1..=5)
                .map(|nth| policy.delay(nth, 0.0).as_secs())
                .collect()
        };
        assert_eq!(waits("5x exponential(30s)"), [30, 60, 120, 240, 480]);
        assert_eq!(waits("5x linear(30s)"), [30, 60, 90, 120, 150]);
        assert_eq!(waits("5x fixed(30s)"), [30, 30, 30, 30, 30]);
        assert_eq!(
            waits("5x exponential(10h)"),
            [36_000, 72_000, 86_400, 86_400, 86_400]
        );
        assert_eq!(waits("5x fixed(2d)"), [86_400; 5]);
    }

    #[test]
    fn jitter_adds_a_tenth_at_most() {
        let policy = parse("3x fixed(100s)").unwrap();
        assert_eq!(policy.delay(1, 0.0), Duration::from_secs(100));
        assert_eq!(policy.delay(1, 0.5), Duration::from_secs(105));
        assert_eq!(policy.delay(1, 1.0), Duration::from_secs(110));
        assert_eq!(policy.delay(1, f64::NAN), Duration::from_secs(100));
    }

    proptest! {
        #[test]
        fn no_wait_passes_the_cap(
            nth in any::<u32>(),
            jitter in any::<f64>(),
            millis in 0u64..=31_622_400_000,
        ) {
            for backoff in Backoff::ALL {
                let policy = Policy {
                    count: 100,
                    backoff,
                    duration: Duration::from_millis(millis),
                    transient_only: true,
                };
                prop_assert!(policy.delay(nth, jitter) <= MAX_DELAY.mul_f64(1.1));
            }
        }

        #[test]
        fn plans_and_texts_read_back(
            count in 0u32..=100,
            index in 0usize..3,
            millis in 0u64..=31_622_400_000,
        ) {
            let duration = Duration::from_millis(millis);
            let policy = Policy {
                count,
                backoff: Backoff::ALL[index],
                duration,
                transient_only: false,
            };
            prop_assert_eq!(parse(&policy.to_string()), Ok(policy));
            prop_assert_eq!(Policy::from_plan(&policy.to_plan()), policy);
        }

        #[test]
        fn no_text_panics(text in "\\PC*|[0-9]{0,3}x ?[a-z]{0,12}\\([0-9a-z]{0,5}\\)?") {
            let _ = parse(&text);
        }
    }
}
