//! Durations as people write them: `500ms`, `30s`, `5m`, `2h`, `1d`, `1m30s`.

use std::time::Duration;

/// The longest duration that can be written: a year.
pub const MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Reads a duration: whole numbers with their units, largest first, each unit at most once. Errors
/// say what was expected.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "found {}, expected a duration such as 500ms, 30s, 5m, 2h, 1d or 1m30s",
            quoted(text)
        )
    };
    let mut rest = text;
    let mut millis: u64 = 0;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let (digits, after) = split_while(rest, |b| b.is_ascii_digit());
        let (unit, after) = split_while(after, |b| b.is_ascii_alphabetic());
        let (_, factor) = units
            .by_ref()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        let part = count.checked_mul(*factor);
        let sum = part.and_then(|part| millis.checked_add(part));
        millis = sum.ok_or_else(|| too_long(text))?;
        rest = after;
    }
    if text.is_empty() {
        return Err(wrong());
    }
    let duration = Duration::from_millis(millis);
    if duration > MAX {
        Err(too_long(text))
    } else {
        Ok(duration)
    }
}

/// The shortest text that [`parse`] reads back as the same duration; parts below a millisecond are
/// left out.
pub fn format(duration: Duration) -> String {
    let mut millis = duration.as_millis();
    let mut text = String::new();
    for (unit, factor) in UNITS {
        let count = millis / u128::from(factor);
        millis %= u128::from(factor);
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

fn too_long(text: &str) -> String {
    format!(
        "found {}, expected a duration of at most 366d",
        quoted(text)
    )
}

/// `text` in quotes, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        format!("{:?}", shown + "…")
    } else {
        format!("{shown:?}")
    }
}

fn split_while(text: &str, keep: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|b| !keep(b)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_the_language_shows() {
        let cases = [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("1m30s", 90_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("0s", 0),
            ("90m", 5_400_000),
            ("366d", 31_622_400_000),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "30",
            "s",
            "30 s",
            " 30s",
            "-1s",
            "1.5s",
            "1s1m",
            "1s1s",
            "1w",
            "30S",
            "1m30",
            "٣s",
            "+1s",
            "367d",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(millis in 0u64..=31_622_400_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC*|[0-9smhd]{0,40}") {
            let _ = parse(&text);
        }
    }
}
