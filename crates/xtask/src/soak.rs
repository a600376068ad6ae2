//! `cargo xtask soak`: the suites of faults, of scale and of split deployments once more, with many
//! kills and many flows where these have few; with `--faults`, the tool that causes faults under
//! load and prints a table of what became of the messages; with `--overload`, the tool that offers
//! ten times what a target takes. Each round has its own seed.
//! Bounds of time are held to the letter, so the machine should have nothing else to do.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, cargo};
use crate::test::{self, FAILPOINTS};
use crate::workspace;

/// One every two seconds, for a minute.
const KILLS: &str = "30";

/// Sizes of the configuration in which one change is made.
const FLOWS: &str = "10000";
const ENTRIES: &str = "100000";

/// Seconds of each fault, and of the load on each log.
const SECONDS: u64 = 60;

/// Kind of run, with its options.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Suites {
        rounds: u64,
        seed: u64,
    },
    Faults {
        list: String,
        seconds: u64,
        seed: u64,
    },
    Overload {
        list: String,
        seconds: u64,
        /// Service to run instead of the one built beside the tests.
        kanat: Option<PathBuf>,
    },
}

/// Runs as many rounds as `--rounds` says, with seeds that begin at `--seed`; or the faults that
/// `--faults` names, or the overload of the logs that `--overload` names, each for `--seconds`;
/// `--kanat` names another service to overload.
pub fn run(options: &[String]) -> Result<()> {
    let task = parse(options)?;
    test::prepare()?;
    match task {
        Task::Suites { rounds, seed } => {
            (seed..seed.saturating_add(rounds)).try_for_each(run_suites)
        }
        Task::Faults {
            list,
            seconds,
            seed,
        } => {
            let mut faults = Command::new(workspace::target_folder().join("debug/faults"));
            faults.args([list, seconds.to_string(), seed.to_string()]);
            command::run(faults)
        }
        Task::Overload {
            list,
            seconds,
            kanat,
        } => {
            let mut overload = Command::new(workspace::target_folder().join("debug/overload"));
            overload.args([list, seconds.to_string()]);
            overload.envs(kanat.map(|path| ("KANAT_BIN", path)));
            command::run(overload)
        }
    }
}

fn run_suites(seed: u64) -> Result<()> {
    eprintln!("\nround with seed {seed}");
    let mut test = cargo([
        "test",
        "--workspace",
        "--locked",
        "--features",
        FAILPOINTS,
        "--test",
        "it",
    ]);
    test.args([
        "--",
        "planes::faults",
        "planes::scale",
        "planes::split",
        "planes::full_disk",
    ]);
    test.args(["--nocapture", "--test-threads=1"]);
    test.env("KANAT_SOAK", "1")
        .env("KANAT_SOAK_KILLS", KILLS)
        .env("KANAT_SOAK_SEED", seed.to_string());
    test.env("KANAT_SOAK_FLOWS", FLOWS)
        .env("KANAT_SOAK_ENTRIES", ENTRIES);
    command::run(test)
}

fn parse(options: &[String]) -> Result<Task> {
    let mut rounds = None;
    let mut seconds = None;
    let mut seed = 1;
    let mut faults = None;
    let mut overload = None;
    let mut kanat = None;
    for option in options.chunks(2) {
        let [name, value] = option else {
            bail!("{} needs a value", option.concat())
        };
        let number = || {
            value
                .parse()
                .with_context(|| format!("{name} takes a number, not {value:?}"))
        };
        match name.as_str() {
            "--rounds" => rounds = Some(number()?),
            "--seconds" => seconds = Some(number()?),
            "--seed" => seed = number()?,
            "--faults" => faults = Some(value.clone()),
            "--overload" => overload = Some(value.clone()),
            "--kanat" => kanat = Some(PathBuf::from(value)),
            _ => bail!(
                "there is no option {name}: soak takes --rounds N, --faults LIST --seconds N or \
                 --overload LIST --seconds N --kanat PATH, and --seed S",
            ),
        }
    }
    ensure!(
        kanat.is_none() || overload.is_some(),
        "--kanat is for --overload"
    );
    match (faults, overload) {
        (None, None) => {
            ensure!(
                seconds.is_none(),
                "--seconds is for --faults and --overload"
            );
            Ok(Task::Suites {
                rounds: rounds.unwrap_or(1),
                seed,
            })
        }
        (Some(list), None) => {
            ensure!(
                rounds.is_none(),
                "--rounds is not for --faults, which takes --seconds"
            );
            Ok(Task::Faults {
                list,
                seconds: seconds.unwrap_or(SECONDS),
                seed,
            })
        }
        (None, Some(list)) => {
            ensure!(
                rounds.is_none(),
                "--rounds is not for --overload, which takes --seconds"
            );
            Ok(Task::Overload {
                list,
                seconds: seconds.unwrap_or(SECONDS),
                kanat,
            })
        }
        (Some(_), Some(_)) => bail!("--faults and --overload are runs of their own"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(options: &[&str]) -> Option<Task> {
        parse(
            &options
                .iter()
                .map(|option| (*option).to_owned())
                .collect::<Vec<_>>(),
        )
        .ok()
    }

    #[test]
    fn takes_rounds_and_seed_in_any_order_and_nothing_else() {
        assert_eq!(parsed(&[]), Some(Task::Suites { rounds: 1, seed: 1 }));
        assert_eq!(
            parsed(&["--seed", "7", "--rounds", "3"]),
            Some(Task::Suites { rounds: 3, seed: 7 })
        );
        assert_eq!(parsed(&["--rounds"]), None);
        assert_eq!(parsed(&["--rounds", "many"]), None);
        assert_eq!(parsed(&["--hours", "3"]), None);
        assert_eq!(parsed(&["--seconds", "3"]), None);
    }

    #[test]
    fn takes_a_list_of_faults_with_its_seconds() {
        let faults = |seconds, seed| {
            Some(Task::Faults {
                list: "kill,power".to_owned(),
                seconds,
                seed,
            })
        };
        assert_eq!(parsed(&["--faults", "kill,power"]), faults(60, 1));
        assert_eq!(
            parsed(&["--faults", "kill,power", "--seconds", "9", "--seed", "7"]),
            faults(9, 7)
        );
        assert_eq!(parsed(&["--faults", "kill,power", "--rounds", "3"]), None);
    }

    #[test]
    fn takes_a_list_of_logs_under_overload() {
        let overload = |seconds, kanat: Option<&str>| {
            Some(Task::Overload {
                list: "all".to_owned(),
                seconds,
                kanat: kanat.map(PathBuf::from),
            })
        };
        assert_eq!(parsed(&["--overload", "all"]), overload(60, None));
        assert_eq!(
            parsed(&["--overload", "all", "--seconds", "9", "--kanat", "former"]),
            overload(9, Some("former"))
        );
        assert_eq!(parsed(&["--faults", "kill", "--kanat", "former"]), None);
        assert_eq!(parsed(&["--overload", "all", "--faults", "kill"]), None);
    }
}
