//! Files that are whole or not there, whenever the process ends.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file beside and renames it. It is its owner's alone to read (0600), from the start.
///
/// # Errors
/// The folder is not there, or does not take the file.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
