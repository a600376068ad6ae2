//! Credentials that `kanat login` saves: an address, a key and an environment, in a file that only
//! its owner can read.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::whole_file;

/// The content of the file. No `Debug`: it holds a key.
#[derive(Default, Serialize, Deserialize)]
pub struct Credentials {
    pub url: Option<String>,
    pub api_key: Option<String>,
    /// Name or id of the environment that commands go to unless they name another one.
    pub environment: Option<String>,
}

/// Loads the saved credentials; empty ones when there is no file.
pub fn load() -> Result<Credentials> {
    let Some(path) = path() else {
        return Ok(Credentials::default());
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).map_err(|_| {
            crate::exit::usage(format!(
                "{} is not what `kanat login` writes; log in again",
                path.display()
            ))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Credentials::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Saves beside and renames, so that the file is whole at every moment; gives its path.
pub fn save(credentials: &Credentials) -> Result<PathBuf> {
    let path = path().context(
        "neither XDG_CONFIG_HOME nor HOME is set; use KANAT_URL and KANAT_API_KEY instead",
    )?;
    let text = toml::to_string(credentials).context("cannot write the credentials as TOML")?;
    write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Removes what was saved; gives the path of the file that was there.
pub fn forget() -> Result<Option<PathBuf>> {
    let Some(path) = path() else { return Ok(None) };
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(Some(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", path.display())),
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    whole_file::write(path, text.as_bytes())
}

fn path() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("kanat").join("credentials.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_file_can_be_read_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kanat/credentials.toml");
        write(&path, "api_key = \"a\"\n").unwrap();
        write(&path, "api_key = \"b\"\n").unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "api_key = \"b\"\n");
    }
}
