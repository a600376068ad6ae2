//! The definitions that a path names: one file, or those of a folder.

use std::path::Path;

use anyhow::Result;

use crate::exit::usage;

/// The file `path`, or the `.yaml` and `.yml` files of the folder, in order of their names.
pub fn files(path: &str) -> Result<Vec<String>> {
    if !Path::new(path).is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| usage(format!("cannot read {path}: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.is_file()
            && file
                .extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
        {
            files.push(file.display().to_string());
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(usage(format!("{path} has no .yaml or .yml file")));
    }
    Ok(files)
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
        assert_eq!(
            files("missing.yaml").unwrap(),
            ["missing.yaml"],
            "reading it says that it is missing"
        );
    }
}
