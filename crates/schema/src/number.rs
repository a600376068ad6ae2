//! Numbers by their digits: compared, divided and told apart exactly, however long they are.

use std::cmp::Ordering;

/// As many digits fit where two of them are brought to one scale.
const SHORT_DIGITS: usize = 18;
/// The most digits that a divisor may have.
pub(crate) const MAX_DIVISOR_DIGITS: usize = 18;

/// A number of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'t> {
    text: &'t str,
    /// It is written without fraction and exponent.
    is_written_whole: bool,
}

/// `mantissa` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy)]
struct Short {
    mantissa: i64,
    scale: u32,
}

/// A number of any length: the digits, without zeros at their ends, times ten to the power of the
/// exponent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// None for zero.
    digits: Vec<u8>,
    exponent: i64,
}

/// A number of a schema, ready to be compared with.
#[derive(Debug)]
pub(crate) struct Limit {
    short: Option<Short>,
    decimal: Decimal,
    pub(crate) text: Box<str>,
}

impl<'t> Number<'t> {
    /// `text` is a number of JSON.
    pub(crate) fn new(text: &'t str, is_written_whole: bool) -> Self {
        Self {
            text,
            is_written_whole,
        }
    }

    pub(crate) fn limit(self) -> Limit {
        Limit {
            short: self.short(),
            decimal: self.decimal(),
            text: shown(self.text),
        }
    }

    pub(crate) fn is_written_whole(self) -> bool {
        self.is_written_whole
    }

    /// Whether it is an integer by its value, as 1.0 and 1e3 are.
    pub(crate) fn is_whole(self) -> bool {
        self.is_written_whole || self.decimal().exponent >= 0
    }

    /// A count, as `minItems` has it: no less than 0. What is more than `u64` holds is the most
    /// that it holds.
    pub(crate) fn count(self) -> Option<u64> {
        let decimal = self.decimal();
        if decimal.is_negative || decimal.exponent < 0 {
            return None;
        }
        let zeros = std::iter::repeat_n(
            &0,
            usize::try_from(decimal.exponent)
                .unwrap_or(usize::MAX)
                .min(20),
        );
        let digits = decimal.digits.iter().chain(zeros);
        let count = digits.fold(0_u64, |count, digit| {
            count.saturating_mul(10).saturating_add(u64::from(*digit))
        });
        Some(count)
    }

    pub(crate) fn compare(self, limit: &Limit) -> Ordering {
        match (self.short(), limit.short) {
            (Some(left), Some(right)) => {
                let (left, right) = left.with(right);
                left.cmp(&right)
            }
            _ => self.decimal().cmp(&limit.decimal),
        }
    }

    /// Whether it divides without a rest. `divisor` is more than 0 and has at most
    /// [`MAX_DIVISOR_DIGITS`] digits.
    pub(crate) fn is_multiple_of(self, divisor: &Limit) -> bool {
        if let (Some(left), Some(right)) = (self.short(), divisor.short) {
            let (left, right) = left.with(right);
            return right != 0 && left % right == 0;
        }
        self.decimal().is_multiple_of(&divisor.decimal)
    }

    pub(crate) fn decimal(self) -> Decimal {
        Decimal::read(self.text)
    }

    fn short(self) -> Option<Short> {
        if self.text.len() > SHORT_DIGITS {
            return None;
        }
        let mut short = Short {
            mantissa: 0,
            scale: 0,
        };
        let mut after_point = 0;
        let (is_negative, digits) = match self.text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, self.text),
        };
        for byte in digits.bytes() {
            match byte {
                b'0'..=b'9' => {
                    short.mantissa = short.mantissa * 10 + i64::from(byte - b'0');
                    short.scale += after_point;
                }
                b'.' => after_point = 1,
                _ => return None,
            }
        }
        if is_negative {
            short.mantissa = -short.mantissa;
        }
        Some(short)
    }
}

impl Short {
    /// Both at one scale. 18 digits moved by 18 places fit.
    fn with(self, other: Self) -> (i128, i128) {
        let scale = self.scale.max(other.scale);
        let moved = |short: Self| i128::from(short.mantissa) * 10_i128.pow(scale - short.scale);
        (moved(self), moved(other))
    }
}

impl Limit {
    pub(crate) fn is_positive(&self) -> bool {
        !self.decimal.is_negative && !self.decimal.digits.is_empty()
    }

    pub(crate) fn digits(&self) -> usize {
        self.decimal.digits.len()
    }
}

