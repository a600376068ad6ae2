//! Counts in the width that messages carry them in.

/// Returns a count as 32 bits; one that does not fit is the largest that does.
pub fn saturated(count: impl TryInto<u32>) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}
