//! Instants on the command line: ISO 8601, or a time from now, back or ahead.

use std::time::Duration;

use kanat_model::Timestamp;

const UNITS: [(char, u64); 5] = [
    ('s', 1),
    ('m', 60),
    ('h', 3_600),
    ('d', 86_400),
    ('w', 604_800),
];

/// Reads `1h` as the instant an hour ago, and leaves an instant as it is.
///
/// # Errors
///
/// Refuses what is neither, and a time that began before 1970.
pub fn parse(text: &str) -> Result<String, String> {
    at(text, Timestamp::now())
}

/// Reads `1h` as the instant an hour ago, and a date as its midnight in UTC.
///
/// # Errors
///
/// Refuses what [`parse`] refuses.
pub fn parse_whole(text: &str) -> Result<String, String> {
    let instant = parse(text)?;
    let whole = completed(&instant).map(|instant| instant.to_string());
    Ok(whole.unwrap_or(instant))
}

/// Reads `1h` as the instant in an hour, and a date as its midnight in UTC.
///
/// # Errors
///
/// Refuses what is neither, and a time that is too long.
pub fn parse_ahead(text: &str) -> Result<String, String> {
    ahead(text, Timestamp::now())
}

fn ahead(text: &str, now: Timestamp) -> Result<String, String> {
    let instant = at(text, now)?;
    if instant == text {
        let whole = completed(text).map(|instant| instant.to_string());
        return Ok(whole.unwrap_or(instant));
    }
    let ago = Timestamp::parse(&instant).map(|before| now.since(before));
    ago.map(|ago| now.after(ago).to_string())
        .ok_or_else(|| format!("{text:?} is too long"))
}

/// Returns an instant whose text may lack the offset, which is that of UTC then, or the time, which
/// is the day's begin.
fn completed(text: &str) -> Option<Timestamp> {
    ["", "Z", "T00:00Z"]
        .iter()
        .find_map(|rest| Timestamp::parse(&format!("{text}{rest}")))
}

fn at(text: &str, now: Timestamp) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected an instant, or a time such as `1h`".to_owned());
    }
    let unit = UNITS
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)));
    let Some((number, seconds)) =
        unit.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
    else {
        return completed(text).map(|_| text.to_owned()).ok_or_else(|| {
            "expected a time such as `1h`, `30m` or `2d`, or an instant such as \
             2026-01-31T12:00:00Z"
                .to_owned()
        });
    };
    let ago = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds));
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
        assert_eq!(ahead("1h", now).unwrap(), "2026-01-31T13:00:00.000Z");
        assert_eq!(
            ahead("2026-03-01T00:00:00Z", now).unwrap(),
            "2026-03-01T00:00:00.000Z"
        );
        assert_eq!(
            ahead("2026-11-27", now).unwrap(),
            "2026-11-27T00:00:00.000Z"
        );
        assert_eq!(read("90s").unwrap(), "2026-01-31T11:58:30.000Z");
        assert_eq!(read("2d").unwrap(), "2026-01-29T12:00:00.000Z");
        assert_eq!(read("2026-01-31").unwrap(), "2026-01-31");
        let whole = "2026-01-31T00:00:00.000Z";
        assert_eq!(parse_whole("2026-01-31").unwrap(), whole);
        assert_eq!(parse_whole("2026-01-31T00:00:00").unwrap(), whole);
        let told = read("foo").unwrap_err();
        assert!(
            told.contains("`1h`") && told.contains("2026-01-31T12:00:00Z"),
            "{told}"
        );
        for wrong in ["", "h", "yesterday", "99999999999999999999d", "9999w"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
