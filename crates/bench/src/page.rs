//! The page of results.

use std::fmt::Write;

use crate::figures::plain;
use crate::finding::Finding;
use crate::subject::Series;

/// Method of the measurements, in the words of the page.
const METHOD: &str = include_str!("page/method.md");

/// Writes the table of results.
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
            if finding.is_reached() {
                "yes"
            } else {
                "**no**"
            },
            finding.details
        );
    }
    table
}

/// Writes the table of runs, with all that was measured of them; nothing when there are none.
pub fn runs(series: &[Series]) -> String {
    if series.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "| server | load | acked/s | delivered/s | answer, 50 and 99 % | at the target, 50 and 99 \
         % | CPU seconds for 10,000 | memory at most | orders a commit |\n| --- | --- | --- | --- \
         | --- | --- | --- | --- | --- |\n",
    );
    let both = |[half, most]: [f64; 2]| match half.is_finite() {
        true => format!("{} and {} ms", plain(half), plain(most)),
        false => "-".to_owned(),
    };
    for series in series {
        let ack = [0, 1].map(|at| series.median(|run| run.ack_ms[at]));
        let delivery = [0, 1].map(|at| series.median(|run| run.delivery_ms[at]));
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} | {} MiB | {} |",
            series.server,
            series.load,
            plain(series.median(|run| run.acked_per_second)),
            plain(series.median(|run| run.delivered_per_second)),
            both(ack),
            both(delivery),
            plain(series.median(|run| run.cpu_us) / 100.0),
            plain(series.median(|run| run.peak_memory_mib)),
            plain(1.0 / series.median(|run| run.commits_per_message)),
        );
    }
    table
}

/// Writes the whole page in Markdown.
pub fn write(findings: &[Finding], series: &[Series], machine: &[String], rounds: usize) -> String {
    let machine: String = machine.iter().map(|line| format!("- {line}\n")).collect();
    format!(
        "# Benchmarks\n\nWritten by `cargo xtask bench`: do not edit. Medians of {rounds} rounds \
         in one run.\nCompare the ratios: absolute figures belong to the machine. \
         [performance.md](performance.md) lists the goals that were not reached,\nwith the \
         reasons, and where the time goes.\n\n{machine}\n{}\n{}\n{METHOD}",
        table(findings),
        runs(series)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Goal;

    #[test]
    fn a_goal_that_was_missed_stands_out() {
        let details = "bare 10 MiB".to_owned();
        let missed = Finding::new("P6", "memory", Goal::AtMost(60.0), 70.0, details);
        let page = write(
            &[missed.in_units("MiB")],
            &[],
            &["machine: one".to_owned()],
            5,
        );
        assert!(
            page.contains("| P6 | memory | at most 60.0 MiB | 70.0 MiB | **no** | bare 10 MiB |"),
            "{page}"
        );
        assert!(page.contains("- machine: one\n") && page.contains("## Method"));
    }
}
