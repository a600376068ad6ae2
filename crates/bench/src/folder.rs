//! Copies of data folders.

use std::path::Path;

use anyhow::Result;

/// Copies all that is in a folder, into one that is made.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let source = entry.path();
        let copied = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&source, &copied)?;
        } else {
            std::fs::copy(&source, &copied)?;
        }
    }
    Ok(())
}
