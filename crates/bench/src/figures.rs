//! Percentiles, medians, and numbers as text.

/// Returns a percentile in milliseconds, of sorted nanoseconds.
pub fn percentile(sorted: &[u64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |&nanos| nanos as f64 / 1e6)
}

/// Returns the median; not a number when there are no figures.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Writes a figure with commas between thousands, and with three to four significant digits.
pub fn plain(figure: f64) -> String {
    if !figure.is_finite() {
        return "-".to_owned();
    }
    let decimals = match figure.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        small if small >= 0.1 || small == 0.0 => 2,
        _ => 4,
    };
    let mut text = format!("{figure:.decimals$}");
    let first = text.find(|letter: char| letter.is_ascii_digit());
    let first = first.unwrap_or_default();
    let mut at = text.find('.').unwrap_or(text.len());
    while at > first + 3 {
        at -= 3;
        text.insert(at, ',');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_with_few_digits() {
        assert_eq!(plain(1_234_567.8), "1,234,568");
        assert_eq!(plain(-1_000.0), "-1,000");
        assert_eq!(plain(0.0123), "0.0123");
        assert_eq!(plain(f64::NAN), "-");
    }
}
