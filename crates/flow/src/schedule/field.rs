//! One field of a cron expression: the values that it matches.

use crate::duration::quoted;

/// The values of a field, as bits, and whether its text begins with `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    bits: u64,
    wildcard: bool,
}

impl Values {
    pub(super) fn contains(self, value: u8) -> bool {
        value < 64 && self.bits >> value & 1 == 1
    }

    /// The least value that is `from` or more.
    pub(super) fn at_least(self, from: u8) -> Option<u8> {
        (from..64).find(|value| self.contains(*value))
    }

    pub(super) fn is_wildcard(self) -> bool {
        self.wildcard
    }
}

/// The five fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Minute,
    Hour,
    Day,
    Month,
    /// 0 and 7 are Sunday.
    Weekday,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Field {
    /// Reads a list of values, ranges and wildcards, each with an optional step.
    pub(super) fn parse(self, text: &str) -> Result<Values, String> {
        let mut bits = 0;
        for item in text.split(',') {
            bits |= self.item(text, item)?;
        }
        if self == Self::Weekday && bits >> 7 & 1 == 1 {
            bits = bits & !(1 << 7) | 1;
        }
        Ok(Values {
            bits,
            wildcard: text.starts_with('*'),
        })
    }

    fn item(self, text: &str, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => self.bounds(),
            Some((first, last)) => (self.value(text, first)?, self.range_end(text, last)?),
            None if step.is_some() => {
                return Err(self.wrong(text, "a range or * before a step, as in 5-59/10"));
            }
            None => {
                let value = self.value(text, range)?;
                (value, value)
            }
        };
        if first > last {
            return Err(self.wrong(text, "a range that goes up"));
        }
        let step = step.map_or(Ok(1), |step| self.step(text, step))?;
        Ok((first..=last)
            .step_by(step)
            .fold(0, |bits, value| bits | 1 << value))
    }

    fn step(self, text: &str, step: &str) -> Result<usize, String> {
        let most = self.count();
        number(step)
            .filter(|step| (1..=most).contains(step))
            .map(usize::from)
            .ok_or_else(|| self.wrong(text, &format!("a step from 1 to {most}")))
    }

    /// The end of a range; there, Sunday is 7.
    fn range_end(self, text: &str, word: &str) -> Result<u8, String> {
        if self == Self::Weekday && word.eq_ignore_ascii_case(WEEKDAYS[0]) {
            Ok(7)
        } else {
            self.value(text, word)
        }
    }

    fn value(self, text: &str, word: &str) -> Result<u8, String> {
        let (least, most) = self.bounds();
        let named = |names: &[&str]| {
            names
                .iter()
                .position(|name| name.eq_ignore_ascii_case(word))
        };
        let name = match self {
            Self::Month => named(&MONTHS).map(|index| index + 1),
            Self::Weekday => named(&WEEKDAYS),
            Self::Minute | Self::Hour | Self::Day => None,
        };
        let value = name
            .and_then(|value| u8::try_from(value).ok())
            .or_else(|| number(word));
        value
            .filter(|value| (least..=most).contains(value))
            .ok_or_else(|| self.wrong(text, self.expectation()))
    }

    fn wrong(self, text: &str, expected: &str) -> String {
        format!(
            "found {} for the {}, expected {expected}",
            quoted(text),
            self.name()
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of month",
            Self::Month => "month",
            Self::Weekday => "day of week",
        }
    }

    fn expectation(self) -> &'static str {
        match self {
            Self::Minute => "numbers from 0 to 59",
            Self::Hour => "numbers from 0 to 23",
            Self::Day => "numbers from 1 to 31",
            Self::Month => "numbers from 1 to 12, or jan to dec",
            Self::Weekday => "numbers from 0 to 7, or sun to sat",
        }
    }

    fn bounds(self) -> (u8, u8) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// How many different values there are: the longest step.
    fn count(self) -> u8 {
        match self {
            Self::Minute => 60,
            Self::Hour => 24,
            Self::Day => 31,
            Self::Month => 12,
            Self::Weekday => 7,
        }
    }
}

/// One or two digits.
fn number(word: &str) -> Option<u8> {
    let digits = matches!(word.len(), 1 | 2) && word.bytes().all(|b| b.is_ascii_digit());
    if digits { word.parse().ok() } else { None }
}
