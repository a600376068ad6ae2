//! The next due instant: a walk over the calendar, and over the places where a zone's clock jumps.

use jiff::civil::{Date, DateTime, time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::CronExpression;

/// Beyond so many years nothing new comes: a leap day falls on a given weekday at least every forty
/// years.
const YEARS: i16 = 100;

/// By elapsed time: the first instant after `start` whose reading matches.
pub(super) fn next_elapsed(
    cron: &CronExpression,
    start: Timestamp,
    zone: &TimeZone,
) -> Option<Timestamp> {
    let mut from = start.checked_add(1.millisecond()).ok()?;
    loop {
        let offset = zone.to_offset(from);
        let due = next_reading(cron, minute_from(offset.to_datetime(from))?)
            .map(|due| offset.to_timestamp(due));
        let jump = zone
            .following(from)
            .next()
            .map(|transition| transition.timestamp());
        match (due, jump) {
            (Some(Ok(due)), Some(jump)) if due < jump => return Some(due),
            (Some(due), None) => return due.ok(),
            (None, _) => return None,
            (Some(_), Some(jump)) => from = jump,
        }
    }
}

/// By the calendar: the first instant after `start` at which a matching reading is due.
pub(super) fn next_fixed(
    cron: &CronExpression,
    start: Timestamp,
    zone: &TimeZone,
) -> Option<Timestamp> {
    let mut reading = minute_of(zone.to_datetime(start))?;
    loop {
        reading = next_reading(cron, reading)?;
        let due = instant(reading, zone)?;
        if due > start {
            return Some(due);
        }
        reading = reading.checked_add(1.minute()).ok()?;
    }
}

/// When a clock in `zone` first shows `reading`, or would have, had it not been put forward over
/// it.
fn instant(reading: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(reading).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(reading).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(reading).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            let before_jump = after.to_timestamp(reading).ok()?;
            zone.following(before_jump)
                .next()
                .map(|transition| transition.timestamp())
        }
    }
}

/// The first matching reading that is `from` or later.
fn next_reading(cron: &CronExpression, from: DateTime) -> Option<DateTime> {
    let last_year = from.year().saturating_add(YEARS);
    let mut date = from.date();
    while date.year() <= last_year {
        if !cron.months.contains(part(date.month())) {
            date = date.last_of_month().tomorrow().ok()?;
            continue;
        }
        let (hour, minute) = if date == from.date() {
            (from.hour(), from.minute())
        } else {
            (0, 0)
        };
        if day_matches(cron, date)
            && let Some(reading) = time_of_day(cron, date, part(hour), part(minute))
        {
            return Some(reading);
        }
        date = date.tomorrow().ok()?;
    }
    None
}

/// The first matching time of the day that is this one or later.
fn time_of_day(cron: &CronExpression, date: Date, hour: u8, minute: u8) -> Option<DateTime> {
    let next = cron.hours.at_least(hour)?;
    let (hour, minute) = match cron.minutes.at_least(if next == hour { minute } else { 0 }) {
        Some(minute) => (next, minute),
        None => (cron.hours.at_least(next + 1)?, cron.minutes.at_least(0)?),
    };
    Some(date.to_datetime(time(
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        0,
        0,
    )))
}

fn day_matches(cron: &CronExpression, date: Date) -> bool {
    let by_date = cron.days.contains(part(date.day()));
    let by_weekday = cron
        .weekdays
        .contains(part(date.weekday().to_sunday_zero_offset()));
    if cron.needs_both_days() {
        by_date && by_weekday
    } else {
        by_date || by_weekday
    }
}

/// The minute that `reading` is in.
fn minute_of(reading: DateTime) -> Option<DateTime> {
    reading.with().second(0).subsec_nanosecond(0).build().ok()
}

/// `reading`, or the next full minute.
fn minute_from(reading: DateTime) -> Option<DateTime> {
    let minute = minute_of(reading)?;
    if minute == reading {
        Some(minute)
    } else {
        minute.checked_add(1.minute()).ok()
    }
}

/// Parts of dates and times are small and not negative.
fn part(value: i8) -> u8 {
    value.unsigned_abs()
}
