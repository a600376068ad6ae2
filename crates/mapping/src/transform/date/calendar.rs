//! Calculations with dates: durations of the clock and of the calendar, in UTC.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Span};

use super::super::TransformResult;
use super::instant::{self, Instant};
use crate::EvaluationError;
use crate::environment::Environment;
use crate::node::Node;
use crate::value::Value;

/// Steps charged for a date that is calculated.
pub(in crate::transform) const STEPS: u64 = 1_000;

const MILLISECOND: i128 = 1_000_000;
const DAY: i128 = 86_400_000 * MILLISECOND;
const EXPECTED: &str = "a duration such as 30s, -2h, 1d, 1w, 1mo, 1y or 1y6mo";

/// Duration that a date is moved by: months by the calendar, then milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    months: i64,
    milliseconds: i64,
}

/// Unit of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Unit of so many nanoseconds.
    Clock(i128),
    /// Unit of so many months.
    Months(i64),
}

pub(in crate::transform) const UNITS: &[(&str, Unit)] = &[
    ("milliseconds", Unit::Clock(MILLISECOND)),
    ("millisecond", Unit::Clock(MILLISECOND)),
    ("seconds", Unit::Clock(1_000 * MILLISECOND)),
    ("second", Unit::Clock(1_000 * MILLISECOND)),
    ("minutes", Unit::Clock(60_000 * MILLISECOND)),
    ("minute", Unit::Clock(60_000 * MILLISECOND)),
    ("hours", Unit::Clock(3_600_000 * MILLISECOND)),
    ("hour", Unit::Clock(3_600_000 * MILLISECOND)),
    ("days", Unit::Clock(DAY)),
    ("day", Unit::Clock(DAY)),
    ("weeks", Unit::Clock(7 * DAY)),
    ("week", Unit::Clock(7 * DAY)),
    ("months", Unit::Months(1)),
    ("month", Unit::Months(1)),
    ("years", Unit::Months(12)),
    ("year", Unit::Months(12)),
];

/// Units of durations, the largest first: their months and their milliseconds.
const DURATIONS: [(&str, i64, i64); 8] = [
    ("y", 12, 0),
    ("mo", 1, 0),
    ("w", 0, 604_800_000),
    ("d", 0, 86_400_000),
    ("h", 0, 3_600_000),
    ("m", 0, 60_000),
    ("s", 0, 1_000),
    ("ms", 0, 1),
];

impl Shift {
    /// Parses whole numbers with their units, the largest first and each at most once, with an
    /// optional minus before all of them. The error is a message.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(40).collect();
        Self::read(text).ok_or_else(|| format!("found `{shown}`, expected {EXPECTED}"))
    }

    fn read(text: &str) -> Option<Self> {
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let mut shift = Self {
            months: 0,
            milliseconds: 0,
        };
        let mut units = DURATIONS.iter();
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
            let count: i64 = rest[..digits].parse().ok()?;
            let after = &rest[digits..];
            let end = after.find(|letter: char| !letter.is_ascii_alphabetic());
            let (unit, after) = after.split_at(end.unwrap_or(after.len()));
            let (_, months, milliseconds) = units.find(|(name, ..)| *name == unit)?;
            let months = count.checked_mul(sign * months)?;
            let milliseconds = count.checked_mul(sign * milliseconds)?;
            shift.months = shift.months.checked_add(months)?;
            shift.milliseconds = shift.milliseconds.checked_add(milliseconds)?;
            rest = after;
        }
        Some(shift)
    }

    /// Moves a date; `None` beyond the years that there are.
    fn of(self, date: DateTime) -> Option<DateTime> {
        let months = Span::new().try_months(self.months).ok()?;
        let moved = date.checked_add(months).ok()?;
        moved
            .checked_add(SignedDuration::from_millis(self.milliseconds))
            .ok()
    }
}

/// Moves a date, and writes it as `now` does.
pub(in crate::transform) fn add<'s>(value: &Value<'s>, shift: Shift) -> TransformResult<'s> {
    let moved = instant::read(value)?
        .in_utc()
        .and_then(|date| shift.of(date));
    moved
        .map(|date| Value::plain(written(date)))
        .ok_or_else(|| EvaluationError::mapping("the date is beyond the years from -9999 to 9999"))
}

fn written(date: DateTime) -> String {
    let year = match date.year() {
        year @ 0.. => format!("{year:04}"),
        year => format!("-{:06}", -year),
    };
    format!("{year}{}Z", date.strftime("-%m-%dT%H:%M:%S%.3f"))
}

/// Returns the whole units from the other date to the value.
pub(in crate::transform) fn difference<'s>(
    value: &Value<'s>,
    unit: Unit,
    arguments: &'s [Node],
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    environment.spend(STEPS)?;
    let other = environment.argument(arguments.first())?;
    if other.is_missing() {
        return Err(EvaluationError::mapping(format!(
            "the other date is {}",
            other.type_name()
        )));
    }
    let later = instant::read(value)?;
    let earlier = instant::read(&other).map_err(|mut error| {
        error.message = format!("the other date: {}", error.message);
        error
    })?;
    let count = match unit {
        Unit::Clock(length) => (later.as_nanosecond() - earlier.as_nanosecond()) / length,
        Unit::Months(length) => i128::from(months(later, earlier) / length),
    };
    Ok(Value::number(count.to_string()))
}

/// Returns the months of the calendar that have passed between two instants.
fn months(later: Instant, earlier: Instant) -> i64 {
    let (Some(later), Some(earlier)) = (later.in_utc(), earlier.in_utc()) else {
        return 0;
    };
    if later < earlier {
        return -passed(earlier, later);
    }
    passed(later, earlier)
}

fn passed(later: DateTime, earlier: DateTime) -> i64 {
    let of = |date: DateTime| i64::from(date.year()) * 12 + i64::from(date.month());
    let is_short = (later.day(), later.time()) < (earlier.day(), earlier.time());
    of(later) - of(earlier) - i64::from(is_short)
}
