//! Sources of master keys: text, or a file that only its owner may read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use kanat_model::Secret;
use tempfile::NamedTempFile;
use zeroize::{Zeroize, Zeroizing};

use super::MASTER_KEY;
use crate::token::random_bytes;
use crate::{Error, Sealer};

/// File of a data folder that holds the master keys of one process.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// Returns the key file of a data folder, whether it exists or not.
    pub fn of(data_dir: &Path) -> Self {
        Self {
            path: data_dir.join(MASTER_KEY),
        }
    }

    /// Returns a ring of the file's keys. A file that is missing is made first, with one random
    /// key.
    ///
    /// # Errors
    ///
    /// The file cannot be read or made, or holds something else than keys.
    pub fn sealer(&self) -> Result<Sealer, Error> {
        self.ring(read_or_make(&self.path)?.expose())
    }

    /// Puts a new key in front of those of the file, then has the ring take all of them.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or has other keys than the ring. The ring stays as it
    /// was.
    pub fn put_new_key_in_front(&self, sealer: &Sealer) -> Result<(), Error> {
        let former = self.read_same(sealer)?;
        let text = Secret::new(format!("{}{}", new_key().expose(), former.expose()));
        self.write(&text)?;
        sealer.replace(&self.ring(text.expose())?);
        Ok(())
    }

    /// Leaves the first key alone in the file, and in the ring.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or has other keys than the ring. The ring stays as it
    /// was.
    pub fn drop_former_keys(&self, sealer: &Sealer) -> Result<(), Error> {
        let all = self.read_same(sealer)?;
        let first = parts(all.expose())
            .next()
            .ok_or(Error::MalformedMasterKey)?;
        let text = Secret::new(format!("{first}\n"));
        let ring = self.ring(text.expose())?;
        self.write(&text)?;
        sealer.replace(&ring);
        Ok(())
    }

    fn ring(&self, text: &str) -> Result<Sealer, Error> {
        let broken = |error: Error| Error::BrokenMasterKeyFile {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        Sealer::from_text(text).map_err(broken)
    }

    /// Returns the text of the file, whose keys are those of the ring: what a key that was put
    /// there meanwhile would be for is not known.
    fn read_same(&self, sealer: &Sealer) -> Result<Secret<String>, Error> {
        let text = fs::read_to_string(&self.path)
            .map(Secret::new)
            .map_err(|source| self.failed(source))?;
        if self.ring(text.expose())?.key_ids() == sealer.key_ids() {
            Ok(text)
        } else {
            Err(Error::ChangedMasterKeyFile(self.path.clone()))
        }
    }

    /// Replaces the file: a crash leaves the former text or the new one.
    fn write(&self, text: &Secret<String>) -> Result<(), Error> {
        let written = beside(&self.path, text)
            .and_then(|file| Ok(file.persist(&self.path)?))
            .and_then(|_| sync_folder_of(&self.path));
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::MasterKeyFile {
            path: self.path.clone(),
            source,
        }
    }
}

/// Reads keys separated by commas or white space, each 32 bytes in base64 or 64 hexadecimal digits.
///
/// # Errors
///
/// A key of another form, or of one repeated byte.
pub(super) fn parse(text: &str) -> Result<Zeroizing<Vec<[u8; 32]>>, Error> {
    // With room for all of them: what a vector grew out of would not be wiped.
    let mut keys = Zeroizing::new(Vec::with_capacity(parts(text).count()));
    for part in parts(text) {
        keys.push(*parse_one(part)?);
    }
    Ok(keys)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|part| !part.is_empty())
}

/// Returns the text of the file. A file that is missing is made first, with one random key.
fn read_or_make(path: &Path) -> Result<Secret<String>, Error> {
    let failed = |source| Error::MasterKeyFile {
        path: path.to_owned(),
        source,
    };
    match fs::read_to_string(path) {
        Ok(text) => Ok(Secret::new(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::BrokenMasterKeyFile {
                path: path.to_owned(),
                reason: "it is no text".to_owned(),
            })
        }
        Err(error) => Err(failed(error)),
    }
}

fn parse_one(text: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
    let key = decode(text).ok_or(Error::MalformedMasterKey)?;
    if key.iter().all(|byte| *byte == key[0]) {
        return Err(Error::RepeatedMasterKey);
    }
    Ok(key)
}

fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut key = Zeroizing::new([0; 32]);
    if text.len() == 64 && hex::decode_to_slice(text, key.as_mut_slice()).is_ok() {
        return Some(key);
    }
    let mut decoded = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
        .iter()
        .find_map(|engine| engine.decode(text).ok())
        .filter(|bytes| bytes.len() == key.len())?;
    key.copy_from_slice(&decoded);
    decoded.zeroize();
    Some(key)
}

