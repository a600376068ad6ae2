//! The owner's key of a first start: shown once, to those who started the process. The journal
//! keeps what it gets, and others read it: under systemd the key goes into a file.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kanat_model::Secret;

/// Name of the file in the data folder.
const FILE: &str = "owner-key";

/// Shows the key on standard error, or says in which file it is.
pub fn show(key: &Secret<String>, url: &str, data_dir: &Path) {
    if !writes_to_journal() {
        return print(key, url);
    }
    let path = data_dir.join(FILE);
    match keep(key, &path) {
        Ok(()) => {
            let path = path.display();
            eprintln!(
                "the owner's API key is in {path}, so that the journal does not keep it\nlog in \
                 with: kanat login --url {url} --api-key \"$(cat {path})\", then remove the file"
            );
        }
        // Without it nobody gets in.
        Err(error) => {
            tracing::warn!(
                %error,
                "the owner's key cannot be kept in {}: the journal gets it",
                path.display(),
            );
            print(key, url);
        }
    }
}

fn print(key: &Secret<String>, url: &str) {
    let key = key.expose();
    eprintln!(
        "the owner's API key, shown this once: {key}\nlog in with: kanat login --url {url} \
         --api-key {key}"
    );
}

/// Returns whether standard error is the stream to the journal that systemd tells its services of,
/// by device and inode.
fn writes_to_journal() -> bool {
    let Ok(told) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|file| told == format!("{}:{}", file.st_dev, file.st_ino))
}

fn keep(key: &Secret<String>, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{}", key.expose())?;
    file.sync_all()
}
