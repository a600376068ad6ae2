//! `cargo xtask soak`: the suites of faults, of scale and of split deployments once more, with many kills and many flows where these have few.
//! Each round has its own seed. Bounds of time are held to the letter, so the machine should have nothing else to do.

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo};
use crate::test::{self, FAILPOINTS};

/// One every two seconds, for a minute.
const KILLS: &str = "30";

/// What one change is made among.
const FLOWS: &str = "10000";
const ENTRIES: &str = "100000";

/// Runs as many rounds as `--rounds` says, with seeds that begin at `--seed`.
pub fn run(options: &[String]) -> Result<()> {
    let (rounds, seed) = parse(options)?;
    test::prepare()?;
    for seed in seed..seed.saturating_add(rounds) {
        eprintln!("\nround with seed {seed}");
        let mut test = cargo(["test", "--workspace", "--locked", "--features", FAILPOINTS, "--test", "it"]);
        test.args(["--", "planes::faults", "planes::scale", "planes::split", "--nocapture", "--test-threads=1"]);
        test.env("KANAT_SOAK", "1").env("KANAT_SOAK_KILLS", KILLS).env("KANAT_SOAK_SEED", seed.to_string());
        test.env("KANAT_SOAK_FLOWS", FLOWS).env("KANAT_SOAK_ENTRIES", ENTRIES);
        command::run(test)?;
    }
    Ok(())
}

/// Rounds and first seed.
fn parse(options: &[String]) -> Result<(u64, u64)> {
    let (mut rounds, mut seed) = (1, 1);
    for option in options.chunks(2) {
        let [name, value] = option else { bail!("{} needs a number", option.concat()) };
        let place = match name.as_str() {
            "--rounds" => &mut rounds,
            "--seed" => &mut seed,
            _ => bail!("there is no option {name}: soak takes --rounds N and --seed S"),
        };
        *place = value.parse().with_context(|| format!("{name} takes a number, not {value:?}"))?;
    }
    Ok((rounds, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(options: &[&str]) -> Option<(u64, u64)> {
        parse(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>()).ok()
    }

    #[test]
    fn takes_rounds_and_seed_in_any_order_and_nothing_else() {
        assert_eq!(parsed(&[]), Some((1, 1)));
        assert_eq!(parsed(&["--seed", "7", "--rounds", "3"]), Some((3, 7)));
        assert_eq!(parsed(&["--rounds"]), None);
        assert_eq!(parsed(&["--rounds", "many"]), None);
        assert_eq!(parsed(&["--hours", "3"]), None);
    }
}
