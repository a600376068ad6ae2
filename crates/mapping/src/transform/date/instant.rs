//! Instants, read from ISO 8601, or from seconds or milliseconds since 1970.

use jiff::civil::{Date, DateTime, ISOWeekDate};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::EvaluationError;
use crate::transform::refused;
use crate::value::Value;
use kanat_json::Decimal;

/// Numbers below this are seconds (until the year 5138), from it on milliseconds (since March
/// 1973).
const FIRST_MILLISECONDS: &str = "100000000000";
const EXPECTED: &str = "a date in ISO 8601, or seconds or milliseconds since 1970";

/// Years after which the calendar repeats, days of the week included.
const CYCLE_YEARS: i16 = 400;
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// 9600-01-01T00:00:00Z, the end of the instants that are kept one cycle early.
const CYCLE_END: i64 = 253_402_300_800 - CYCLE_SECONDS;

/// An instant from the year -9999 to the end of 9999.
///
/// `jiff` has room for every offset at the end of its range, so that its timestamps end on
/// 9999-12-30. The day and a half after that is kept one cycle of the calendar early.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instant {
    timestamp: Timestamp,
    /// The instant is one cycle of the calendar after `timestamp`.
    late: bool,
}

impl Instant {
    /// Returns date and time of day in a zone; the year is [`Instant::later_years`] later.
    pub fn zoned(self, zone: &TimeZone) -> Zoned {
        self.timestamp.to_zoned(zone.clone())
    }

    pub fn later_years(self) -> i16 {
        if self.late { CYCLE_YEARS } else { 0 }
    }

    /// Returns the milliseconds since 1970.
    pub fn as_millisecond(self) -> i64 {
        self.timestamp.as_millisecond() + if self.late { CYCLE_SECONDS * 1_000 } else { 0 }
    }

    /// Returns the nanoseconds since 1970.
    pub fn as_nanosecond(self) -> i128 {
        let later = if self.late { CYCLE_SECONDS } else { 0 };
        self.timestamp.as_nanosecond() + i128::from(later) * 1_000_000_000
    }

    /// Returns date and time of day in UTC; `None` beyond the year 9999.
    pub fn in_utc(self) -> Option<DateTime> {
        let early = self.zoned(&TimeZone::UTC).datetime();
        early
            .with()
            .year(early.year() + self.later_years())
            .build()
            .ok()
    }

    fn early(timestamp: Timestamp) -> Self {
        Self {
            timestamp,
            late: false,
        }
    }

    fn late(timestamp: Timestamp) -> Option<Self> {
        (timestamp.as_second() < CYCLE_END).then_some(Self {
            timestamp,
            late: true,
        })
    }
}

/// Reads an instant. A time without an offset is in UTC.
pub(super) fn read(value: &Value) -> Result<Instant, EvaluationError> {
    let found = match value {
        Value::Number(digits) => epoch(digits),
        Value::String(text) => {
            let text = text.decode();
            let text = text.trim();
            if is_digits(text) && !is_basic_date(text) {
                epoch(text)
            } else {
                of_text(text)
            }
        }
        Value::Undefined | Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            return Err(refused(value, EXPECTED));
        }
    };
    found.ok_or_else(|| {
        EvaluationError::mapping(format!("expected {EXPECTED}, from the year -9999 to 9999"))
    })
}

fn of_text(text: &str) -> Option<Instant> {
    let late = || Instant::late(iso(&format!("9599{}", text.strip_prefix("9999")?))?);
    iso(text).map(Instant::early).or_else(late)
}

fn iso(text: &str) -> Option<Timestamp> {
    let civil = || text.parse::<DateTime>().ok().or_else(|| day(text));
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| TimeZone::UTC.to_timestamp(civil()?).ok())
}

/// Reads the first day of a month, `2026-01`, or a day of a week, `2026-W05-6`.
fn day(text: &str) -> Option<DateTime> {
    let of_week = || text.parse::<ISOWeekDate>().map(ISOWeekDate::date);
    let date = if text.len() == "2026-01".len() {
        format!("{text}-01").parse::<Date>()
    } else {
        of_week()
    };
    date.ok().map(DateTime::from)
}