impl Decimal {
    fn read(text: &str) -> Self {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, power(exponent)),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = whole
            .bytes()
            .chain(fraction.bytes())
            .map(|digit| digit - b'0');
        let mut digits: Vec<u8> = all.skip_while(|digit| *digit == 0).collect();
        let written = digits.len();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() {
            return Self {
                is_negative: false,
                digits,
                exponent: 0,
            };
        }
        let zeros = i64::try_from(written - digits.len()).unwrap_or(i64::MAX);
        let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        let exponent = exponent.saturating_sub(places).saturating_add(zeros);
        Self {
            is_negative,
            digits,
            exponent,
        }
    }

    /// Equal numbers, however they are written, have equal texts.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
        out.extend(self.digits.iter().map(|digit| digit + b'0'));
        out.push(b'e');
        out.extend_from_slice(self.exponent.to_string().as_bytes());
    }

    fn is_multiple_of(&self, divisor: &Self) -> bool {
        if self.digits.is_empty() {
            return true;
        }
        let moved = self.exponent.saturating_sub(divisor.exponent);
        // The last digit is not 0: no multiple of ten.
        if moved < 0 || divisor.digits.is_empty() || divisor.digits.len() > MAX_DIVISOR_DIGITS {
            return false;
        }
        let modulus = divisor
            .digits
            .iter()
            .fold(0_u128, |value, digit| value * 10 + u128::from(*digit));
        let rest = self.digits.iter().fold(0_u128, |rest, digit| {
            (rest * 10 + u128::from(*digit)) % modulus
        });
        (rest * power_of_ten(moved.unsigned_abs(), modulus)).is_multiple_of(modulus)
    }

    /// Compares as if neither had a sign.
    fn size(&self, other: &Self) -> Ordering {
        if self.digits.is_empty() || other.digits.is_empty() {
            return self.digits.len().cmp(&other.digits.len());
        }
        self.places()
            .cmp(&other.places())
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Where the first digit stands.
    fn places(&self) -> i64 {
        self.exponent
            .saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.size(other),
            (true, true) => other.size(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An exponent as it is written; far beyond any digits that a text could have, it stays where it
/// is.
fn power(text: &str) -> i64 {
    const FAR: i64 = i64::MAX / 4;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let size = digits.bytes().fold(0_i64, |size, digit| {
        (size.min(FAR / 10) * 10 + i64::from(digit - b'0')).min(FAR)
    });
    sign * size
}

/// Ten to that power, by the modulus, which has at most 18 digits.
fn power_of_ten(mut power: u64, modulus: u128) -> u128 {
    let mut result = 1 % modulus;
    let mut base = 10 % modulus;
    while power > 0 {
        if power & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        power >>= 1;
    }
    result
}

fn shown(text: &str) -> Box<str> {
    const LONGEST: usize = 40;
    if text.len() <= LONGEST {
        text.into()
    } else {
        format!("{}…", &text[..LONGEST]).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number<'_> {
        Number::new(text, !text.contains(['.', 'e', 'E']))
    }

    #[track_caller]
    fn compares(left: &str, right: &str, expected: Ordering) {
        assert_eq!(
            number(left).compare(&number(right).limit()),
            expected,
            "{left} {right}"
        );
        assert_eq!(
            number(right).compare(&number(left).limit()),
            expected.reverse(),
            "{right} {left}"
        );
        assert_eq!(
            number(left).decimal().cmp(&number(right).decimal()),
            expected,
            "{left} {right}"
        );
    }

    #[test]
    fn compares_by_value_to_the_last_digit() {
        compares("1", "1.0", Ordering::Equal);
        compares("-0.0", "0", Ordering::Equal);
        compares("1e2", "100", Ordering::Equal);
        compares("9007199254740993", "9007199254740992", Ordering::Greater);
        compares(
            "123456789012345678901234567890",
            "123456789012345678901234567891",
            Ordering::Less,
        );
        compares("-5", "3", Ordering::Less);
        compares("-10.5", "-10.25", Ordering::Less);
        compares("0.1", "0.0999999999999999999999", Ordering::Greater);
        compares("1e400", "1e399", Ordering::Greater);
        compares("1e99999999999999999999", "5", Ordering::Greater);
        compares("1e-99999999999999999999", "0", Ordering::Greater);
        compares("-1e99999999999999999999", "-5", Ordering::Less);
    }

    #[track_caller]
    fn divides(value: &str, divisor: &str, expected: bool) {
        let divisor = number(divisor).limit();
        assert_eq!(number(value).is_multiple_of(&divisor), expected, "{value}");
        assert_eq!(
            number(value).decimal().is_multiple_of(&divisor.decimal),
            expected,
            "{value}"
        );
    }

    #[test]
    fn divides_without_a_rest() {
        divides("0.0075", "0.0001", true);
        divides("0.00751", "0.0001", false);
        divides("4.5", "1.5", true);
        divides("35", "1.5", false);
        divides("0", "7", true);
        divides("1e308", "0.5", true);
        divides("1e308", "0.123456789", false);
        divides("12391239123", "1e-8", true);
        divides("9007199254740993", "2", false);
        divides("900719925474099300000000000000000000", "3", true);
        divides("123456789012345678901234567891", "7", false);
        divides("-21", "7", true);
        divides("19.99", "0.01", true);
    }

    #[test]
    fn knows_integers() {
        assert!(number("1.0").is_whole() && number("1e3").is_whole() && number("10e-1").is_whole());
        assert!(!number("1.5").is_whole() && !number("1e-1").is_whole());
        assert_eq!(number("2.0").count(), Some(2));
        assert_eq!(number("-1").count(), None);
        assert_eq!(number("1e30").count(), Some(u64::MAX));
    }
}
