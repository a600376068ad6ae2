//! Another way to tell when a schedule is due, slow and simple: the clock on the wall, looked at
//! each minute. It shares no code with the search of `kanat_flow`, and no reading of cron
//! expressions.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan};
use kanat_model::Timestamp;

/// How an expression goes by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Minute and hour are fixed: each reading is due once, whatever is done to the clock.
    Fixed,
    /// Minute or hour begins with `*`: each minute that shows a matching reading is due.
    Elapsed,
}

/// All due times after `start` and until `end`, both full minutes, in a zone, of what `matches`
/// says of a reading.
pub fn due(
    zone: &str,
    kind: Kind,
    matches: fn(DateTime) -> bool,
    start: Timestamp,
    end: Timestamp,
) -> Vec<Timestamp> {
    let zone = TimeZone::get(zone).unwrap();
    let minute = SignedDuration::from_mins(1);
    let mut instant = jiff::Timestamp::from_millisecond(start.as_millis()).unwrap();
    let end = jiff::Timestamp::from_millisecond(end.as_millis()).unwrap();
    // The latest reading that the clock has shown.
    let mut shown = zone.to_datetime(instant);
    let mut due = Vec::new();
    while instant < end {
        instant += minute;
        let reading = zone.to_datetime(instant);
        let is_due = match kind {
            Kind::Elapsed => matches(reading),
            // A clock put forward passes over readings that are due now; one put back shows again
            // what was due before.
            Kind::Fixed => {
                let mut any = false;
                while shown < reading {
                    shown += 1.minute();
                    any |= matches(shown);
                }
                any
            }
        };
        if is_due {
            due.push(Timestamp::from_millis(instant.as_millisecond()));
        }
    }
    due
}

#[cfg(test)]
mod tests {
    use super::super::at;
    use super::*;

    #[test]
    fn it_knows_the_days_on_which_berlin_changes_its_clocks() {
        let half_past_two = |reading: DateTime| (reading.hour(), reading.minute()) == (2, 30);
        let due = |kind, day: &str, until: &str| {
            due("Europe/Berlin", kind, half_past_two, at(day), at(until))
        };
        let spring = "2018-03-24T22:00:00Z";
        let after = "2018-03-25T22:00:00Z";
        assert_eq!(
            due(Kind::Fixed, spring, after),
            [at("2018-03-25T01:00:00Z")]
        );
        assert_eq!(due(Kind::Elapsed, spring, after), []);
        let autumn = "2018-10-27T22:00:00Z";
        let after = "2018-10-28T22:00:00Z";
        assert_eq!(
            due(Kind::Fixed, autumn, after),
            [at("2018-10-28T00:30:00Z")]
        );
        assert_eq!(
            due(Kind::Elapsed, autumn, after),
            [at("2018-10-28T00:30:00Z"), at("2018-10-28T01:30:00Z")]
        );
    }
}
