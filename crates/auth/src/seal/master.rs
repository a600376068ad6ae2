//! Where master keys come from: text, or a file that only its owner may read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use kanat_model::Secret;

use crate::Error;
use crate::token::random_bytes;

/// Reads keys separated by commas or white space, each 32 bytes in base64 or 64 hexadecimal digits.
///
/// # Errors
///
/// A key of another form, or of one repeated byte.
pub(super) fn parse(text: &str) -> Result<Vec<[u8; 32]>, Error> {
    let parts = text.split(|c: char| c == ',' || c.is_whitespace());
    parts.filter(|part| !part.is_empty()).map(parse_one).collect()
}

/// The text of the file; a file that is missing is made first, with one random key.
pub(super) fn read_or_make(path: &Path) -> Result<Secret<String>, Error> {
    let failed = |source| Error::MasterKeyFile { path: path.to_owned(), source };
    match fs::read_to_string(path) {
        Ok(text) => Ok(Secret::new(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::BrokenMasterKeyFile { path: path.to_owned(), reason: "it is no text".to_owned() })
        }
        Err(error) => Err(failed(error)),
    }
}

fn parse_one(text: &str) -> Result<[u8; 32], Error> {
    let key = decode(text).ok_or(Error::MalformedMasterKey)?;
    if key.iter().all(|byte| *byte == key[0]) {
        return Err(Error::RepeatedMasterKey);
    }
    Ok(key)
}

fn decode(text: &str) -> Option<[u8; 32]> {
    if text.len() == 64
        && let Ok(bytes) = hex::decode(text)
    {
        return bytes.try_into().ok();
    }
    [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
        .iter()
        .find_map(|engine| engine.decode(text).ok())
        .and_then(|bytes| bytes.try_into().ok())
}

/// Written beside, synced, then linked: a crash leaves no half a key, and of two processes that start at once both end
/// with the same key.
fn make(path: &Path) -> io::Result<Secret<String>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("key.{}", std::process::id()));
    let text = Secret::new(format!("{}\n", STANDARD.encode(random_bytes::<32>())));
    let written = write_private(&beside, text.expose());
    let linked = written.and_then(|()| fs::hard_link(&beside, path));
    let removed = fs::remove_file(&beside);
    match linked {
        Ok(()) => removed.map(|()| text),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path).map(Secret::new),
        Err(error) => Err(error),
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sealer;

    #[test]
    fn reads_base64_and_hexadecimal_alike() {
        let key = std::array::from_fn(|n| n as u8);
        let both = format!("{}, {}", STANDARD.encode(key), hex::encode(key));
        assert_eq!(parse(&both).unwrap(), vec![key, key]);
        for wrong in ["short", "zz", &hex::encode([1; 31]), &STANDARD.encode([1; 33])] {
            assert!(matches!(parse(wrong), Err(Error::MalformedMasterKey)), "{wrong}");
        }
    }

    #[test]
    fn refuses_a_key_of_one_repeated_byte() {
        let good = hex::encode(random_bytes::<32>());
        for byte in [0, b'A', 0xff] {
            for repeated in [STANDARD.encode([byte; 32]), hex::encode([byte; 32])] {
                assert!(matches!(parse(&repeated), Err(Error::RepeatedMasterKey)), "{repeated}");
                let former = format!("{good},{repeated}");
                assert!(matches!(parse(&former), Err(Error::RepeatedMasterKey)), "{former}");
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
            let mode = fs::metadata(folder.path().join("master.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_without_a_key_is_an_error_and_not_a_new_key() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"\xff\xfe", b"short"] {
            fs::write(folder.path().join("master.key"), bytes).unwrap();
            let error = Sealer::from_env_or_file(None, folder.path()).err().unwrap().to_string();
            assert!(error.contains("master.key holds no master key") && error.contains("backup"), "{error}");
        }
    }
}
