//! Numbers of documents and schemas: compared and divided exactly, however long they are.

use std::cmp::Ordering;

use kanat_json::Decimal;

/// Greatest length of a number that is calculated with as a [`Fraction`].
const MAX_FRACTION_LENGTH: usize = 18;

/// Number of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'t> {
    text: &'t str,
    /// The number is written without a fraction and an exponent.
    is_written_whole: bool,
}

/// `mantissa` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy)]
struct Fraction {
    mantissa: i64,
    scale: u32,
}

/// Number of a schema, prepared for comparisons.
#[derive(Debug)]
pub(crate) struct Limit {
    /// Absent for a number that is too long, or has an exponent.
    fraction: Option<Fraction>,
    decimal: Decimal,
    pub(crate) text: Box<str>,
}

impl<'t> Number<'t> {
    /// Creates the number that `text` has as JSON.
    pub(crate) fn new(text: &'t str, is_written_whole: bool) -> Self {
        Self {
            text,
            is_written_whole,
        }
    }

    pub(crate) fn limit(self) -> Limit {
        Limit {
            fraction: self.fraction(),
            decimal: self.decimal(),
            text: shown(self.text),
        }
    }

    pub(crate) fn is_written_whole(self) -> bool {
        self.is_written_whole
    }

    /// Returns whether it is an integer by its value, as 1.0 and 1e3 are.
    pub(crate) fn is_whole(self) -> bool {
        self.is_written_whole || self.decimal().is_whole()
    }

    pub(crate) fn compare(self, limit: &Limit) -> Ordering {
        match (self.fraction(), limit.fraction) {
            (Some(left), Some(right)) => {
                let (left, right) = left.with(right);
                left.cmp(&right)
            }
            _ => self.decimal().cmp(&limit.decimal),
        }
    }

    /// Returns whether `divisor` divides it without a remainder. A divisor is more than 0 and has
    /// at most [`Decimal::MAX_DIVISOR_DIGITS`] digits.
    pub(crate) fn is_multiple_of(self, divisor: &Limit) -> bool {
        if let (Some(left), Some(right)) = (self.fraction(), divisor.fraction) {
            let (left, right) = left.with(right);
            return right != 0 && left % right == 0;
        }
        self.decimal().is_multiple_of(&divisor.decimal)
    }

    pub(crate) fn decimal(self) -> Decimal {
        Decimal::parse(self.text).unwrap_or_default()
    }

    fn fraction(self) -> Option<Fraction> {
        if self.text.len() > MAX_FRACTION_LENGTH {
            return None;
        }
        let mut fraction = Fraction {
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
                    fraction.mantissa = fraction.mantissa * 10 + i64::from(byte - b'0');
                    fraction.scale += after_point;
                }
                b'.' => after_point = 1,
                _ => return None,
            }
        }
        if is_negative {
            fraction.mantissa = -fraction.mantissa;
        }
        Some(fraction)
    }
}

impl Fraction {
    /// Returns both mantissas at one scale. 18 digits moved by 18 places fit.
    fn with(self, other: Self) -> (i128, i128) {
        let scale = self.scale.max(other.scale);
        let moved =
            |fraction: Self| i128::from(fraction.mantissa) * 10_i128.pow(scale - fraction.scale);
        (moved(self), moved(other))
    }
}

impl Limit {
    pub(crate) fn is_positive(&self) -> bool {
        self.decimal.is_positive()
    }

    pub(crate) fn digit_count(&self) -> usize {
        self.decimal.digit_count()
    }
}

/// Returns a number for messages, cut where it is long.
fn shown(text: &str) -> Box<str> {
    const MAX_LENGTH: usize = 40;
    if text.len() <= MAX_LENGTH {
        text.into()
    } else {
        format!("{}…", &text[..MAX_LENGTH]).into()
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
    }
}
