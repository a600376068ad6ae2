//! `cargo xtask`: the tasks of the workspace that are more than one cargo command. Each task is one
//! file.

mod bench;
mod catalog;
mod command;
mod commands;
mod deny;
mod dist;
mod full;
mod fuzz;
mod lint;
mod modules;
mod names;
mod permissions;
mod sbom;
mod soak;
mod syntax;
mod test;
mod tidy;
mod words;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  test [FILTER...]   build kanat, then run every test; FILTER goes to the test binaries
  lint               formatting, tidy, clippy, licences and sources, docs: all without a warning
  tidy               the rules of the tree that no other tool knows
  permissions        write docs/permissions.md from the options of the methods in proto/
  commands           write the list of commands in docs/CLI.md from their definitions
  words [--list] [FOLDER]
                     figures of how the code reads: comments, names, layout, size (of another
                     folder: FOLDER); --list prints each comment and name that they count
  soak [OPTION...]   the fault suite with many kills: --rounds N, each with a seed that follows
                     --seed S
  soak --faults LIST cause faults under load (all, or kill,power,...), each for --seconds N with
                     --seed S; print a table of what was acked, lost, given up, sent twice or out
                     of order, and of how long recovery took
  soak --overload LIST offer ten times what a target takes to a service on each log (all, or
                     sqlite,postgres) for --seconds N (--kanat PATH: to this one); print what was
                     accepted, refused and delivered, and how fast
  fuzz [OPTION...]   run every fuzz target under libFuzzer for --seconds N each (--target NAME:
                     this one), and print what was executed and covered
  full               everything that takes too long for every change; prints one table
  dist               build the binary for packages: optimised, stripped, without paths of this
                     machine, and looked at
  sbom               write what the binary is made of, as CycloneDX, into target/sbom
  catalog check FILE...  read data files of the connector catalog and tell what is wrong with them
  bench [OPTION...]  measure the dist binary beside bare servers (--only p1,p7 chooses, --quick
                     only sees that it runs, --help lists the options)
  bench pair BINARY  run BINARY, or the one kept of a commit, and the dist binary in turn; print
                     the ratios of rate and of CPU time (--keep keeps the dist binary by its
                     commit)
  bench instructions count the instructions of the hot paths in the build of the tests (--dist: in
                     the dist build)
";

fn main() -> ExitCode {
    if let Some(code) = fuzz::compile() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match arguments.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("", &[][..]),
    };
    let outcome = match task {
        "test" => test::run(rest),
        "lint" => lint::run(),
        "tidy" => tidy::run(),
        "permissions" => permissions::run(),
        "commands" => commands::run(),
        "words" => words::run(rest),
        "soak" => soak::run(rest),
        "full" => full::run(rest),
        "dist" => dist::run(rest),
        "sbom" => sbom::run(rest),
        "fuzz" => fuzz::run(rest),
        "catalog" => catalog::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
