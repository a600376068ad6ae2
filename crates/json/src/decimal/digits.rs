//! Digits of a number. Short numbers, which most are, need no allocation.

use std::ops::{Deref, DerefMut};

/// Greatest number of digits without an allocation.
const INLINE: usize = 30;

/// Values from 0 to 9, the first one counting most.
#[derive(Debug, Clone)]
pub(super) enum Digits {
    Inline { length: u8, bytes: [u8; INLINE] },
    Heap(Vec<u8>),
}

impl Digits {
    pub fn with_capacity(capacity: usize) -> Self {
        if capacity > INLINE {
            Self::Heap(Vec::with_capacity(capacity))
        } else {
            Self::default()
        }
    }

    /// Returns the digits of an integer; none for zero.
    pub fn of_integer(mut integer: u128) -> Self {
        let mut digits = [0; 39];
        let mut first = digits.len();
        // Divisions of 64 bits are much quicker.
        while integer > u128::from(u64::MAX) {
            first -= 1;
            digits[first] = last_digit(integer % 10);
            integer /= 10;
        }
        let mut rest = u64::try_from(integer).unwrap_or(u64::MAX);
        while rest > 0 {
            first -= 1;
            digits[first] = last_digit(u128::from(rest % 10));
            rest /= 10;
        }
        digits[first..].iter().copied().collect()
    }

    /// Returns the integer that they are; `None` when it may be too large.
    pub fn to_integer(&self) -> Option<u128> {
        if self.len() <= 19 {
            let integer = self
                .iter()
                .fold(0_u64, |integer, digit| integer * 10 + u64::from(*digit));
            return Some(integer.into());
        }
        let integer = || {
            self.iter()
                .fold(0_u128, |integer, digit| integer * 10 + u128::from(*digit))
        };
        (self.len() <= 38).then(integer)
    }

    pub fn push(&mut self, digit: u8) {
        match self {
            Self::Inline { length, bytes } if usize::from(*length) < INLINE => {
                bytes[usize::from(*length)] = digit;
                *length += 1;
            }
            Self::Inline { .. } => {
                let mut digits = Vec::with_capacity(2 * INLINE);
                digits.extend_from_slice(self);
                digits.push(digit);
                *self = Self::Heap(digits);
            }
            Self::Heap(digits) => digits.push(digit),
        }
    }

    pub fn truncate(&mut self, count: usize) {
        match self {
            Self::Inline { length, .. } => {
                *length = u8::try_from(count).unwrap_or(*length).min(*length);
            }
            Self::Heap(digits) => digits.truncate(count),
        }
    }

    /// Removes digits at the beginning.
    pub fn remove_first(&mut self, count: usize) {
        match self {
            Self::Inline { length, bytes } => {
                bytes.copy_within(count..usize::from(*length), 0);
                *length -= u8::try_from(count).unwrap_or(*length);
            }
            Self::Heap(digits) => {
                digits.drain(..count);
            }
        }
    }
}

fn last_digit(digit: u128) -> u8 {
    u8::try_from(digit).unwrap_or_default()
}

impl Default for Digits {
    fn default() -> Self {
        Self::Inline {
            length: 0,
            bytes: [0; INLINE],
        }
    }
}

impl Deref for Digits {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Self::Heap(digits) => digits,
        }
    }
}

impl DerefMut for Digits {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Inline { length, bytes } => &mut bytes[..usize::from(*length)],
            Self::Heap(digits) => digits,
        }
    }
}

impl PartialEq for Digits {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Digits {}

impl FromIterator<u8> for Digits {
    fn from_iter<I: IntoIterator<Item = u8>>(digits: I) -> Self {
        let digits = digits.into_iter();
        let mut collected = Self::with_capacity(digits.size_hint().0);
        digits.for_each(|digit| collected.push(digit));
        collected
    }
}

impl From<Vec<u8>> for Digits {
    fn from(digits: Vec<u8>) -> Self {
        Self::Heap(digits)
    }
}
