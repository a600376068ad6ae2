//! Exact decimal numbers of any size, on their digits: every operation costs no more than the
//! digits are long, but products and quotients.

mod arithmetic;
mod digits;

use std::cmp::Ordering;
use std::ops::Range;

use digits::Digits;

/// Largest magnitude of an exponent in arithmetic, where each step of it may become a digit.
const MAX_EXPONENT: i64 = 10_000;

/// Magnitude to which written exponents are limited. No digits of a text outweigh it.
const EXPONENT_LIMIT: i64 = i64::MAX / 4;

/// Greatest number of columns that a sum in an integer has. With the summands' carries it is below
/// the greatest integer.
const MAX_SHORT_COLUMNS: usize = 34;

/// Greatest number of summands of a sum in an integer.
const MAX_SHORT_SUMMANDS: usize = 1_024;

/// `digits` x 10^`exponent`, without zeros at either end; zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decimal {
    is_negative: bool,
    digits: Digits,
    exponent: i64,
}

impl Decimal {
    /// Greatest number of digits that a divisor of [`Decimal::is_multiple_of`] may have.
    pub const MAX_DIVISOR_DIGITS: usize = 18;

    /// Parses a number as JSON writes it, and as people do: with blanks around it, a plus, leading
    /// zeros, `.5`, `5.`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let mut digits = Digits::with_capacity(mantissa.len());
        let mut point = None;
        for byte in mantissa.bytes() {
            match byte {
                b'0'..=b'9' => digits.push(byte - b'0'),
                b'.' if point.is_none() => point = Some(digits.len()),
                _ => return None,
            }
        }
        if digits.is_empty() {
            return None;
        }
        let fraction = i64::try_from(digits.len() - point.unwrap_or(digits.len())).ok()?;
        Some(
            Self {
                is_negative,
                digits,
                exponent: exponent.saturating_sub(fraction),
            }
            .normal(),
        )
    }

    /// Parses a number for arithmetic, as [`Decimal::parse`] does.
    ///
    /// # Errors
    /// The text is no number, or its exponent is beyond 10,000.
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

    /// Returns the nearest number with `places` decimals; a half goes away from zero.
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

    /// Writes the number with exactly `places` decimals.
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

    /// Writes all digits, without an exponent.
    pub fn plain(&self) -> String {
        let zeros = usize::try_from(self.exponent).unwrap_or(0);
        let decimals = usize::try_from(-self.exponent).unwrap_or(0);
        let whole = self.digits.len().saturating_sub(decimals);
        let mut text = Vec::with_capacity(self.digits.len() + zeros + decimals + 3);
        if self.is_negative {
            text.push(b'-');
        }
        if whole == 0 {
            text.push(b'0');
        }
        let digit = |digit: &u8| b'0' + digit;
        text.extend(self.digits[..whole].iter().map(digit));
        if whole > 0 {
            text.extend(std::iter::repeat_n(b'0', zeros));
        }
        if decimals > 0 {
            text.push(b'.');
            let zeros = decimals.saturating_sub(self.digits.len());
            text.extend(std::iter::repeat_n(b'0', zeros));
            text.extend(self.digits[whole..].iter().map(digit));
        }
        String::from_utf8(text).unwrap_or_default()
    }

    /// Appends a text that equal numbers have in common, and no others.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
        out.extend(self.digits.iter().map(|digit| b'0' + digit));
        out.push(b'e');
        out.extend_from_slice(self.exponent.to_string().as_bytes());
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub fn is_positive(&self) -> bool {
        !self.is_negative && !self.is_zero()
    }

    /// Returns whether the number is an integer, as 1.0 and 1e3 are.
    pub fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// Returns the number of digits without the zeros at either end.
    pub fn digit_count(&self) -> usize {
        self.digits.len()
    }

    /// Returns an integer of at least 0; [`u64::MAX`] stands for all that are larger.
    pub fn to_count(&self) -> Option<u64> {
        if self.is_negative || !self.is_whole() {
            return None;
        }
        // More zeros than u64 has digits change nothing.
        let zeros = usize::try_from(self.exponent.min(20)).unwrap_or_default();
        let digits = self.digits.iter().chain(std::iter::repeat_n(&0, zeros));
        Some(digits.fold(0_u64, |count, digit| {
            count.saturating_mul(10).saturating_add(u64::from(*digit))
        }))
    }

    /// Returns whether `divisor` divides the number without a remainder. A divisor of more than
    /// [`Decimal::MAX_DIVISOR_DIGITS`] digits, or zero, divides only zero.
    pub fn is_multiple_of(&self, divisor: &Self) -> bool {
        if self.is_zero() {
            return true;
        }
        let shift = self.exponent.saturating_sub(divisor.exponent);
        // The last digit is not 0, so that the number is no multiple of ten.
        if shift < 0 || divisor.is_zero() || divisor.digits.len() > Self::MAX_DIVISOR_DIGITS {
            return false;
        }
        let modulus = divisor
            .digits
            .iter()
            .fold(0_u128, |value, digit| value * 10 + u128::from(*digit));
        let remainder = self.digits.iter().fold(0_u128, |remainder, digit| {
            (remainder * 10 + u128::from(*digit)) % modulus
        });
        (remainder * power_of_ten(shift.unsigned_abs(), modulus)).is_multiple_of(modulus)
    }

    /// Returns the number without its sign.
    pub fn abs(mut self) -> Self {
        self.is_negative = false;
        self
    }

    /// Returns the number times ten to the power of `power`.
    pub fn times_power_of_ten(mut self, power: i64) -> Self {
        self.exponent = self.exponent.saturating_add(power);
        self.normal()
    }

    /// Returns the columns in which the numbers have digits, by their powers of ten.
    pub fn columns<'n>(numbers: impl Iterator<Item = &'n Self> + Clone) -> Range<i64> {
        let numbers = || numbers.clone().filter(|number| !number.is_zero());
        let lowest = numbers().map(|number| number.exponent).min().unwrap_or(0);
        lowest..numbers().map(Self::magnitude).max().unwrap_or(lowest)
    }

    /// Returns the sum: it is taken column by column and carried once at the end.
    pub fn sum(numbers: &[Self]) -> Self {
        let columns = Self::columns(numbers.iter());
        let lowest = columns.start;
        if numbers.len() <= MAX_SHORT_SUMMANDS && columns.clone().count() <= MAX_SHORT_COLUMNS {
            return Self::short_sum(numbers, lowest);
        }
        let mut columns = vec![0_i64; columns.count()];
        for number in numbers.iter().filter(|number| !number.is_zero()) {
            let first = usize::try_from(number.exponent - lowest).unwrap_or(0);
            let sign = if number.is_negative { -1 } else { 1 };
            for (column, digit) in columns[first..].iter_mut().zip(number.digits.iter().rev()) {
                *column += sign * i64::from(*digit);
            }
        }
        let carried = carry(&mut columns);
        let is_negative = carried < 0;
        if is_negative {
            columns.iter_mut().for_each(|column| *column = -*column);
            columns.push(-carried);
            carry(&mut columns);
        }
        let digits = columns
            .iter()
            .rev()
            .filter_map(|column| u8::try_from(*column).ok())
            .collect();
        Self {
            is_negative,
            digits,
            exponent: lowest,
        }
        .normal()
    }

    /// Returns the sum of numbers whose digits are in few columns from `lowest` on.
    fn short_sum(numbers: &[Self], lowest: i64) -> Self {
        let sum: i128 = numbers
            .iter()
            .filter(|number| !number.is_zero())
            .filter_map(|number| {
                let integer = i128::try_from(number.digits.to_integer()?).ok()?;
                let zeros = u32::try_from(number.exponent - lowest).ok()?;
                let aligned = integer * 10_i128.pow(zeros);
                Some(if number.is_negative {
                    -aligned
                } else {
                    aligned
                })
            })
            .sum();
        Self {
            is_negative: sum < 0,
            digits: Digits::of_integer(sum.unsigned_abs()),
            exponent: lowest,
        }
        .normal()
    }

    /// Returns the power of ten above the first digit.
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
        // All of them were nines.
        let power = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        self.digits = Digits::of_integer(1);
        self.exponent = self.exponent.saturating_add(power);
    }

    fn normal(mut self) -> Self {
        let is_zero = |digit: &&u8| **digit == 0;
        let first = self.digits.iter().take_while(is_zero).count();
        if first > 0 {
            self.digits.remove_first(first);
        }
        let last = self.digits.iter().rev().take_while(is_zero).count();
        if last > 0 {
            self.digits.truncate(self.digits.len() - last);
            let power = i64::try_from(last).unwrap_or(i64::MAX);
            self.exponent = self.exponent.saturating_add(power);
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
        let sign = |number: &Self| match (number.is_zero(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let by_size = || {
            self.magnitude()
                .cmp(&other.magnitude())
                .then_with(|| (*self.digits).cmp(&*other.digits))
        };
        sign(self).cmp(&sign(other)).then_with(|| {
            if self.is_negative {
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

/// Parses an exponent, limited to [`EXPONENT_LIMIT`].
fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(EXPONENT_LIMIT);
    Some(sign * size.min(EXPONENT_LIMIT))
}

/// Returns ten to the power of `power` modulo `modulus`, which has at most 18 digits.
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

/// Brings columns, lowest first, to one digit each. The carry goes into new columns, or is returned
/// when it is negative.
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
mod tests;
