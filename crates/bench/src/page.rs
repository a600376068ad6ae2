//! The page of figures.

use std::fmt::Write;

use crate::figures::plain;
use crate::finding::{Finding, Row};

/// How it was measured, in the words of the page.
const METHOD: &str = include_str!("page/method.md");

/// The table alone.
pub fn table(findings: &[Finding]) -> String {
    let mut table = String::from(
        "| | measure | goal | measured | reached | figures |\n| --- | --- | --- | --- | --- | --- \
         |\n",
    );
    for finding in findings {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            finding.measure,
            finding.what,
            finding.goal_text(),
            finding.figure_text(),
            if finding.reached() { "yes" } else { "**no**" },
            finding.of
        );
    }
    table
}

/// What was run, with all that was measured of it; nothing when there were no such runs.
pub fn runs(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "| server | load | acked/s | delivered/s | answer, 50 and 99 % | at the target, 50 and 99 \
         % | CPU seconds for 10,000 | memory at most | orders a commit |\n| --- | --- | --- | --- \
         | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let both = |[half, most]: [f64; 2]| match half.is_finite() {
            true => format!("{} and {} ms", plain(half), plain(most)),
            false => "-".to_owned(),
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} | {} MiB | {} |",
            row.server,
            row.load,
            plain(row.acked_per_second),
            plain(row.delivered_per_second),
            both(row.ack_ms),
            both(row.delivery_ms),
            plain(row.cpu_seconds_per_10_000),
            plain(row.peak_memory_mib),
            plain(row.messages_per_commit),
        );
    }
    table
}

/// All of it, in Markdown.
pub fn write(findings: &[Finding], rows: &[Row], machine: &[String], rounds: usize) -> String {
    let machine: String = machine.iter().map(|line| format!("- {line}\n")).collect();
    format!(
        "# Benchmarks\n\nWritten by `cargo xtask bench`: do not edit. Medians of {rounds} rounds \
         in one run; ratios are what to compare, absolute figures belong to the machine. \
         [performance.md](performance.md) says what was not reached, why, and where the time \
         goes.\n\n{machine}\n{}\n![Each figure beside its goal](benchmarks.svg)\n\n{}\n{METHOD}",
        table(findings),
        runs(rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Goal;

    #[test]
    fn a_goal_that_was_missed_stands_out() {
        let missed = Finding::new(
            "P6",
            "memory",
            Goal::AtMost(60.0),
            70.0,
            "bare 10 MiB".to_owned(),
        )
        .in_units("MiB");
        let page = write(&[missed], &[], &["machine: one".to_owned()], 5);
        assert!(
            page.contains("| P6 | memory | at most 60.0 MiB | 70.0 MiB | **no** | bare 10 MiB |"),
            "{page}"
        );
        assert!(page.contains("- machine: one\n") && page.contains("## Method"));
    }
}
