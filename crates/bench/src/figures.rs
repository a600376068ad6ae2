//! Percentiles and medians.

/// In milliseconds, of sorted nanoseconds.
pub fn percentile(sorted: &[u64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |&nanos| nanos as f64 / 1e6)
}

/// The one in the middle; not a number when there is none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// With commas between thousands; small ones with as many decimals as tell something.
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
    let text = format!("{figure:.decimals$}");
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), String::new()), |(w, r)| {
            (w, format!(".{r}"))
        });
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_as_people_write_them() {
        assert_eq!(
            [plain(1_234_567.8), plain(999.6), plain(12.34)],
            ["1,234,568", "1,000", "12.3"]
        );
        assert_eq!(
            [plain(0.5), plain(0.0123), plain(0.0), plain(f64::NAN)],
            ["0.50", "0.0123", "0.00", "-"]
        );
    }

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert!(median([]).is_nan());
        assert_eq!(percentile(&[1_000_000, 2_000_000, 3_000_000], 50), 2.0);
        assert_eq!(percentile(&[], 99), 0.0);
    }
}
