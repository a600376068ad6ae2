//! Cron expressions in Vixie's dialect, and when they are next due in a time zone. Nothing here
//! knows the present.

mod field;
mod search;

pub use jiff::tz::TimeZone;
use kanat_model::Timestamp;

use crate::duration::quoted;
use crate::nearest;
use field::{Field, Values};

/// Five fields that can come true: minute, hour, day of month, month, day of week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronExpression {
    text: String,
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    weekdays: Values,
}

impl CronExpression {
    /// Reads five fields with blanks between them. Errors say what was found and expected, and in
    /// which field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text
            .split([' ', '\t'])
            .filter(|word| !word.is_empty())
            .collect();
        let [minute, hour, day, month, weekday] = words[..] else {
            let hint = if text.trim_start().starts_with('@') {
                "; names such as @daily are not taken"
            } else {
                ""
            };
            return Err(format!(
                "found {}, expected five fields (minute, hour, day of month, month, day of week), \
                 not {}{hint}",
                quoted(text),
                words.len(),
            ));
        };
        let expression = Self {
            text: words.join(" "),
            minutes: Field::Minute.parse(minute)?,
            hours: Field::Hour.parse(hour)?,
            days: Field::Day.parse(day)?,
            months: Field::Month.parse(month)?,
            weekdays: Field::Weekday.parse(weekday)?,
        };
        if expression.is_possible() {
            Ok(expression)
        } else {
            Err(format!(
                "found {}, which never comes: none of its months has such a day",
                quoted(text)
            ))
        }
    }

    /// The fields with one blank between them.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first due instant after `after`, read in `zone`; always later than it. `None` when the
    /// calendar ends first.
    ///
    /// Where a clock is put forward, a time that does not exist is due at the first instant after
    /// the gap. Where it is put back, a time that occurs twice is due at its first occurrence. An
    /// expression with a wildcard in minute or hour goes by elapsed time instead: it is due at each
    /// instant whose reading it matches.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?;
        let due = if self.minutes.is_wildcard() || self.hours.is_wildcard() {
            search::next_elapsed(self, start, zone)
        } else {
            search::next_fixed(self, start, zone)
        }?;
        Some(Timestamp::from_millis(due.as_millisecond())).filter(|due| *due > after)
    }

    /// The first `count` due instants after `after`; fewer when the calendar ends first.
    pub fn upcoming(&self, after: Timestamp, zone: &TimeZone, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next_after(after, zone), |due| {
            self.next_after(*due, zone)
        })
        .take(count)
        .collect()
    }

    /// The last due instant that is not later than `now`, from `first` on, which is due itself and
    /// not later: all that was missed since comes to this one.
    pub fn last_until(&self, first: Timestamp, now: Timestamp, zone: &TimeZone) -> Timestamp {
        // Nothing is due after `end` and until `now`.
        let mut last = first;
        let mut end = now;
        while last < end {
            let middle = last.after(end.since(last) / 2);
            match self.next_after(middle, zone) {
                Some(due) if due <= end => last = due,
                Some(_) | None => end = middle,
            }
        }
        last
    }

    /// Returns whether both day fields must match: one of them is not restricted (spec,
    /// "Schedules": begins with `*`).
    fn needs_both_days(&self) -> bool {
        self.days.is_wildcard() || self.weekdays.is_wildcard()
    }

    /// Returns whether some year has a day that matches.
    fn is_possible(&self) -> bool {
        let by_date = (1..=12u8)
            .filter(|month| self.months.contains(*month))
            .any(|month| (1..=longest(month)).any(|day| self.days.contains(day)));
        by_date || !self.needs_both_days()
    }
}

impl std::fmt::Display for CronExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// The zone with this IANA name. Errors name the nearest one.
pub fn timezone(name: &str) -> Result<TimeZone, String> {
    let plain = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+'));
    let zone = TimeZone::get(name)
        .ok()
        .filter(|zone| plain && zone.iana_name().is_some());
    zone.ok_or_else(|| {
        let known: Vec<String> = jiff::tz::db()
            .available()
            .map(|known| known.as_str().to_owned())
            .collect();
        let near = match zone_of_offset(name) {
            Some(zone) => format!("; a fixed offset is the zone {zone:?}, with the sign reversed"),
            None => nearest::suggestion(name, known.iter().map(String::as_str)),
        };
        format!(
            "found {}, expected the IANA name of a time zone, as in Europe/Berlin{near}",
            quoted(name)
        )
    })
}

/// Returns the IANA zone of a whole-hour offset that is written as `GMT+2` or `+02:00`. The signs
/// of these zones are those of POSIX: `Etc/GMT-2` is two hours ahead of UTC.
fn zone_of_offset(text: &str) -> Option<String> {
    let upper = text.trim().to_ascii_uppercase();
    let offset = upper
        .strip_prefix("GMT")
        .or_else(|| upper.strip_prefix("UTC"))
        .unwrap_or(&upper);
    let (sign, hours) = match offset.split_at_checked(1)? {
        ("+", hours) => ("-", hours),
        ("-", hours) => ("+", hours),
        _ => return None,
    };
    let hours = hours.strip_suffix(":00").unwrap_or(hours);
    let hours: u8 = hours.parse().ok()?;
    let zone = format!("Etc/GMT{sign}{hours}");
    TimeZone::get(&zone).is_ok().then_some(zone)
}

/// The days of a month in its longest year.
fn longest(month: u8) -> u8 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12.. | 0 => 31,
    }
}

#[cfg(test)]
mod tests;
