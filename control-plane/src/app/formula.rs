//! Cells of CSV files that a spreadsheet would run as formulas: an export marks them as text, and
//! an import takes the mark off.

use std::borrow::Cow;

/// Character that marks a cell as text in a spreadsheet, and is not shown.
const MARK: char = '\'';

/// Returns the cell as it is exported: behind a mark when a spreadsheet would run it, or take its
/// first character for a mark.
pub fn mark(cell: &str) -> Cow<'_, str> {
    let runs = match cell.chars().next() {
        Some('=' | '+' | '@' | '\t' | '\r' | MARK) => true,
        Some('-') => !is_number(&cell[1..]),
        Some(_) | None => false,
    };
    if runs {
        Cow::Owned(format!("{MARK}{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// Returns the cell as it is imported: without one mark, where it begins with one.
pub fn unmark(cell: &str) -> &str {
    cell.strip_prefix(MARK).unwrap_or(cell)
}

/// Returns whether a text is a number without a sign, such as `5`, `0.25` or `1e-3`.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    digits(whole)
        && digits(fraction)
        && digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_what_a_spreadsheet_would_run() {
        for run in [
            "=1+1", "+1", "@SUM(1)", "\t=1", "\r=1", "-1+1", "-", "-inf", "-1e", "-.5", "-2 ",
            "'a", "'",
        ] {
            assert_eq!(mark(run), format!("'{run}"));
        }
        for plain in [
            "", "a=1", "5", "-5", "-0.25", "-1e-3", "-1.5E+10", " =1", "\"x",
        ] {
            assert_eq!(mark(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn an_import_takes_off_what_an_export_put_on(cell in any::<String>()) {
            let marked = mark(&cell);
            prop_assert_eq!(unmark(&marked), &cell);
        }
    }
}
