//! `cargo xtask fuzz`: every fuzz target under libFuzzer, guided by coverage, for some seconds
//! each; then one table. It needs a C++ compiler, and no other Rust than the workspace's: the
//! counters of coverage come from LLVM's own pass, which every compiler has. Only the crates of the
//! workspace are built with them, by this program in the place of the compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, cargo};
use crate::workspace;

/// Seconds of each target.
const SECONDS: u64 = 60;
/// Bounds of one input: its length in bytes, its time in seconds, and the memory of the process in
/// MiB.
const LIMITS: [&str; 3] = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=1024"];
/// Is set where cargo starts this program in the place of the compiler.
const AS_COMPILER: &str = "KANAT_FUZZ_COMPILES";
/// Counters of edges, a table of what they count, and comparisons, as libFuzzer reads them. A
/// little speed, and the checks of a debug build.
const COVERAGE: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=16",
    "-Copt-level=1",
    "-Cdebug-assertions=on",
];

/// How a target ended.
struct Outcome {
    target: String,
    /// Inputs that were run.
    executions: u64,
    /// Edges that they covered.
    edges: u64,
    /// Inputs of the corpus, which grows from run to run.
    corpus: usize,
    failed: bool,
}

/// Runs all targets, or the one that `--target` names, for `--seconds` each.
///
/// # Errors
/// A target failed at an input, which is kept.
pub fn run(options: &[String]) -> Result<()> {
    let mut seconds = SECONDS;
    let mut only = None;
    for option in options.chunks(2) {
        match option {
            [name, value] if name == "--seconds" => {
                seconds = value.parse().context("--seconds takes a number")?
            }
            [name, value] if name == "--target" => only = Some(value.clone()),
            _ => bail!(
                "fuzz takes --seconds N and --target NAME, not {}",
                option.concat()
            ),
        }
    }
    build()?;
    let names = names(&workspace::root().join("crates/fuzz/seeds"))?;
    let names: Vec<String> = names
        .into_iter()
        .filter(|name| only.as_ref().is_none_or(|only| only == name))
        .collect();
    ensure!(!names.is_empty(), "there is no such target");
    let outcomes = names
        .into_iter()
        .map(|name| fuzz(name, seconds))
        .collect::<Result<Vec<_>>>()?;
    print!("\n{}", table(&outcomes));
    let failed = outcomes.iter().filter(|outcome| outcome.failed).count();
    ensure!(failed == 0, "{failed} of {} targets failed", outcomes.len());
    Ok(())
}

/// Stands in for the compiler where cargo asks for that. Returns `None` elsewhere.
pub fn compile() -> Option<ExitCode> {
    std::env::var_os(AS_COMPILER)?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (compiler, arguments) = arguments.split_first()?;
    let mut command = Command::new(compiler);
    command.args(arguments);
    if !runs_in_the_build(arguments) {
        command.args(COVERAGE);
    }
    let code = command
        .status()
        .ok()
        .and_then(|status| status.code())
        .and_then(|code| u8::try_from(code).ok());
    Some(ExitCode::from(code.unwrap_or(1)))
}

/// Build scripts and procedural macros are run without libFuzzer, which has what the counters call.
fn runs_in_the_build(arguments: &[OsString]) -> bool {
    let is = |name: &str, value: &str| {
        arguments.windows(2).any(|pair| {
            pair[0] == *name && pair[1].to_str().is_some_and(|text| text.starts_with(value))
        })
    };
    is("--crate-name", "build_script")
        || is("--crate-type", "proc-macro")
        || !is("--crate-name", "")
}

/// Path of a running program whose file a build has replaced meanwhile: Linux adds a word to it.
fn present_path(path: PathBuf) -> PathBuf {
    match path.to_string_lossy().strip_suffix(" (deleted)") {
        Some(present) => PathBuf::from(present),
        None => path,
    }
}

fn build() -> Result<()> {
    let itself = present_path(std::env::current_exe().context("a program has a path")?);
    let mut build = cargo([
        "build",
        "--locked",
        "-p",
        "kanat-fuzz",
        "--bin",
        "libfuzzer",
    ]);
    build.args(["--features", "kanat-fuzz/libfuzzer"]);
    command::run({
        build
            .env("RUSTC_WORKSPACE_WRAPPER", itself)
            .env(AS_COMPILER, "1");
        build
    })
}

