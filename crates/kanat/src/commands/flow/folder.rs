//! The definitions that a path names: one file, or those of a folder and its subfolders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::exit::usage;

/// The file `path`, or the `.yaml` and `.yml` files of the folder and its subfolders, in order of
/// their paths. Hidden folders and links to folders are passed over.
pub fn files(path: &str) -> Result<Vec<String>> {
    if !Path::new(path).is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(path)];
    while let Some(folder) = folders.pop() {
        let unreadable = |error| usage(format!("cannot read {}: {error}", folder.display()));
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let found = entry.path();
            if entry.file_type().map_err(unreadable)?.is_dir() {
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                folders.extend((!is_hidden).then_some(found));
            } else if found.is_file() && is_definition(&found) {
                files.push(found);
            }
        }
    }
    if files.is_empty() {
        return Err(usage(format!("{path} has no .yaml or .yml file")));
    }
    files.sort();
    Ok(files
        .iter()
        .map(|file| file.display().to_string())
        .collect())
}

/// Returns the error of two definitions, given by name and file, that are of one flow.
pub fn repeated<'d>(definitions: impl IntoIterator<Item = (&'d str, &'d str)>) -> Option<String> {
    let mut files: BTreeMap<&str, &str> = BTreeMap::new();
    definitions.into_iter().find_map(|(name, file)| {
        let other = files.insert(name, file)?;
        Some(format!("{other} and {file} both define the flow {name:?}"))
    })
}

fn is_definition(file: &Path) -> bool {
    file.extension()
        .is_some_and(|end| end == "yaml" || end == "yml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_definitions_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        assert!(files(&at("")).is_err(), "an empty folder is a slip");
        for name in ["b.yaml", "a.yml", "notes.md"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(files(&at("")).unwrap(), [at("a.yml"), at("b.yaml")]);
        for sub in ["a", "a/deep", ".git"] {
            std::fs::create_dir(at(sub)).unwrap();
            std::fs::write(at(&format!("{sub}/c.yaml")), "").unwrap();
        }
        let paths = ["a/c.yaml", "a/deep/c.yaml", "a.yml", "b.yaml"];
        assert_eq!(files(&at("")).unwrap(), paths.map(at));
        assert_eq!(
            files("missing.yaml").unwrap(),
            ["missing.yaml"],
            "reading it says that it is missing"
        );
    }
}
