//! Formats with the tokens of day.js. `jiff::fmt::strtime` has other tokens and no literal text in
//! brackets, so that a translation to it would need the same parser and table.

use std::fmt::Write;

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::instant::Instant;
use crate::parse::suggestion;

/// Parsed format and the time zone of its output.
#[derive(Debug, Clone)]
pub(crate) struct Format {
    pieces: Vec<Piece>,
    zone: TimeZone,
}

/// Steps charged for a date.
const DATE: u64 = 500;
/// Steps charged for each piece of a format.
const PIECE: u64 = 100;

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Token(Token),
}

/// A token of a date format; each variant is called by its spelling.
#[expect(clippy::upper_case_acronyms, reason = "the tokens' own spelling")]
#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
    YYYY,
    YY,
    MMMM,
    MMM,
    MM,
    M,
    DD,
    D,
    WeekdayName,
    WeekdayShort,
    WeekdayShortest,
    WeekdayNumber,
    HH,
    H,
    HalfHH,
    HalfH,
    MinuteMM,
    MinuteM,
    SS,
    S,
    Millisecond,
    UpperHalf,
    LowerHalf,
    OffsetColon,
    Offset,
    Seconds,
    Milliseconds,
}

/// Tokens by their spelling. A longer one stands before the ones that it begins with.
const TOKENS: [(&str, Token); 27] = [
    ("YYYY", Token::YYYY),
    ("YY", Token::YY),
    ("MMMM", Token::MMMM),
    ("MMM", Token::MMM),
    ("MM", Token::MM),
    ("M", Token::M),
    ("DD", Token::DD),
    ("D", Token::D),
    ("dddd", Token::WeekdayName),
    ("ddd", Token::WeekdayShort),
    ("dd", Token::WeekdayShortest),
    ("d", Token::WeekdayNumber),
    ("HH", Token::HH),
    ("H", Token::H),
    ("hh", Token::HalfHH),
    ("h", Token::HalfH),
    ("mm", Token::MinuteMM),
    ("m", Token::MinuteM),
    ("ss", Token::SS),
    ("s", Token::S),
    ("SSS", Token::Millisecond),
    ("A", Token::UpperHalf),
    ("a", Token::LowerHalf),
    ("ZZ", Token::Offset),
    ("Z", Token::OffsetColon),
    ("X", Token::Seconds),
    ("x", Token::Milliseconds),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

impl Format {
    /// Returns the steps of reading and writing a date.
    pub fn effort(&self) -> u64 {
        DATE + PIECE * self.pieces.len() as u64
    }

    /// Parses a format. Letters that are no token stand for themselves, and so does text in
    /// brackets.
    pub fn parse(text: &str, zone: TimeZone) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let bracketed = rest
                .strip_prefix('[')
                .and_then(|inner| inner.split_once(']'));
            if let Some((literal, after)) = bracketed.filter(|(literal, _)| !literal.is_empty()) {
                push_literal(&mut pieces, literal);
                rest = after;
            } else if let Some((name, token)) =
                TOKENS.iter().find(|(name, _)| rest.starts_with(name))
            {
                pieces.push(Piece::Token(*token));
                rest = &rest[name.len()..];
            } else if letter == 'Y' {
                return Err("found `Y`, expected the year as `YYYY` or `YY`".to_owned());
            } else {
                push_literal(&mut pieces, &rest[..letter.len_utf8()]);
                rest = &rest[letter.len_utf8()..];
            }
        }
        if pieces.is_empty() {
            return Err("found an empty format, expected one such as `YYYY-MM-DD`".to_owned());
        }
        Ok(Self { pieces, zone })
    }

    pub(super) fn write(&self, instant: Instant) -> String {
        let time = instant.zoned(&self.zone);
        let mut out = String::with_capacity(32);
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                // Writing to a string cannot fail.
                Piece::Token(token) => drop(write_token(*token, instant, &time, &mut out)),
            }
        }
        out
    }
}

