//! File of sealed records. Each is its length in four bytes, and its content. The first record that
//! is cut short, changed or moved ends the file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kanat_auth::Sealer;

/// Writes records one after another.
#[derive(Debug)]
pub struct Writer {
    file: File,
    context: String,
    records: u64,
    bytes: u64,
}

/// Reads them back.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    context: String,
}

impl Writer {
    /// Creates a file that only this user can read, in the place of a former one.
    pub fn create(path: &Path, context: String) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            context,
            records: 0,
            bytes: 0,
        })
    }

    pub fn write(&mut self, plain: &[u8], sealer: &Sealer) -> io::Result<()> {
        let sealed = sealer.seal(plain, &associated_data(&self.context, self.records));
        let length = u32::try_from(sealed.len())
            .map_err(|_| io::Error::other("a record of plans exceeds 4 GiB"))?;
        let mut record = Vec::with_capacity(4 + sealed.len());
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&sealed);
        self.file.write_all(&record)?;
        self.records += 1;
        self.bytes += record.len() as u64;
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns whether the first record of a file is sealed under the key in use, or the file has none.
pub fn is_under_key_in_use(path: &Path, sealer: &Sealer) -> io::Result<bool> {
    let mut begin = Vec::new();
    let header = sealer.header();
    File::open(path)?
        .take(4 + header.len() as u64)
        .read_to_end(&mut begin)?;
    Ok(begin.len() <= 4 || sealer.is_under_key_in_use(&begin[4..]))
}

impl Reader {
    pub fn open(path: &Path, context: String) -> io::Result<Self> {
        Ok(Self {
            file: BufReader::new(File::open(path)?),
            context,
        })
    }

    /// Returns the records up to the end of the file, or to the first one that cannot be opened.
    pub fn records(mut self, sealer: &Sealer) -> impl Iterator<Item = Vec<u8>> {
        let mut number = 0;
        std::iter::from_fn(move || {
            let mut length = [0; 4];
            self.file.read_exact(&mut length).ok()?;
            let length = u64::from(u32::from_le_bytes(length));
            let mut sealed = Vec::new();
            // Memory is allocated for the bytes of the file, not for a length that may be damaged.
            let read = self
                .file
                .by_ref()
                .take(length)
                .read_to_end(&mut sealed)
                .ok()?;
            let plain = (read as u64 == length).then(|| {
                sealer
                    .open(&sealed, &associated_data(&self.context, number))
                    .ok()
            })??;
            number += 1;
            Some(plain)
        })
    }
}

/// Returns the text that a sealed record is bound to: its file and its number.
fn associated_data(context: &str, record: u64) -> String {
    format!("{context}/{record}")
}
