//! The workspace: its root, its files, its crates and their dependencies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

/// The folder of the root `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The folder in which cargo builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// One file of the workspace, read.
#[derive(Clone)]
pub struct SourceFile {
    /// From the root, with `/`.
    pub path: String,
    pub text: String,
}

impl SourceFile {
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The text files that people wrote: what git tracks or would track, by extension.
pub fn files(extensions: &[&str]) -> Result<Vec<SourceFile>> {
    files_in(&root(), extensions)
}

/// Returns the text files of a checkout by their extensions.
///
/// # Errors
/// A file that cannot be read or is not UTF-8.
pub fn files_in(root: &Path, extensions: &[&str]) -> Result<Vec<SourceFile>> {
    let mut paths = Vec::new();
    collect(root, root, &mut paths).context("cannot list the files of the workspace")?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if !extensions
            .iter()
            .any(|extension| path.ends_with(&format!(".{extension}")))
        {
            continue;
        }
        let bytes =
            std::fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        let text = String::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))?;
        files.push(SourceFile { path, text });
    }
    Ok(files)
}

fn collect(root: &Path, folder: &Path, paths: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            let skipped = name == ".git"
                || name == "target"
                || name == "node_modules"
                || name == "kanat-data";
            if !skipped {
                collect(root, &path, paths)?;
            }
        } else if let Ok(relative) = path.strip_prefix(root) {
            paths.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// A crate of the workspace and its direct dependencies.
pub struct Member {
    pub name: String,
    /// Folder from the root, with `/`.
    pub folder: String,
    pub dependencies: Vec<Dependency>,
}

pub struct Dependency {
    pub name: String,
    /// True when only tests or examples use it.
    pub dev: bool,
}

/// The crates of the workspace.
pub fn members() -> Result<Vec<Member>> {
    let text = command::output(command::cargo([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let metadata: Value =
        serde_json::from_str(&text).context("cannot read what `cargo metadata` printed")?;
    Ok(list(&metadata, "packages").iter().map(member).collect())
}

fn member(package: &Value) -> Member {
    let manifest = text(package, "manifest_path");
    let folder = Path::new(manifest).parent().unwrap_or(Path::new(""));
    let folder = folder
        .strip_prefix(root())
        .unwrap_or(folder)
        .to_string_lossy()
        .replace('\\', "/");
    let dependencies = list(package, "dependencies")
        .iter()
        .map(|dependency| Dependency {
            name: text(dependency, "name").to_owned(),
            dev: text(dependency, "kind") == "dev",
        });
    Member {
        name: text(package, "name").to_owned(),
        folder,
        dependencies: dependencies.collect(),
    }
}

/// The list at `key`; empty when there is none.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The text at `key`; empty when there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
