//! `cargo xtask dist`: the binary for packages. It is a `dist` build without paths of the machine
//! that built it. The binary is checked before it is packaged.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo};
use crate::workspace;

/// Symbols that C compilers call for the guards in `.cargo/config.toml`.
const GUARDS: [&str; 2] = ["__stack_chk_fail", "__snprintf_chk"];
/// The section of names that a stripped binary does not have.
const NAMES: &str = ".symtab";

/// Builds into a folder of its own, because other flags build everything anew.
pub fn run(options: &[String]) -> Result<()> {
    ensure!(options.is_empty(), "dist takes no options");
    let folder = workspace::target_folder().join("package");
    let paths = paths(folder.clone())?;
    let mut build = cargo([
        "build",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "kanat",
        "--target-dir",
    ]);
    build
        .arg(&folder)
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", for_rust(&paths));
    build.env(
        "CFLAGS",
        for_c(&std::env::var("CFLAGS").unwrap_or_default(), &paths),
    );
    command::run(build)?;
    let binary = folder.join("dist/kanat");
    let bytes =
        std::fs::read(&binary).with_context(|| format!("cannot read {}", binary.display()))?;
    let faults = faults(&bytes, &paths);
    ensure!(
        faults.is_empty(),
        "{} is not fit for others: {}",
        binary.display(),
        faults.join("; ")
    );
    println!("{}", binary.display());
    Ok(())
}

/// A folder of this machine, and what stands for it in the binary.
struct PathRemap {
    from: String,
    to: &'static str,
}

/// Lists the paths to remap. A path within another one stands after it, because the last match
/// counts.
fn paths(target: PathBuf) -> Result<Vec<PathRemap>> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or(home.map(|home| home.join(".cargo")));
    let cargo_home = cargo_home.context("neither CARGO_HOME nor HOME is set")?;
    let folders = [
        (cargo_home, "/cargo"),
        (workspace::root(), "/kanat"),
        (target, "/build"),
    ];
    let renamed = |(from, to): (PathBuf, &'static str)| -> Result<PathRemap> {
        let from = from
            .into_os_string()
            .into_string()
            .ok()
            .context("a folder's name is not UTF-8")?;
        Ok(PathRemap { from, to })
    };
    folders.into_iter().map(renamed).collect()
}

/// As cargo takes flags that may hold blanks.
fn for_rust(paths: &[PathRemap]) -> String {
    let flags = paths
        .iter()
        .map(|PathRemap { from, to }| format!("--remap-path-prefix={from}={to}"));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

fn for_c(given: &str, paths: &[PathRemap]) -> String {
    paths
        .iter()
        .fold(given.to_owned(), |flags, PathRemap { from, to }| {
            format!("{flags} -ffile-prefix-map={from}={to}")
        })
}

/// Lists the paths of this machine in a binary, and the parts that it lacks.
fn faults(binary: &[u8], paths: &[PathRemap]) -> Vec<String> {
    let has = |text: &str| {
        binary
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    let told = paths
        .iter()
        .filter(|path| has(&path.from))
        .map(|path| format!("it names {}", path.from));
    let open = GUARDS
        .iter()
        .filter(|guard| !has(guard))
        .map(|guard| format!("its C code does not call {guard}"));
    let named = has(NAMES).then(|| "it is not stripped".to_owned());
    told.chain(open).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> [PathRemap; 2] {
        [("/home/a b/.cargo", "/cargo"), ("/src/kanat", "/kanat")].map(|(from, to)| PathRemap {
            from: from.to_owned(),
            to,
        })
    }

    #[test]
    fn folders_of_the_machine_are_renamed_in_rust_and_in_c() {
        assert_eq!(
            for_rust(&paths()),
            "--remap-path-prefix=/home/a b/.cargo=/cargo\u{1f}--remap-path-prefix=/src/kanat=/kanat"
        );
        assert_eq!(
            for_c("-O2", &paths()[1..]),
            "-O2 -ffile-prefix-map=/src/kanat=/kanat"
        );
    }

    #[test]
    fn a_binary_that_names_a_folder_or_lacks_a_guard_is_refused() {
        let good = b"\0__stack_chk_fail\0__snprintf_chk\0/kanat/crates/a.rs";
        assert_eq!(faults(good, &paths()), [""; 0]);
        let bad = b"\0__stack_chk_fail\0/src/kanat/crates/a.rs\0.symtab\0";
        assert_eq!(
            faults(bad, &paths()),
            [
                "it names /src/kanat",
                "its C code does not call __snprintf_chk",
                "it is not stripped"
            ]
        );
    }
}
