//! The digits of numbers across JavaScript, which knows doubles only: a number of the input that
//! the adapter hands on comes out with the digits that it came in with, or not at all.
//!
//! A double is written in one way. Where that differs from the input's text (9007199254740993,
//! 1.10, 1e400), the output's number is given the input's digits back. Whole numbers that a double
//! holds exactly stay as JavaScript writes them (`1.0` becomes `1`), because what the adapter has
//! counted itself must not get the decimals of another number.

use std::collections::HashMap;

use kanat_json::Decimal;

/// Texts that stand for numbers beyond the doubles in the output: no JSON has them, because the
/// engine writes no NUL otherwise.
const BEYOND: [&str; 2] = [r#""\u0000Infinity""#, r#""\u0000-Infinity""#];
/// The whole numbers up to here are exact.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// The numbers of an input that JavaScript would write otherwise.
#[derive(Debug, Default)]
pub(crate) struct Digits<'a> {
    /// Numbers of the input, by the text that JavaScript writes for them.
    originals: HashMap<String, Original<'a>>,
    infinite: bool,
}

#[derive(Debug)]
enum Original<'a> {
    One(&'a str),
    /// Several that are equal: the way in which JavaScript writes them is as good.
    Equal,
    /// Several numbers that are one in JavaScript.
    Many(&'a str, &'a str),
}

impl<'a> Digits<'a> {
    /// Reads the numbers of JSON that has been checked.
    pub fn of(input: &'a str) -> Self {
        let mut digits = Self::default();
        let mut plain: Vec<&str> = Vec::new();
        for number in numbers(input) {
            let Some(written) = written_otherwise(number) else {
                if number.len() > 15 || number.contains('.') {
                    plain.push(number);
                }
                continue;
            };
            digits.infinite |= BEYOND.contains(&written.as_str());
            let next = match digits.originals.remove(&written) {
                None => Original::One(number),
                Some(Original::One(first)) if first == number => Original::One(first),
                Some(Original::One(first)) if equal(first, number) => Original::Equal,
                Some(Original::Equal) if equal(&written, number) => Original::Equal,
                Some(Original::Equal) => Original::Many("", number),
                Some(Original::One(first)) => Original::Many(first, number),
                Some(many @ Original::Many(..)) => many,
            };
            digits.originals.insert(written, next);
        }
        // A number that is written as it stands may be what another one would be taken for.
        for number in plain {
            if let Some(original) = digits.originals.get_mut(number)
                && let Original::One(other) = *original
            {
                *original = if equal(other, number) {
                    Original::Equal
                } else {
                    Original::Many(number, other)
                };
            }
        }
        digits
    }

    /// Returns whether the input has a number beyond the doubles.
    pub fn infinite(&self) -> bool {
        self.infinite
    }

    /// The output with the input's digits. Errors when a number of it may be either of two.
    pub fn restore(&self, output: String) -> Result<String, String> {
        if self.originals.is_empty() {
            return Ok(output);
        }
        let mut restored = String::with_capacity(output.len());
        let mut rest = 0;
        for token in tokens(&output) {
            match self.originals.get(token) {
                None | Some(Original::Equal) => {}
                Some(Original::One(original)) => {
                    let start = token.as_ptr() as usize - output.as_ptr() as usize;
                    restored.push_str(&output[rest..start]);
                    restored.push_str(original);
                    rest = start + token.len();
                }
                Some(Original::Many(first, second)) => {
                    let either = if first.is_empty() { token } else { first };
                    return Err(format!(
                        "the output has a number that JavaScript cannot tell from another one of \
                         the input: {either} or {second}"
                    ));
                }
            }
        }
        restored.push_str(&output[rest..]);
        Ok(restored)
    }
}

/// Returns the text that JavaScript writes for a number of JSON, when that differs and matters.
fn written_otherwise(number: &str) -> Option<String> {
    let whole = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    if whole && number.len() <= 15 {
        return None;
    }
    let value: f64 = number.parse().ok()?;
    if value.is_infinite() {
        return Some(BEYOND[usize::from(value < 0.0)].to_owned());
    }
    if value.fract() == 0.0 && value.abs() <= EXACT && equal(number, &written(value)) {
        return None;
    }
    let written = written(value);
    (written != number).then_some(written)
}

/// A finite double as `JSON.stringify` writes it.
fn written(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |mantissa| ("-", mantissa));
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // Where the point stands among the digits.
    let point = exponent + 1;
    let zeros = |many: i32| "0".repeat(usize::try_from(many).unwrap_or(0));
    match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{sign}{whole}.{fraction}")
        }
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let (first, others) = digits.split_at(1);
            let fraction = if others.is_empty() {
                String::new()
            } else {
                format!(".{others}")
            };
            format!(
                "{sign}{first}{fraction}e{}{}",
                if exponent < 0 { "-" } else { "+" },
                exponent.abs()
            )
        }
    }
}

