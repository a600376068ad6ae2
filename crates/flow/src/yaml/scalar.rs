//! Meaning of plain scalars: the core schema of YAML 1.2.

use std::ops::Range;

use super::{Anchor, Number, Text, Value};

/// The value of a scalar without quotes.
pub(super) fn plain(text: String, anchors: Vec<Anchor>, written: Option<Range<usize>>) -> Value {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number_json(&text) {
            Some(json) => Value::Number(Number { text, json }),
            None => Value::Text(Text {
                text,
                anchors,
                written,
            }),
        },
    }
}

/// `None` for what is no number; `Some(None)` for a number that has no certain place in JSON.
fn number_json(text: &str) -> Option<Option<String>> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix_json(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix_json(digits, 8);
    }
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    decimal_json(sign, unsigned)
}

fn radix_json(digits: &str, radix: u32) -> Option<Option<String>> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some(
        u128::from_str_radix(digits, radix)
            .ok()
            .map(|value| value.to_string()),
    )
}

fn decimal_json(sign: &str, unsigned: &str) -> Option<Option<String>> {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let has_digits = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
    let good_exponent = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !unsigned.is_empty() && digits(unsigned)
    });
    if !has_digits || !digits(whole) || !fraction.is_none_or(digits) || !good_exponent {
        return None;
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return Some(None);
    }
    let mut json = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
    if let Some(fraction) = fraction.filter(|fraction| !fraction.is_empty()) {
        json.push('.');
        json.push_str(fraction);
    }
    if let Some(exponent) = exponent {
        json.push('e');
        json.push_str(exponent);
    }
    Some(Some(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_keeps_their_digits() {
        let cases = [
            ("5", "5"),
            ("+5", "5"),
            ("-0", "-0"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.10", "1.10"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1e400", "1e400"),
            ("-1.5E+3", "-1.5e+3"),
            ("9007199254740993", "9007199254740993"),
        ];
        for (text, expect) in cases {
            let value = plain(text.to_owned(), Vec::new(), None);
            assert!(
                matches!(&value, Value::Number(n) if n.json.as_deref() == Some(expect)),
                "{text}: {value:?}"
            );
            assert!(serde_json::from_str::<serde_json::Value>(expect).is_ok() || expect == "1e400");
        }
        for text in ["007", "-01.5", ".inf", "-.INF", ".nan"] {
            assert!(
                matches!(
                    plain(text.to_owned(), Vec::new(), None),
                    Value::Number(Number { json: None, .. })
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn all_else_is_text() {
        for text in [
            "yes",
            "on",
            "1_000",
            "1.2.3",
            "0x",
            "0xZZ",
            "1e",
            "1e+",
            ".",
            "-",
            "+",
            "e5",
            "2026-01-31",
            "5m",
            "tRue",
        ] {
            assert!(
                matches!(plain(text.to_owned(), Vec::new(), None), Value::Text(_)),
                "{text}"
            );
        }
    }
}
