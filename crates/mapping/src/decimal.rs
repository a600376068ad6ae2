//! Exact decimal numbers of any size, on their digits: every operation costs no more than the
//! digits are long.

use std::cmp::Ordering;
use std::ops::Range;

/// The largest exponent, either way, that arithmetic takes on: each step of it may become a digit.
const MAX_EXPONENT: i64 = 10_000;

/// `digits` x 10^`exponent`, without zeros at either end; zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Reads a number as JSON writes it, and as people do: blanks around, a plus, leading zeros,
    /// `.5`, `5.`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = Vec::with_capacity(mantissa.len());
        for byte in whole.bytes().chain(fraction.bytes()) {
            digits.push(byte.is_ascii_digit().then(|| byte - b'0')?);
        }
        if digits.is_empty() {
            return None;
        }
        let fraction = i64::try_from(fraction.len()).ok()?;
        Some(
            Self {
                negative,
                digits,
                exponent: exponent.saturating_sub(fraction),
            }
            .normal(),
        )
    }

    /// [`Decimal::parse`] for arithmetic; the error says what is wrong.
    pub fn parse_bounded(text: &str) -> Result<Self, &'static str> {
        let number = Self::parse(text).ok_or("it is not a number")?;
        let written = text
            .find(['e', 'E'])
            .and_then(|at| parse_exponent(text.trim_end().get(at + 1..)?))
            .unwrap_or(0);
        if written.abs() > MAX_EXPONENT {
            return Err("its exponent is beyond 10000");
        }
        Ok(number)
    }

    /// The nearest number with `places` decimals; a half goes away from zero.
    pub fn round(mut self, places: u32) -> Self {
        let last = -i64::from(places);
        if self.exponent >= last {
            return self;
        }
        let dropped = usize::try_from(last - self.exponent).unwrap_or(usize::MAX);
        let Some(kept) = self.digits.len().checked_sub(dropped) else {
            return Self::default();
        };
        let up = self.digits[kept] >= 5;
        self.digits.truncate(kept);
        self.exponent = last;
        if up {
            self.increment();
        }
        self.normal()
    }

    /// With exactly `places` decimals.
    pub fn fixed(self, places: u32) -> String {
        let rounded = self.round(places);
        let mut text = rounded.plain();
        let decimals = usize::try_from(-rounded.exponent).unwrap_or(0);
        if places > 0 {
            if decimals == 0 {
                text.push('.');
            }
            text.extend(std::iter::repeat_n('0', places as usize - decimals));
        }
        text
    }

    /// All digits, without an exponent.
    pub fn plain(&self) -> String {
        let zeros = usize::try_from(self.exponent).unwrap_or(0);
        let decimals = usize::try_from(-self.exponent).unwrap_or(0);
        let whole = self.digits.len().saturating_sub(decimals);
        let mut text = String::with_capacity(self.digits.len() + zeros + decimals + 3);
        if self.negative {
            text.push('-');
        }
        if whole == 0 {
            text.push('0');
        }
        let digit = |digit: &u8| char::from(b'0' + digit);
        text.extend(self.digits[..whole].iter().map(digit));
        if whole > 0 {
            text.extend(std::iter::repeat_n('0', zeros));
        }
        if decimals > 0 {
            text.push('.');
            text.extend(std::iter::repeat_n(
                '0',
                decimals.saturating_sub(self.digits.len()),
            ));
            text.extend(self.digits[whole..].iter().map(digit));
        }
        text
    }

    /// A text that is the same for equal numbers.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.digits.len() + 8);
        text.push(if self.negative { '-' } else { '+' });
        text.extend(self.digits.iter().map(|digit| char::from(b'0' + digit)));
        text.push('e');
        text.push_str(&self.exponent.to_string());
        text
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    pub fn abs(mut self) -> Self {
        self.negative = false;
        self
    }

    pub fn times_power_of_ten(mut self, power: i64) -> Self {
        self.exponent = self.exponent.saturating_add(power);
        self.normal()
    }

    /// The columns in which the numbers have digits, by their powers of ten.
    pub fn columns(numbers: &[Self]) -> Range<i64> {
        let numbers = || numbers.iter().filter(|number| !number.is_zero());
        let lowest = numbers().map(|number| number.exponent).min().unwrap_or(0);
        lowest..numbers().map(Self::magnitude).max().unwrap_or(lowest)
    }

    /// The sum, column by column, carried once at the end.
    pub fn sum(numbers: &[Self]) -> Self {
        let columns = Self::columns(numbers);
        let lowest = columns.start;
        let mut columns = vec![0_i64; columns.count()];
        for number in numbers.iter().filter(|number| !number.is_zero()) {
            let first = usize::try_from(number.exponent - lowest).unwrap_or(0);
            let sign = if number.negative { -1 } else { 1 };
            for (column, digit) in columns[first..].iter_mut().zip(number.digits.iter().rev()) {
                *column += sign * i64::from(*digit);
            }
        }
        let negative = carry(&mut columns) < 0;
        if negative {
            columns.iter_mut().for_each(|column| *column = -*column);
            carry(&mut columns);
        }
        let digits = columns
            .iter()
            .rev()
            .filter_map(|column| u8::try_from(*column).ok())
            .collect();
        Self {
            negative,
            digits,
            exponent: lowest,
        }
        .normal()
    }

    /// The power of ten above the first digit.
    fn magnitude(&self) -> i64 {
        self.exponent
            .saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX))
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    fn normal(mut self) -> Self {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent = self.exponent.saturating_add(1);
        }
        if self.digits.is_empty() {
            Self::default()
        } else {
            self
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let by_size = || {
            self.magnitude()
                .cmp(&other.magnitude())
                .then_with(|| self.digits.cmp(&other.digits))
        };
        sign(self).cmp(&sign(other)).then_with(|| {
            if self.negative {
                by_size().reverse()
            } else {
                by_size()
            }
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An exponent too long for the type counts as the largest there is.
fn parse_exponent(text: &str) -> Option<i64> {
    const FAR: i64 = 1 << 40;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse::<i64>().unwrap_or(FAR).min(FAR))
}

/// Brings columns, lowest first, to one digit each; what is left over goes into new columns, or is
/// returned when it is negative.
fn carry(columns: &mut Vec<i64>) -> i64 {
    let mut carried = 0;
    for column in columns.iter_mut() {
        let value = *column + carried;
        *column = value.rem_euclid(10);
        carried = value.div_euclid(10);
    }
    while carried > 0 {
        columns.push(carried % 10);
        carried /= 10;
    }
    carried
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse_bounded(text).unwrap()
    }

    #[test]
    fn reads_what_people_write() {
        for (text, plain) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("+007.50", "7.5"),
            (" .5 ", "0.5"),
            ("5.", "5"),
            ("1E3", "1000"),
        ] {
            assert_eq!(decimal(text).plain(), plain, "{text}");
        }
        for text in [
            "", "-", ".", "1e", "1e+", "1.2.3", "0x10", "1 2", "Infinity", "NaN", "1,5", "--1", "é",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn rounds_halves_away_from_zero() {
        for (text, places, expected) in [
            ("149.5", 2, "149.50"),
            ("2.345", 2, "2.35"),
            ("-2.345", 2, "-2.35"),
            ("1.005", 2, "1.01"),
            ("0.5", 0, "1"),
            ("0.49", 0, "0"),
            ("-0.004", 2, "0.00"),
            ("999.999", 2, "1000.00"),
            ("0.05", 1, "0.1"),
            ("0.0005", 2, "0.00"),
            ("5e-1", 0, "1"),
            ("1e3", 1, "1000.0"),
            ("100", 0, "100"),
            (
                "12345678901234567890123.456",
                1,
                "12345678901234567890123.5",
            ),
        ] {
            assert_eq!(decimal(text).fixed(places), expected, "{text}");
        }
        assert_eq!(
            decimal("1e400").fixed(2),
            format!("1{}.00", "0".repeat(400))
        );
    }

    #[test]
    fn caps_exponents_in_arithmetic_only() {
        assert_eq!(decimal("1e10000").plain().len(), 10_001);
        assert!(Decimal::parse_bounded("1e10001").is_err());
        assert!(Decimal::parse_bounded("1e-99999999999999999999").is_err());
        assert!(Decimal::parse("1e10001") > Decimal::parse("9e9999"));
        assert!(Decimal::parse("-1e99999999999999999999") < Decimal::parse("-1"));
    }

    #[test]
    fn adds_exactly() {
        let sum = |texts: &[&str]| {
            Decimal::sum(&texts.iter().map(|text| decimal(text)).collect::<Vec<_>>()).plain()
        };
        assert_eq!(sum(&[]), "0");
        assert_eq!(sum(&["0.1", "0.2"]), "0.3");
        assert_eq!(sum(&["1", "-1.5"]), "-0.5");
        assert_eq!(sum(&["99", "1", "-100"]), "0");
        assert_eq!(sum(&["9007199254740993", "1"]), "9007199254740994");
        assert_eq!(sum(&["1e20", "-1"]), "99999999999999999999");
    }

    proptest! {
        #[test]
        fn agrees_with_integers(a in -1_000_000_i128.., b in any::<i64>(), places in 0_u32..6) {
            let (x, y) = (decimal(&a.to_string()), decimal(&b.to_string()));
            prop_assert_eq!(x.cmp(&y), a.cmp(&i128::from(b)));
            if let Some(sum) = a.checked_add(i128::from(b)) {
                prop_assert_eq!(Decimal::sum(&[x.clone(), y]).plain(), sum.to_string());
            }
            let (fixed, whole) = (x.fixed(places), a.to_string());
            prop_assert_eq!(fixed.split('.').next(), Some(whole.as_str()));
        }

        #[test]
        fn rounds_as_integer_division_does(units in any::<i32>(), places in 0_u32..4) {
            let text = format!("{units}e-4");
            let scale = 10_i64.pow(4 - places);
            let half = if units < 0 { -scale / 2 } else { scale / 2 };
            let expected = (i64::from(units) + half) / scale;
            prop_assert_eq!(
                decimal(&text).round(places),
                decimal(&format!("{expected}e-{places}"))
            );
        }
    }
}
