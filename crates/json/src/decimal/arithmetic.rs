//! The four operations and the remainder: sums, products and remainders are exact, quotients have
//! 34 digits.

use num_bigint::BigUint;

use super::{Decimal, Digits};

/// Number of digits of a quotient.
const QUOTIENT_DIGITS: usize = 34;

impl Decimal {
    /// Returns the number with the other sign; zero has none.
    pub fn negated(mut self) -> Self {
        self.is_negative = !self.is_negative && !self.is_zero();
        self
    }

    /// Returns the exact product.
    pub fn product(&self, other: &Self) -> Self {
        let is_negative = self.is_negative != other.is_negative;
        let exponent = self.exponent.saturating_add(other.exponent);
        let short = || {
            let integer = self.digits.to_integer()?;
            integer.checked_mul(other.digits.to_integer()?)
        };
        match short() {
            Some(integer) => Self {
                is_negative,
                digits: Digits::of_integer(integer),
                exponent,
            }
            .normal(),
            None => Self::from_integer(is_negative, &(self.integer() * other.integer()), exponent),
        }
    }

    /// Returns the quotient with 34 significant digits, a half rounded to the even digit; `None`
    /// for a divisor of zero.
    pub fn quotient(&self, divisor: &Self) -> Option<Self> {
        if divisor.is_zero() {
            return None;
        }
        // One digit more than those, whatever the first digits of both are.
        let shift = (QUOTIENT_DIGITS + 1 + divisor.digits.len()).saturating_sub(self.digits.len());
        let shift = u32::try_from(shift).ok()?;
        let dividend = self.integer() * BigUint::from(10_u8).pow(shift);
        let divisor_digits = divisor.integer();
        let quotient = &dividend / &divisor_digits;
        let is_exact = &quotient * &divisor_digits == dividend;
        let rounded = Self::from_integer(
            self.is_negative != divisor.is_negative,
            &quotient,
            self.exponent
                .saturating_sub(divisor.exponent)
                .saturating_sub(i64::from(shift)),
        );
        Some(rounded.half_even(QUOTIENT_DIGITS, is_exact))
    }

    /// Returns the rest of the division that is cut towards zero, with the sign of the dividend;
    /// `None` for a divisor of zero.
    pub fn remainder(&self, divisor: &Self) -> Option<Self> {
        if divisor.is_zero() {
            return None;
        }
        if self.magnitude() <= divisor.exponent {
            return Some(self.clone());
        }
        let exponent = self.exponent.min(divisor.exponent);
        let aligned = |number: &Self| {
            let zeros = u32::try_from(number.exponent - exponent).ok()?;
            Some(number.integer() * BigUint::from(10_u8).pow(zeros))
        };
        let rest = aligned(self)? % aligned(divisor)?;
        Some(Self::from_integer(self.is_negative, &rest, exponent))
    }

    /// Returns the number of digits before and after the point when the number is written without
    /// an exponent. The zero before the point of a fraction is none of them.
    pub fn written_digits(&self) -> u64 {
        let decimals = self.exponent.min(0).unsigned_abs();
        let zeros = self.exponent.max(0).unsigned_abs();
        (self.digits.len() as u64 + zeros).max(decimals)
    }

    fn integer(&self) -> BigUint {
        BigUint::from_radix_be(&self.digits, 10).unwrap_or_default()
    }

    fn from_integer(is_negative: bool, integer: &BigUint, exponent: i64) -> Self {
        Self {
            is_negative,
            digits: integer.to_radix_be(10).into(),
            exponent,
        }
        .normal()
    }

    /// Rounds to `count` digits. The digits of a number that is not exact go on after those that it
    /// has.
    fn half_even(mut self, count: usize, is_exact: bool) -> Self {
        let Some(&next) = self.digits.get(count) else {
            return self;
        };
        let is_half = next == 5 && is_exact && self.digits.len() == count + 1;
        let is_odd = count > 0 && self.digits[count - 1] % 2 == 1;
        let up = if is_half { is_odd } else { next >= 5 };
        let dropped = i64::try_from(self.digits.len() - count).unwrap_or(i64::MAX);
        self.exponent = self.exponent.saturating_add(dropped);
        self.digits.truncate(count);
        if up {
            self.increment();
        }
        self.normal()
    }
}
