//! Instants on the command line: ISO 8601, or so long ago.

use std::time::Duration;

use kanat_model::Timestamp;

const UNITS: [(char, u64); 5] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];

/// Reads `1h` as the instant an hour ago; anything else is for the service to read.
///
/// # Errors
///
/// Refuses an empty text, and a time that began before 1970.
pub fn parse(text: &str) -> Result<String, String> {
    at(text, Timestamp::now())
}

fn at(text: &str, now: Timestamp) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected an instant, or a time such as `1h`".to_owned());
    }
    let unit = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)));
    let Some((number, seconds)) = unit.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) else {
        return Ok(text.to_owned());
    };
    let ago = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    let ago = ago.filter(|ago| i64::try_from(*ago).is_ok_and(|ago| ago <= now.as_millis() / 1_000));
    let ago = ago.ok_or_else(|| format!("{text:?} is no time since 1970"))?;
    Ok(now.before(Duration::from_secs(ago)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_back_from_now() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let read = |text: &str| at(text, now);
        assert_eq!(read("1h").unwrap(), "2026-01-31T11:00:00.000Z");
        assert_eq!(read("90s").unwrap(), "2026-01-31T11:58:30.000Z");
        assert_eq!(read("2d").unwrap(), "2026-01-29T12:00:00.000Z");
        assert_eq!(read("2026-01-31").unwrap(), "2026-01-31");
        assert_eq!(read("yesterday").unwrap(), "yesterday");
        for wrong in ["", "h", "99999999999999999999d", "9999w"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
