//! `cargo xtask full`: what takes too long for every change. All parts run, also when one fails,
//! and one table has the results.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::{bench, fuzz, soak, workspace};

/// A part: its name, what it does.
type Part = (&'static str, fn() -> Result<()>);

const PARTS: [Part; 6] = [
    ("soak, one round", || soak::run(&[])),
    ("faults, 60 s each", || {
        soak::run(&["--faults", "all", "--seconds", "60"].map(str::to_owned))
    }),
    ("fuzz targets, 60 s each", || fuzz::run(&[])),
    ("dist build", bench::build_dist),
    ("overload of the dist build, 60 s each", overload_dist),
    ("instructions of the dist build", || {
        bench::run(&["instructions".to_owned(), "--dist".to_owned()])
    }),
];

/// How one part ended.
struct Outcome {
    name: &'static str,
    took: Duration,
    error: Option<String>,
}

/// Runs all parts, then prints the table.
///
/// # Errors
///
/// At least one part failed, or there is an option.
pub fn run(options: &[String]) -> Result<()> {
    ensure!(options.is_empty(), "full takes no options");
    let outcomes: Vec<Outcome> = PARTS.into_iter().map(outcome).collect();
    print!("\n{}", table(&outcomes));
    let failed = outcomes
        .iter()
        .filter(|outcome| outcome.error.is_some())
        .count();
    if failed > 0 {
        bail!("{failed} of {} parts failed", outcomes.len());
    }
    Ok(())
}

/// Overloads the optimised service: rates of the build of the tests say little about it.
fn overload_dist() -> Result<()> {
    let kanat = workspace::target_folder().join("dist/kanat");
    let kanat = kanat.to_string_lossy();
    let options = ["--overload", "all", "--seconds", "60", "--kanat", &kanat];
    soak::run(&options.map(str::to_owned))
}

fn outcome((name, part): Part) -> Outcome {
    let begun = Instant::now();
    let error = part().err().map(|error| format!("{error:#}"));
    Outcome {
        name,
        took: begun.elapsed(),
        error,
    }
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = "| part | took | outcome |\n| --- | --- | --- |\n".to_owned();
    for Outcome { name, took, error } in outcomes {
        let ended = error
            .as_ref()
            .map_or("passed".to_owned(), |error| format!("failed: {error}"));
        text += &format!("| {name} | {} s | {ended} |\n", took.as_secs());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_stands_in_the_table_beside_those_that_passed() {
        let outcomes = [
            outcome(("good", || Ok(()))),
            outcome(("bad", || bail!("no disk"))),
        ];
        let text = table(&outcomes);
        assert!(text.contains("| good | 0 s | passed |"), "{text}");
        assert!(text.contains("| bad | 0 s | failed: no disk |"), "{text}");
    }
}
