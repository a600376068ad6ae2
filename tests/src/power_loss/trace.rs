//! The records of a trace, as `tests/power-loss/record.c` writes them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use bytes::{Buf, Bytes};

/// Kind and length of name, number of the file, offset, length of the data.
const HEADER_BYTES: usize = 32;

/// Operations of a process on the files of a folder, in order.
pub struct Trace {
    pub records: Vec<Record>,
}

/// One operation.
pub struct Record {
    /// Length of the trace with this record.
    pub end: u64,
    pub operation: Operation,
}

/// A change or a sync. Files have the numbers of their inodes, names stand below the folder.
#[derive(Debug)]
pub enum Operation {
    OpenFile { file: u64, name: String },
    OpenFolder { file: u64, name: String },
    Create { file: u64, name: String },
    Write { file: u64, offset: u64, data: Bytes },
    Truncate { file: u64, length: u64 },
    Sync { file: u64, covers: u64 },
    SyncFailed { file: u64, covers: u64 },
    Unlink { name: String },
    Rename { from: String, to: String },
    MakeFolder { name: String },
    RemoveFolder { name: String },
}

impl Trace {
    /// Reads a trace. A record that was cut off by the end of its process is left out.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no trace.
    pub fn read(path: &Path) -> Result<Self> {
        let mut rest = Bytes::from(
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
        );
        let length = rest.len();
        let mut records = Vec::new();
        while let Some(operation) = take(&mut rest)? {
            records.push(Record {
                end: (length - rest.len()) as u64,
                operation,
            });
        }
        Ok(Self { records })
    }
}

fn take(rest: &mut Bytes) -> Result<Option<Operation>> {
    if rest.len() < HEADER_BYTES {
        return Ok(None);
    }
    let mut header = rest.slice(..HEADER_BYTES);
    let kind = header.get_u32_le();
    let name_bytes = header.get_u32_le() as usize;
    let file = header.get_u64_le();
    let offset = header.get_u64_le();
    let data_bytes = usize::try_from(header.get_u64_le())?;
    if rest.len() - HEADER_BYTES < name_bytes.saturating_add(data_bytes) {
        return Ok(None);
    }
    rest.advance(HEADER_BYTES);
    let name = String::from_utf8(rest.split_to(name_bytes).into())?;
    let data = rest.split_to(data_bytes);
    Ok(Some(match kind {
        1 => Operation::OpenFile { file, name },
        2 => Operation::OpenFolder { file, name },
        3 => Operation::Create { file, name },
        4 => Operation::Write { file, offset, data },
        5 => Operation::Truncate {
            file,
            length: offset,
        },
        6 => Operation::Sync {
            file,
            covers: offset,
        },
        7 => Operation::SyncFailed {
            file,
            covers: offset,
        },
        8 => Operation::Unlink { name },
        9 => Operation::Rename {
            from: name,
            to: String::from_utf8(data.into())?,
        },
        10 => Operation::MakeFolder { name },
        11 => Operation::RemoveFolder { name },
        _ => bail!("a record of kind {kind}"),
    }))
}