/// Returns the fault of a format with letters that are no token and stand in no brackets (`T` may
/// part a date from a time), or with minutes where its month should be.
pub(crate) fn misspelt(format: &str) -> Option<String> {
    let mut rest = format;
    let mut names = Vec::new();
    while let Some(letter) = rest.chars().next() {
        let literal = rest
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'));
        let token = TOKENS.iter().find(|(name, _)| rest.starts_with(name));
        rest = match (literal, token) {
            (Some((_, after)), _) => after,
            (None, Some((name, _))) => {
                names.push(*name);
                &rest[name.len()..]
            }
            (None, None) if letter.is_ascii_alphabetic() && !matches!(letter, 'T' | 'Y') => {
                let end = rest.find(|c| c != letter).unwrap_or(rest.len());
                let found = &rest[..end];
                let meant = meant(format, found);
                return Some(format!(
                    "found `{found}`, which is no token of a date (text stands in brackets, as in \
                     `[{found}]`){meant}"
                ));
            }
            (None, None) => &rest[letter.len_utf8()..],
        };
    }
    let has = |letters: &[char]| names.iter().any(|name| name.starts_with(letters));
    let lacks_month = has(&['Y']) && has(&['m']) && !has(&['M', 'H', 'h']);
    lacks_month.then(|| {
        let meant = format.replace('m', "M");
        format!("found minutes (`m`) and no month (`M`); did you mean `{meant}`?")
    })
}

/// Returns `; did you mean ...?` for letters that are no token: for a year, the whole format as it
/// was probably meant.
fn meant(format: &str, found: &str) -> String {
    if !found.starts_with('y') {
        let tokens = TOKENS.map(|(name, _)| name);
        return match found.len() {
            1 => String::new(),
            _ => suggestion(found, &tokens),
        };
    }
    let year = if found.len() == 2 { "YY" } else { "YYYY" };
    let mut meant = format.replace(found, year);
    if !meant.contains('D') {
        meant = meant.replace("dd", "DD");
    }
    if !meant.contains(['H', 'h', 'M']) {
        meant = meant.replace('m', "M");
    }
    format!("; did you mean `{meant}`?")
}

fn push_literal(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Literal(literal)) => literal.push_str(text),
        Some(Piece::Token(_)) | None => pieces.push(Piece::Literal(text.to_owned())),
    }
}

fn write_token(token: Token, instant: Instant, time: &Zoned, out: &mut String) -> std::fmt::Result {
    let half_hour = || (time.hour() + 11) % 12 + 1;
    let weekday = WEEKDAYS[time.weekday().to_sunday_zero_offset().unsigned_abs() as usize % 7];
    let year = time.year() + instant.later_years();
    let month = MONTHS[(time.month().unsigned_abs() as usize + 11) % 12];
    match token {
        Token::YYYY => write!(out, "{year:04}"),
        Token::YY => write!(out, "{:02}", year.rem_euclid(100)),
        Token::MMMM => out.write_str(month),
        Token::MMM => out.write_str(&month[..3]),
        Token::MM => write!(out, "{:02}", time.month()),
        Token::M => write!(out, "{}", time.month()),
        Token::DD => write!(out, "{:02}", time.day()),
        Token::D => write!(out, "{}", time.day()),
        Token::WeekdayName => out.write_str(weekday),
        Token::WeekdayShort => out.write_str(&weekday[..3]),
        Token::WeekdayShortest => out.write_str(&weekday[..2]),
        Token::WeekdayNumber => write!(out, "{}", time.weekday().to_sunday_zero_offset()),
        Token::HH => write!(out, "{:02}", time.hour()),
        Token::H => write!(out, "{}", time.hour()),
        Token::HalfHH => write!(out, "{:02}", half_hour()),
        Token::HalfH => write!(out, "{}", half_hour()),
        Token::MinuteMM => write!(out, "{:02}", time.minute()),
        Token::MinuteM => write!(out, "{}", time.minute()),
        Token::SS => write!(out, "{:02}", time.second()),
        Token::S => write!(out, "{}", time.second()),
        Token::Millisecond => write!(out, "{:03}", time.millisecond()),
        Token::UpperHalf => out.write_str(if time.hour() < 12 { "AM" } else { "PM" }),
        Token::LowerHalf => out.write_str(if time.hour() < 12 { "am" } else { "pm" }),
        Token::OffsetColon => write_offset(time, ":", out),
        Token::Offset => write_offset(time, "", out),
        Token::Seconds => write!(out, "{}", instant.as_millisecond().div_euclid(1000)),
        Token::Milliseconds => write!(out, "{}", instant.as_millisecond()),
    }
}