/// Returns whether two numbers have one value, however they are written.
fn equal(one: &str, other: &str) -> bool {
    Decimal::parse(one).is_some_and(|number| Decimal::parse(other) == Some(number))
}

/// The numbers of a JSON text.
fn numbers(json: &str) -> impl Iterator<Item = &str> {
    tokens(json).filter(|token| !token.starts_with('"'))
}

/// The numbers and strings of a JSON text, from left to right.
fn tokens(json: &str) -> impl Iterator<Item = &str> {
    let bytes = json.as_bytes();
    let mut position = 0;
    std::iter::from_fn(move || {
        loop {
            let start = position;
            match bytes.get(start)? {
                b'"' => {
                    position = kanat_json::closing_quote(bytes, start + 1);
                    return json.get(start..position);
                }
                b'-' | b'0'..=b'9' => {
                    let is_part =
                        |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    position += bytes[start..]
                        .iter()
                        .take_while(|byte| is_part(byte))
                        .count();
                    return json.get(start..position);
                }
                _ => position += 1,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(input: &str, output: &str, expected: &str) {
        assert_eq!(
            Digits::of(input).restore(output.to_owned()).as_deref(),
            Ok(expected),
            "{input}"
        );
    }

    #[test]
    fn what_is_handed_on_keeps_its_digits() {
        check(
            r#"{"id":9007199254740993}"#,
            r#"{"id":9007199254740992}"#,
            r#"{"id":9007199254740993}"#,
        );
        check("[1.10,-2.50,7]", "[-2.5,1.1,7]", "[-2.50,1.10,7]");
        check(
            "[1e400,-1e400]",
            r#"["\u0000Infinity","\u0000-Infinity"]"#,
            "[1e400,-1e400]",
        );
        check(
            "[0.1000000000000000000001]",
            "[0.1]",
            "[0.1000000000000000000001]",
        );
        check("[1E-7, 1e21]", "[1e-7,1e+21]", "[1E-7,1e21]");
    }

    #[test]
    fn whole_numbers_stay_as_javascript_writes_them() {
        check(
            "[100.00, 1e3, -0, 0.00]",
            "[100,1000,0,0,100]",
            "[100,1000,0,0,100]",
        );
    }

    #[test]
    fn texts_are_no_numbers() {
        check(
            r#"{"a":1.10,"1.1":"1.1"}"#,
            r#"{"1.1":"1.1","b":"x \"1.1\" y","a":1.1}"#,
            r#"{"1.1":"1.1","b":"x \"1.1\" y","a":1.10}"#,
        );
    }

    #[test]
    fn equal_numbers_are_written_alike() {
        check("[1.10,1.1]", "[1.1,1.1]", "[1.1,1.1]");
        check("[1.10,1.100,1.1]", "[1.1]", "[1.1]");
    }

    #[test]
    fn numbers_that_become_one_are_an_error_and_no_guess() {
        for input in [
            "[1186254901612281857,1186254901612281858]",
            "[9007199254740992,9007199254740993]",
            "[9007199254740993,9007199254740992]",
            "[1e400,1e401]",
        ] {
            let output = Digits::of(input).originals.keys().next().cloned().unwrap();
            let error = Digits::of(input)
                .restore(format!("[{output}]"))
                .unwrap_err();
            assert!(error.contains("cannot tell"), "{error}");
            assert_eq!(
                Digits::of(input).restore("[5]".to_owned()).as_deref(),
                Ok("[5]")
            );
        }
    }

    #[test]
    fn doubles_are_written_as_javascript_writes_them() {
        for (value, text) in [
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123.456, "123.456"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
            (-1.25e30, "-1.25e+30"),
            (5e-324, "5e-324"),
            (0.1, "0.1"),
            (-0.0, "0"),
        ] {
            assert_eq!(written(value), text);
        }
    }

    proptest! {
        #[test]
        fn a_written_double_reads_back(
            value in any::<f64>().prop_filter("JSON has none", |value| value.is_finite()),
        ) {
            let text = written(value);
            prop_assert_eq!(text.parse::<f64>().unwrap(), value);
            prop_assert_eq!(written_otherwise(&text), None);
        }

        #[test]
        fn no_text_breaks_it(input in ".{0,40}", output in ".{0,40}") {
            let _ = Digits::of(&input).restore(output);
        }

        #[test]
        fn a_number_alone_comes_back(
            whole in "-?[1-9][0-9]{0,30}",
            fraction in "(\\.[0-9]{1,20}[1-9])?",
        ) {
            let number = format!("{whole}{fraction}");
            let javascript = written(number.parse().unwrap());
            prop_assert_eq!(Digits::of(&number).restore(javascript).unwrap(), number);
        }
    }
}
