//! The `date` transform: writes instants with the format tokens of day.js.

mod calendar;
mod format;
mod instant;

use jiff::tz::TimeZone;

use super::TransformResult;
use crate::parse::suggestion;
use crate::value::Value;

pub(super) use calendar::{STEPS, UNITS, add, difference};
pub(crate) use calendar::{Shift, Unit};
pub(crate) use format::{Format, misspelt};

pub(super) fn date<'s>(value: &Value<'s>, format: &Format) -> TransformResult<'s> {
    let instant = instant::read(value)?;
    Ok(Value::plain(format.write(instant)))
}

pub(super) fn utc() -> TimeZone {
    TimeZone::UTC
}

/// Returns a time zone by its IANA name, or a fixed offset such as `+02:00`.
pub(super) fn zone(name: &str) -> Result<TimeZone, String> {
    let offset = || {
        name.starts_with(['+', '-'])
            .then(|| jiff::fmt::temporal::DateTimeParser::new().parse_time_zone(name))
    };
    match (TimeZone::get(name), offset()) {
        (Ok(zone), _) | (Err(_), Some(Ok(zone))) => Ok(zone),
        (Err(_), Some(Err(_)) | None) => {
            let known: Vec<String> = jiff::tz::db()
                .available()
                .map(|known| known.to_string())
                .collect();
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let suggestion = match name.strip_prefix("GMT").or(name.strip_prefix("UTC")) {
                Some(offset) if offset.starts_with(['+', '-']) => {
                    "; a fixed offset is written as `+02:00`".to_owned()
                }
                Some(_) | None => suggestion(name, &names),
            };
            Err(format!(
                "there is no time zone `{}`{suggestion}",
                name.chars().take(40).collect::<String>()
            ))
        }
    }
}