fn epoch(digits: &str) -> Option<Instant> {
    let number = Decimal::parse_bounded(digits).ok()?;
    let seconds = number.clone().abs() < Decimal::parse(FIRST_MILLISECONDS)?;
    let milliseconds = if seconds {
        number.times_power_of_ten(3)
    } else {
        number
    };
    let milliseconds: i64 = milliseconds.plain().split('.').next()?.parse().ok()?;
    let late = || {
        Instant::late(
            Timestamp::from_millisecond(milliseconds.checked_sub(CYCLE_SECONDS * 1_000)?).ok()?,
        )
    };
    Timestamp::from_millisecond(milliseconds)
        .ok()
        .map(Instant::early)
        .or_else(late)
}

/// Returns whether the text is digits, with an optional sign and decimals.
fn is_digits(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction)
}

/// Returns whether eight digits are a date, such as `20260131`.
fn is_basic_date(text: &str) -> bool {
    text.len() == 8 && text.parse::<Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(json: &str, expected: Option<&str>) {
        let found = read(&Value::from_json(json)).ok().map(|instant| {
            let time = instant.zoned(&TimeZone::UTC);
            let year = time.year() + instant.later_years();
            format!("{year:04}{}Z", time.strftime("-%m-%dT%H:%M:%S%.3f"))
        });
        assert_eq!(found.as_deref(), expected, "{json}");
    }

    #[test]
    fn reads_iso_8601() {
        let expected = Some("2026-01-31T08:15:00.123Z");
        reads(r#""2026-01-31T08:15:00.123Z""#, expected);
        reads(r#""2026-01-31T09:15:00.123+01:00""#, expected);
        reads(r#""2026-01-31T03:15:00.123-0500""#, expected);
        reads(r#""2026-01-31 08:15:00.123""#, expected);
        reads(r#"" 20260131T081500.123Z ""#, expected);
        reads(r#""2026-01-31""#, Some("2026-01-31T00:00:00.000Z"));
        reads(r#""20260131""#, Some("2026-01-31T00:00:00.000Z"));
        reads(r#""2026-01""#, Some("2026-01-01T00:00:00.000Z"));
        reads(r#""2026-W05-6""#, Some("2026-01-31T00:00:00.000Z"));
        reads(r#""2026-01-31T08:15""#, Some("2026-01-31T08:15:00.000Z"));
        for wrong in [
            r#""""#,
            r#""2026-13""#,
            r#""2026-W54-1""#,
            r#""2026-02-30""#,
            r#""31.01.2026""#,
            r#""tomorrow""#,
            "true",
            "[]",
            "{}",
        ] {
            reads(wrong, None);
        }
    }

    #[test]
    fn reads_the_last_day_of_the_year_9999() {
        reads(r#""9999-12-30""#, Some("9999-12-30T00:00:00.000Z"));
        reads(r#""9999-12-31""#, Some("9999-12-31T00:00:00.000Z"));
        reads(r#""99991231""#, Some("9999-12-31T00:00:00.000Z"));
        reads(
            r#""9999-12-31T23:59:59.999Z""#,
            Some("9999-12-31T23:59:59.999Z"),
        );
        reads(
            r#""9999-12-31T23:59:59+02:00""#,
            Some("9999-12-31T21:59:59.000Z"),
        );
        reads("253402300799999", Some("9999-12-31T23:59:59.999Z"));
        for wrong in [
            r#""9999-12-31T23:59:59-02:00""#,
            "253402300800000",
            r#""10000-01-01""#,
        ] {
            reads(wrong, None);
        }
    }

    #[test]
    fn reads_seconds_and_milliseconds() {
        for json in [
            "1769847300123",
            "1769847300.123",
            r#""1769847300123""#,
            r#""1769847300.1239""#,
            "1.769847300123e12",
        ] {
            reads(json, Some("2026-01-31T08:15:00.123Z"));
        }
        reads("0", Some("1970-01-01T00:00:00.000Z"));
        reads(r#""-86400""#, Some("1969-12-31T00:00:00.000Z"));
        reads("99999999999", Some("5138-11-16T09:46:39.000Z"));
        for wrong in ["1e300", "1e10001", "-1e18"] {
            reads(wrong, None);
        }
    }
}
