//! Location of the programs of PostgreSQL, and the user that runs them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, command};

/// Debian and the PostgreSQL project's own packages put each version into a folder of its own.
const FOLDERS: [(&str, &str); 2] = [("/usr/lib/postgresql", "bin"), ("/usr/local/pgsql", "bin")];

/// The programs of one version of PostgreSQL.
#[derive(Debug, Clone)]
pub struct Programs {
    folder: PathBuf,
    /// User that runs the server when the tests run as root, which it refuses.
    user: Option<User>,
}

#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl Programs {
    /// The newest version that is installed.
    pub fn find() -> Result<Self, Error> {
        let folder = newest().or_else(on_path).ok_or(Error::NotInstalled)?;
        let user = if is_root()? {
            Some(User::find("postgres").ok_or(Error::NoUser)?)
        } else {
            None
        };
        Ok(Self { folder, user })
    }

    /// As [`Self::find`], after an installation with Debian's `apt-get` where there is none and we
    /// may.
    pub fn find_or_install() -> Result<Self, Error> {
        match Self::find() {
            Err(Error::NotInstalled) if is_root()? && Path::new("/usr/bin/apt-get").exists() => {}
            found => return found,
        }
        let mut update = Command::new("apt-get");
        command::run(update.args(["update", "-q"]))?;
        let mut install = Command::new("apt-get");
        install.env("DEBIAN_FRONTEND", "noninteractive");
        command::run(install.args([
            "install",
            "-y",
            "-q",
            "--no-install-recommends",
            "postgresql",
        ]))?;
        Self::find()
    }

    /// Returns the version that the server reports.
    pub fn version(&self) -> Result<String, Error> {
        let text = command::pipe(self.command("postgres").arg("--version"), &[])?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// The ids of the user that the server runs as when we are root, and of its group.
    pub(crate) fn ids(&self) -> Option<(u32, u32)> {
        self.user.map(|User { uid, gid }| (uid, gid))
    }

    /// A command for one of the programs, as the user that the server runs as.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.as_user(self.folder.join(program))
    }

    /// Returns a command for any program, as that user, without the signals of the terminal.
    pub(crate) fn as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .process_group(0)
            .env_remove("PGDATA")
            .env_remove("PGOPTIONS");
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Gives a folder to the user that the server runs as.
    pub(crate) fn give(&self, folder: &Path) -> Result<(), Error> {
        let Some(User { uid, gid }) = self.user else {
            return Ok(());
        };
        std::os::unix::fs::chown(folder, Some(uid), Some(gid)).map_err(|cause| Error::Folder {
            path: folder.to_owned(),
            cause,
        })
    }
}

impl User {
    fn find(name: &str) -> Option<Self> {
        let users = fs::read_to_string("/etc/passwd").ok()?;
        let mut fields = users
            .lines()
            .map(|line| line.split(':'))
            .find(|line| line.clone().next() == Some(name))?;
        let uid = fields.nth(2)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Self { uid, gid })
    }
}

fn newest() -> Option<PathBuf> {
    let versions = FOLDERS.iter().flat_map(|(folder, bin)| {
        let versions = fs::read_dir(folder).into_iter().flatten().flatten();
        versions.map(move |version| (number(&version.file_name()), version.path().join(bin)))
    });
    let versions = versions.filter(|(_, folder)| folder.join("initdb").exists());
    versions
        .max_by_key(|(number, _)| *number)
        .map(|(_, folder)| folder)
}

fn number(version: &OsStr) -> u32 {
    version
        .to_str()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
}

fn is_root() -> Result<bool, Error> {
    use std::os::unix::fs::MetadataExt;
    let path = PathBuf::from("/proc/self");
    let owner = fs::metadata(&path).map_err(|cause| Error::Folder { path, cause })?;
    Ok(owner.uid() == 0)
}