fn write_offset(time: &Zoned, separator: &str, out: &mut String) -> std::fmt::Result {
    let minutes = time.offset().seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    write!(
        out,
        "{sign}{:02}{separator}{:02}",
        minutes.abs() / 60,
        minutes.abs() % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[track_caller]
    fn check(instant: &str, format: &str, zone: &str, expected: &str) {
        let zone = super::super::zone(zone).unwrap();
        let instant = super::super::instant::read(&Value::plain(instant.to_owned())).unwrap();
        let written = Format::parse(format, zone).unwrap().write(instant);
        assert_eq!(written, expected, "{instant:?} in {format}");
    }

    #[test]
    fn writes_every_token_as_day_js_does() {
        let check = |format, expected| check("2026-02-01T05:06:07.008Z", format, "UTC", expected);
        check(
            "YYYY YY MMMM MMM MM M DD D",
            "2026 26 February Feb 02 2 01 1",
        );
        check("dddd ddd dd d", "Sunday Sun Su 0");
        check(
            "HH H hh h mm m ss s SSS A a",
            "05 5 05 5 06 6 07 7 008 AM am",
        );
        check("Z ZZ X x", "+00:00 +0000 1769922367 1769922367008");
        check("YYYY-MM-DDTHH:mm:ss.SSS[Z]", "2026-02-01T05:06:07.008Z");
        check("[Year] YYYY[, at] H [[]", "Year 2026, at 5 [");
        check("DDDMMMMM", "011February2");
        check("[] Q", "[] Q");
    }

    #[test]
    fn writes_noon_and_midnight() {
        check("2026-01-01T00:30:00Z", "h hh A", "UTC", "12 12 AM");
        check("2026-01-01T12:30:00Z", "h hh a", "UTC", "12 12 pm");
        check("2026-01-01T23:30:00Z", "h hh A", "UTC", "11 11 PM");
    }

    #[test]
    fn writes_the_last_day_of_the_year_9999() {
        check(
            "9999-12-31",
            "YYYY-MM-DD YY dddd x",
            "UTC",
            "9999-12-31 99 Friday 253402214400000",
        );
        check(
            "9999-12-31T22:30:00Z",
            "YYYY-MM-DD HH:mm",
            "Europe/Berlin",
            "9999-12-31 23:30",
        );
    }

    #[test]
    fn writes_in_a_zone() {
        check(
            "2026-01-31T23:30:00Z",
            "YYYY-MM-DD HH:mm Z",
            "Europe/Berlin",
            "2026-02-01 00:30 +01:00",
        );
        check(
            "2026-07-31T23:30:00Z",
            "YYYY-MM-DD HH:mm ZZ",
            "Europe/Berlin",
            "2026-08-01 01:30 +0200",
        );
        check(
            "2026-07-31T01:00:00Z",
            "DD HH:mm Z",
            "America/St_Johns",
            "30 22:30 -02:30",
        );
        check("2026-07-31T01:00:00Z", "HH:mm Z", "+05:45", "06:45 +05:45");
        check("1969-12-31T23:59:59.500Z", "X x", "UTC", "-1 -500");
    }

    #[test]
    fn letters_that_are_no_token_are_reported_with_the_token_that_was_meant() {
        for (format, found, meant) in [
            ("dd.mm.yyyy", "yyyy", "; did you mean `DD.MM.YYYY`?"),
            (
                "yyyy-MM-dd HH:mm",
                "yyyy",
                "; did you mean `YYYY-MM-DD HH:mm`?",
            ),
            ("D.M.yy", "yy", "; did you mean `D.M.YY`?"),
            ("YYYY-[W]WW", "WW", ""),
            ("DD f", "f", ""),
        ] {
            let fault = misspelt(format).unwrap();
            let start = format!("found `{found}`, which is no token of a date (text stands in");
            assert!(fault.starts_with(&start), "{fault}");
            assert!(
                fault.ends_with(&format!("as in `[{found}]`){meant}")),
                "{fault}"
            );
        }
        for format in [
            "YYYY-MM-DDTHH:mm:ss.SSS[Z]",
            "[Year] YYYY[, at] H [[]",
            "DD. MMMM YYYY",
            "YYYY年",
            "dddd, hh:mm A Z x",
        ] {
            assert_eq!(misspelt(format), None, "{format}");
        }
    }

    #[test]
    fn refuses_what_is_no_format() {
        assert!(Format::parse("", TimeZone::UTC).is_err());
        assert!(Format::parse("YYY", TimeZone::UTC).is_err());
    }
    #[test]
    fn minutes_in_the_place_of_the_month_are_reported() {
        for (format, meant) in [
            ("YYYY-mm-DD", "YYYY-MM-DD"),
            ("DD.m.YY", "DD.M.YY"),
            ("YYYYmm", "YYYYMM"),
        ] {
            let fault = misspelt(format).unwrap();
            let expected = format!("did you mean `{meant}`?");
            assert!(fault.ends_with(&expected), "{format}: {fault}");
        }
        for format in [
            "YYYY-MM-DD HH:mm",
            "YYYY HH:mm",
            "mm:ss",
            "YYYY",
            "YYYY-MM mm",
        ] {
            assert_eq!(misspelt(format), None, "{format}");
        }
    }
}