/// Returns the names of the targets, which the folders of their seeds have.
fn names(seeds: &Path) -> Result<Vec<String>> {
    let folders =
        std::fs::read_dir(seeds).with_context(|| format!("cannot read {}", seeds.display()))?;
    let names = folders.map(|folder| Ok(folder?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn fuzz(target: String, seconds: u64) -> Result<Outcome> {
    let folder = workspace::target_folder().join("fuzz").join(&target);
    let corpus = folder.join("corpus");
    std::fs::create_dir_all(&corpus)
        .with_context(|| format!("cannot make {}", corpus.display()))?;
    plant(
        &workspace::root().join("crates/fuzz/seeds").join(&target),
        &corpus,
    )?;
    let log = folder.join("log");
    let output =
        std::fs::File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
    eprintln!("{target}: {seconds} s");
    let begun = Instant::now();
    let mut fuzzer = Command::new(workspace::target_folder().join("debug/libfuzzer"));
    fuzzer
        .arg(&corpus)
        .args(LIMITS)
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1");
    fuzzer
        .arg(format!("-artifact_prefix={}/", folder.display()))
        .env("KANAT_FUZZ_TARGET", &target);
    let status = fuzzer
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("cannot start the fuzzer")?;
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    if !status.success() {
        let tail: Vec<&str> = text.lines().rev().take(40).collect();
        eprintln!(
            "{}\n{target} failed after {} s",
            tail.into_iter().rev().collect::<Vec<_>>().join("\n"),
            begun.elapsed().as_secs()
        );
    }
    let number = |name: &str| last_number(&text, name).unwrap_or(0);
    Ok(Outcome {
        executions: number("stat::number_of_executed_units:"),
        edges: number("cov:"),
        corpus: std::fs::read_dir(&corpus)?.count(),
        failed: !status.success(),
        target,
    })
}

/// Copies seeds to where libFuzzer keeps what it found before.
fn plant(seeds: &Path, corpus: &Path) -> Result<()> {
    for file in
        std::fs::read_dir(seeds).with_context(|| format!("cannot read {}", seeds.display()))?
    {
        let file: PathBuf = file?.path();
        let mut bytes = std::fs::read(&file)?;
        if file.extension().is_some_and(|extension| extension == "hex") {
            bytes = from_hex(&bytes)
                .with_context(|| format!("{} has no hexadecimal digits", file.display()))?;
        }
        let name = file.file_name().context("a file has a name")?;
        std::fs::write(corpus.join(name), bytes)?;
    }
    Ok(())
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?).ok();
    text.trim_ascii().chunks(2).map(byte).collect()
}

/// Returns the number after the last occurrence of a name.
fn last_number(text: &str, name: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once(name)?;
    let digits: String = after
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text =
        "| target | executions | edges | corpus | outcome |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for Outcome {
        target,
        executions,
        edges,
        corpus,
        failed,
    } in outcomes
    {
        let ended = if *failed {
            "failed: its input is in target/fuzz"
        } else {
            "passed"
        };
        text += &format!("| {target} | {executions} | {edges} | {corpus} | {ended} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_after_a_build_has_replaced_it() {
        for path in ["/target/debug/xtask", "/target/debug/xtask (deleted)"] {
            let present = present_path(PathBuf::from(path));
            assert_eq!(present, Path::new("/target/debug/xtask"));
        }
    }

    #[test]
    fn build_scripts_and_macros_have_no_counters() {
        let runs = |text: &str| {
            runs_in_the_build(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
        };
        assert!(runs("--crate-name build_script_build --crate-type bin"));
        assert!(runs("--crate-name derive --crate-type proc-macro"));
        assert!(runs("-vV"));
        assert!(!runs(
            "--crate-name kanat_flow --edition=2024 --crate-type lib"
        ));
    }

    #[test]
    fn reads_the_statistics_that_libfuzzer_prints_at_its_end() {
        let text = "#2 INITED cov: 12 ft: 13\n#99 NEW cov: 345 ft: \
                    400\nstat::number_of_executed_units: 1234\n";
        assert_eq!(last_number(text, "cov:"), Some(345));
        assert_eq!(
            last_number(text, "stat::number_of_executed_units:"),
            Some(1_234)
        );
        assert_eq!(last_number(text, "none:"), None);
    }

    #[test]
    fn seeds_in_hexadecimal_digits_are_bytes() {
        assert_eq!(from_hex(b"01fF\n"), Some(vec![1, 255]));
        assert_eq!(from_hex(b"0g"), None);
        assert_eq!(from_hex(b"012"), None);
    }
}
