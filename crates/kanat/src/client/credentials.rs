//! Credentials that `kanat login` saves: an address, an environment, and a key or the tokens of a
//! person, in a file that only its owner can read.

use std::fs::File;
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
    /// Tokens of a person, in the place of a key.
    pub login: Option<Login>,
}

/// Tokens of a person who logged in. No `Debug`: it holds them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Login {
    /// Token that requests carry, a JWT.
    pub token: String,
    pub kind: TokenKind,
    /// Seconds since 1970 at which the token ends; none where it does not say.
    pub expires_at: Option<i64>,
    /// Provider that issued the token.
    pub issuer: String,
    /// Client that the provider knows the command line by; none for a token that was given.
    pub client_id: Option<String>,
    /// Token that gets the next ones, where the provider gives one.
    pub refresh_token: Option<String>,
}

/// Kind of the token that requests carry, which a renewal has to renew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    IdToken,
    AccessToken,
}

/// Right of one process to change the file, until it is dropped.
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits until no other process changes the file.
    ///
    /// # Errors
    /// There is no folder for the file, or it cannot be written.
    pub async fn take() -> Result<Self> {
        let path = path().context(
            "neither XDG_CONFIG_HOME nor HOME is set; use KANAT_URL and KANAT_API_KEY instead",
        )?;
        let file = path.with_extension("lock");
        let taken = tokio::task::spawn_blocking(move || lock(&file));
        let file = taken.await?;
        let file = file.with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { path, _file: file })
    }

    /// Saves beside and renames, so that the file is whole at every moment; gives its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, credentials: &Credentials) -> Result<&Path> {
        let text = toml::to_string(credentials).context("cannot write the credentials as TOML")?;
        let written = whole_file::write(&self.path, text.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(&self.path)
    }
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

/// Removes what was saved; gives the path of the file that was there.
pub async fn forget() -> Result<Option<PathBuf>> {
    // Without a file there may be no folder for a lock.
    if path().is_none_or(|path| !path.exists()) {
        return Ok(None);
    }
    let lock = Lock::take().await?;
    match std::fs::remove_file(&lock.path) {
        Ok(()) => Ok(Some(lock.path.clone())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", lock.path.display())),
    }
}

/// Opens and locks a file that has no content. It stays when it is unlocked: another process may
/// wait for it.
fn lock(path: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let file = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(path)?;
    file.lock()?;
    Ok(file)
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

    fn lock_in(folder: &Path) -> Lock {
        let path = folder.join("kanat/credentials.toml");
        let file = lock(&path.with_extension("lock")).unwrap();
        Lock { path, _file: file }
    }

    #[cfg(unix)]
    #[test]
    fn the_file_can_be_read_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let lock = lock_in(folder.path());
        let with_key = |key: &str| Credentials {
            api_key: Some(key.to_owned()),
            ..Credentials::default()
        };
        lock.save(&with_key("a")).unwrap();
        let path = lock.save(&with_key("b")).unwrap();
        assert_eq!(
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_to_string(path).unwrap(), "api_key = \"b\"\n");
    }

    #[test]
    fn tokens_are_read_as_they_were_saved() {
        let folder = tempfile::tempdir().unwrap();
        let lock = lock_in(folder.path());
        let login = Login {
            token: "t.t.t".to_owned(),
            kind: TokenKind::AccessToken,
            expires_at: Some(1_900_000_000),
            issuer: "https://id.example".to_owned(),
            client_id: Some("kanat".to_owned()),
            refresh_token: Some("r".to_owned()),
        };
        let credentials = Credentials {
            url: Some("https://kanat.example".to_owned()),
            api_key: None,
            environment: Some("staging".to_owned()),
            login: Some(login),
        };
        let text = std::fs::read_to_string(lock.save(&credentials).unwrap()).unwrap();
        let read: Credentials = toml::from_str(&text).unwrap();
        assert_eq!(read.environment, credentials.environment);
        let login = read.login.unwrap();
        assert_eq!(login.kind, TokenKind::AccessToken);
        assert_eq!(login.expires_at, Some(1_900_000_000));
        assert_eq!(login.refresh_token.as_deref(), Some("r"));
    }

    #[test]
    fn a_file_with_a_key_alone_is_read() {
        let text = "url = \"http://127.0.0.1:8080\"\napi_key = \"kanat_ak_x\"\n";
        let read: Credentials = toml::from_str(text).unwrap();
        assert_eq!(read.api_key.as_deref(), Some("kanat_ak_x"));
        assert!(read.login.is_none());
    }
}
