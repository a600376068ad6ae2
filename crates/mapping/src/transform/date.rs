//! The `date` transform: instants in, text by day.js's format tokens out.

mod format;
mod instant;

use jiff::tz::TimeZone;

use super::Applied;
use crate::parse::suggestion;
use crate::value::Value;

pub(crate) use format::Format;

pub(super) fn date<'s>(value: &Value<'s>, format: &Format) -> Applied<'s> {
    let instant = instant::read(value)?;
    Ok(Value::plain(format.write(instant)))
}

pub(super) fn utc() -> TimeZone {
    TimeZone::UTC
}

/// A time zone by its IANA name, or a fixed offset such as `+02:00`.
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
            let suggestion =
                suggestion(name, &known.iter().map(String::as_str).collect::<Vec<_>>());
            Err(format!(
                "there is no time zone `{}`{suggestion}",
                name.chars().take(40).collect::<String>()
            ))
        }
    }
}
