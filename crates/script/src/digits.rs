//! The digits of numbers across JavaScript, which knows doubles only: a number of the input that
//! the adapter hands on comes out with its value, or not at all.
//!
//! JavaScript does not tell a number that is handed on from a computed one that is the same double.
//! A number comes out with the digits of the input where nothing that code computes is likely to be
//! that double: beyond 2^53 (9007199254740993, 1e400), and where the double itself has 16 digits or
//! 17. Every other one comes out as JavaScript writes it, so that a computed 1 or 19.99 is
//! never 1.00000000000000001.
//!
//! A number that JavaScript only spells otherwise (1.10) keeps its spelling under the name of the
//! member that it came in under. Whole numbers that a double holds exactly stay as JavaScript
//! writes them (`1.0` becomes `1`).

use std::collections::HashMap;

use kanat_json::Decimal;

/// Texts that stand for numbers beyond the doubles in the output: no JSON has them, because the
/// engine writes no NUL otherwise.
const BEYOND: [&str; 2] = [r#""\u0000Infinity""#, r#""\u0000-Infinity""#];
/// The whole numbers up to here are exact.
const EXACT: f64 = 9_007_199_254_740_991.0;
/// Significant digits that every double has; a result with more is hardly one that is computed.
const SHORT: usize = 15;

/// The numbers of an input that JavaScript would write otherwise, by the text that it writes.
#[derive(Debug, Default)]
pub(crate) struct Digits<'a> {
    /// Numbers that have another value in JavaScript.
    originals: HashMap<String, Original<'a>>,
    /// Spellings of numbers that have the same value in JavaScript, by the names that they stand
    /// under; `None` where there are several.
    spellings: HashMap<String, HashMap<&'a str, Option<&'a str>>>,
    infinite: bool,
}

#[derive(Debug)]
enum Original<'a> {
    One(&'a str),
    /// Several numbers that are one in JavaScript.
    Many(&'a str, &'a str),
}

impl<'a> Digits<'a> {
    /// Reads the numbers of JSON that has been checked.
    pub fn of(input: &'a str) -> Self {
        let mut digits = Self::default();
        // Numbers of which JavaScript keeps the value, by the texts that it writes.
        let mut kept: Vec<(String, &str)> = Vec::new();
        let mut plain: Vec<(&str, &str)> = Vec::new();
        for (name, number) in numbers(input) {
            let Some(written) = written_otherwise(number) else {
                if number.len() > 15 || number.contains('.') {
                    plain.push((name, number));
                }
                continue;
            };
            digits.infinite |= BEYOND.contains(&written.as_str());
            if equal(number, &written) {
                digits.spell(name, &written, number);
                kept.push((written, number));
            } else if !is_short(&written) {
                digits.add(written, number);
            }
        }
        for (name, number) in plain {
            if let Some(names) = digits.spellings.get_mut(number)
                && let Some(spelling) = names.get_mut(name)
            {
                *spelling = None;
            }
            digits.distinguish(number, number);
        }
        for (written, number) in kept {
            digits.distinguish(&written, number);
        }
        digits
    }

    fn spell(&mut self, name: &'a str, written: &str, number: &'a str) {
        let names = self.spellings.entry(written.to_owned()).or_default();
        let spelling = names.entry(name).or_insert(Some(number));
        if *spelling != Some(number) {
            *spelling = None;
        }
    }

    fn add(&mut self, written: String, number: &'a str) {
        let original = self.originals.entry(written);
        let original = original.or_insert(Original::One(number));
        if let Original::One(first) = *original
            && !equal(first, number)
        {
            *original = Original::Many(first, number);
        }
    }

    /// Notes a number of which JavaScript keeps the value: another one may be taken for it.
    fn distinguish(&mut self, written: &str, number: &'a str) {
        if let Some(original) = self.originals.get_mut(written)
            && let Original::One(other) = *original
        {
            *original = Original::Many(number, other);
        }
    }

    /// Returns whether the input has a number beyond the doubles.
    pub fn infinite(&self) -> bool {
        self.infinite
    }

    /// The output with the input's digits. Errors when a number of it may be either of two.
    pub fn restore(&self, output: String) -> Result<String, String> {
        if self.originals.is_empty() && self.spellings.is_empty() {
            return Ok(output);
        }
        let mut restored = String::with_capacity(output.len());
        let mut rest = 0;
        for (name, token) in values(&output) {
            let original = match self.originals.get(token) {
                Some(Original::One(original)) => Some(*original),
                Some(Original::Many(first, second)) => {
                    return Err(format!(
                        "the output has a number that JavaScript cannot tell from another one of \
                         the input: {first} or {second}"
                    ));
                }
                None => self.spelling(name, token),
            };
            if let Some(original) = original {
                let start = token.as_ptr() as usize - output.as_ptr() as usize;
                restored.push_str(&output[rest..start]);
                restored.push_str(original);
                rest = start + token.len();
            }
        }
        restored.push_str(&output[rest..]);
        Ok(restored)
    }

    fn spelling(&self, name: &str, written: &str) -> Option<&'a str> {
        *self.spellings.get(written)?.get(name)?
    }
}

/// Returns whether code is likely to compute the number that JavaScript writes so.
fn is_short(written: &str) -> bool {
    let value: Result<f64, _> = written.parse();
    value.is_ok_and(|value| value.abs() <= EXACT && significant(written) <= SHORT)
}

/// Returns the number of significant digits of a number.
fn significant(written: &str) -> usize {
    let mantissa = written.split('e').next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
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

/// The numbers of a JSON text, each with the name that it stands under.
fn numbers(json: &str) -> impl Iterator<Item = (&str, &str)> {
    values(json).filter(|(_, value)| !value.starts_with('"'))
}

/// The numbers and texts of a JSON text but for its keys, from left to right, each after the key of
/// the nearest member around it, as it is written; empty outside of objects.
fn values(json: &str) -> impl Iterator<Item = (&str, &str)> {
    let bytes = json.as_bytes();
    let mut position = 0;
    let mut name = "";
    let mut around = Vec::new();
    std::iter::from_fn(move || {
        loop {
            let start = position;
            position += 1;
            match bytes.get(start)? {
                b'{' | b'[' => around.push(name),
                b'}' | b']' => name = around.pop().unwrap_or_default(),
                b'"' => {
                    position = kanat_json::closing_quote(bytes, position);
                    let text = json.get(start..position)?;
                    let next = kanat_json::skip_whitespace(bytes, position);
                    if bytes.get(next) != Some(&b':') {
                        return Some((name, text));
                    }
                    name = text;
                }
                b'-' | b'0'..=b'9' => {
                    let is_part =
                        |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    let number = bytes[start..].iter().take_while(|byte| is_part(byte));
                    position = start + number.count();
                    return Some((name, json.get(start..position)?));
                }
                _ => {}
            }
        }
    })
}

#[cfg(test)]
mod tests;