/// Returns the line of a new random key.
fn new_key() -> Secret<String> {
    let bytes = Zeroizing::new(random_bytes::<32>());
    Secret::new(format!(
        "{}\n",
        Zeroizing::new(STANDARD.encode(bytes.as_slice())).as_str()
    ))
}

/// A rename is durable once its folder is synced.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Written beside, synced, then renamed: a crash leaves no half a key, and of two processes that
/// start at once both end with the same key.
fn make(path: &Path) -> io::Result<Secret<String>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = new_key();
    match beside(path, &text)?.persist_noclobber(path) {
        Ok(_) => Ok(text),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => {
            fs::read_to_string(path).map(Secret::new)
        }
        Err(failed) => Err(failed.error),
    }
}

/// Writes a file for its owner alone in the folder of `path`. It is removed unless it is renamed.
fn beside(path: &Path, text: &Secret<String>) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new("")))?;
    file.write_all(text.expose().as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wiped<T: zeroize::ZeroizeOnDrop>(_: &T) {}

    #[test]
    fn reads_base64_and_hexadecimal_alike() {
        let key = std::array::from_fn(|n| n as u8);
        let both = format!("{}, {}", STANDARD.encode(key), hex::encode(key));
        assert_eq!(parse(&both).unwrap().as_slice(), [key, key]);
        for wrong in [
            "short",
            "zz",
            &hex::encode([1; 31]),
            &STANDARD.encode([1; 33]),
        ] {
            assert!(
                matches!(parse(wrong), Err(Error::MalformedMasterKey)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn refuses_a_key_of_one_repeated_byte() {
        let good = hex::encode(random_bytes::<32>());
        for byte in [0, b'A', 0xff] {
            for repeated in [STANDARD.encode([byte; 32]), hex::encode([byte; 32])] {
                assert!(
                    matches!(parse(&repeated), Err(Error::RepeatedMasterKey)),
                    "{repeated}"
                );
                let former = format!("{good},{repeated}");
                assert!(
                    matches!(parse(&former), Err(Error::RepeatedMasterKey)),
                    "{former}"
                );
            }
        }
    }

    #[test]
    fn makes_the_file_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = Sealer::from_env_or_file(None, folder.path()).unwrap();
        let second = Sealer::from_env_or_file(Some(""), folder.path()).unwrap();
        assert_eq!(second.open(&first.seal(b"x", ""), "").unwrap(), b"x");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join("master.key"))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_file_without_a_key_is_an_error_and_not_a_new_key() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"\xff\xfe", b"short"] {
            fs::write(folder.path().join("master.key"), bytes).unwrap();
            let error = Sealer::from_env_or_file(None, folder.path())
                .err()
                .unwrap()
                .to_string();
            assert!(
                error.contains("master.key holds no master key") && error.contains("backup"),
                "{error}"
            );
        }
    }

    #[test]
    fn bare_keys_are_wiped_when_dropped() {
        let text = new_key();
        is_wiped(&parse(text.expose()).unwrap());
        is_wiped(&parse_one(text.expose().trim()).unwrap());
        is_wiped(&text);
    }

    #[test]
    fn a_new_key_stands_in_front_until_the_former_ones_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        let ring = file.sealer().unwrap();
        let former = ring.key_ids();
        let sealed = ring.seal(b"x", "");
        file.put_new_key_in_front(&ring).unwrap();
        assert_eq!(ring.key_ids()[1..], former[..]);
        assert_ne!(ring.key_ids()[0], former[0]);
        assert_eq!(
            file.sealer().unwrap().key_ids(),
            ring.key_ids(),
            "a crash leaves both"
        );
        assert_eq!(ring.open(&sealed, "").unwrap(), b"x");
        let path = folder.path().join(MASTER_KEY);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{}{text}", new_key().expose())).unwrap();
        assert!(matches!(
            file.drop_former_keys(&ring),
            Err(Error::ChangedMasterKeyFile(_))
        ));
        assert!(matches!(
            file.put_new_key_in_front(&ring),
            Err(Error::ChangedMasterKeyFile(_))
        ));
        fs::write(&path, text).unwrap();
        file.drop_former_keys(&ring).unwrap();
        assert_eq!(file.sealer().unwrap().key_ids(), ring.key_ids());
        assert_eq!(ring.key_ids().len(), 1);
        assert!(ring.open(&sealed, "").is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join(MASTER_KEY))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }
}
