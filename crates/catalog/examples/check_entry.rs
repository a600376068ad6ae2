//! Checks data files of the catalog, as `cargo xtask catalog check FILE...` calls it: exit code 1
//! when one is wrong, with all that is.

use std::path::Path;
use std::process::ExitCode;

use kanat_catalog::Entry;

fn main() -> ExitCode {
    let mut all_right = true;
    for file in std::env::args().skip(1) {
        let read = std::fs::read_to_string(&file).map_err(|error| vec![error.to_string()]);
        match read
            .and_then(|text| Entry::read(&text))
            .and_then(|entry| named(entry, &file))
        {
            Ok(entry) => println!("{file}: {} with {} actions", entry.id, entry.actions.len()),
            Err(faults) => {
                all_right = false;
                faults.iter().for_each(|fault| println!("{file}: {fault}"));
            }
        }
    }
    if all_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The build finds an entry by the name of its file.
fn named(entry: Entry, file: &str) -> Result<Entry, Vec<String>> {
    let expected = format!("{}.yaml", entry.id);
    let is_named = Path::new(file)
        .file_name()
        .is_some_and(|name| name == expected.as_str());
    if is_named {
        Ok(entry)
    } else {
        Err(vec![format!("id: the file must be named {expected}")])
    }
}
