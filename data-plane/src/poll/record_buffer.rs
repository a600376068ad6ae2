//! Buffer of the records of a page until the page is complete. A page that breaks off gives no
//! messages, because the next cycle requests it again. A MiB of records is kept in memory, the
//! records of a longer page in an unnamed file.

use std::io::{self, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufWriter};

/// Size of the records from which they are written to a file, in bytes.
const MAX_MEMORY_BYTES: usize = 1 << 20;

/// Size of the file buffers, in bytes.
const FILE_BUFFER_BYTES: usize = 256 << 10;

/// Records of one batch, and their size in bytes from which a batch is complete.
const BATCH: (usize, usize) = (256, 1 << 20);

pub(super) struct RecordBuffer<'a> {
    directory: &'a Path,
    records: Vec<Bytes>,
    /// Size of `records` in memory, in bytes.
    bytes: usize,
    /// Earlier records, each after its length.
    file: Option<BufWriter<File>>,
    /// Records in the file.
    filed: usize,
}

/// The records of a page that came whole, in their order.
pub(super) struct Records {
    /// File at the position of its next record.
    file: Option<BufReader<File>>,
    filed: usize,
    rest: std::vec::IntoIter<Bytes>,
}

impl<'a> RecordBuffer<'a> {
    /// Makes an empty buffer. `directory` is the place of the file, if one is needed.
    pub fn new(directory: &'a Path) -> Self {
        Self {
            directory,
            records: Vec::new(),
            bytes: 0,
            file: None,
            filed: 0,
        }
    }

    pub async fn push(&mut self, records: Vec<Bytes>) -> io::Result<()> {
        self.bytes += records
            .iter()
            .map(|record| record.len() + size_of::<Bytes>())
            .sum::<usize>();
        self.records.extend(records);
        if self.bytes <= MAX_MEMORY_BYTES {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create(self.directory)?),
        };
        for record in &self.records {
            file.write_u64(record.len() as u64).await?;
            file.write_all(record).await?;
        }
        self.filed += self.records.len();
        self.records.clear();
        self.bytes = 0;
        Ok(())
    }

    pub async fn whole(self) -> io::Result<Records> {
        let Self {
            records,
            file,
            filed,
            ..
        } = self;
        let file = match file {
            Some(mut file) => {
                file.flush().await?;
                let mut file = file.into_inner();
                file.seek(SeekFrom::Start(0)).await?;
                Some(BufReader::with_capacity(FILE_BUFFER_BYTES, file))
            }
            None => None,
        };
        Ok(Records {
            file,
            filed,
            rest: records.into_iter(),
        })
    }
}

/// Creates an unnamed file. It disappears with its last handle, also when the process is killed.
fn create(directory: &Path) -> io::Result<BufWriter<File>> {
    let file = tempfile::tempfile_in(directory)?;
    Ok(BufWriter::with_capacity(
        FILE_BUFFER_BYTES,
        File::from_std(file),
    ))
}

impl Records {
    /// Returns the next records; none after the last.
    pub async fn next(&mut self) -> io::Result<Vec<Bytes>> {
        let mut records = Vec::new();
        let mut bytes = 0;
        while records.len() < BATCH.0 && bytes < BATCH.1 {
            let Some(record) = self.one().await? else {
                break;
            };
            bytes += record.len();
            records.push(record);
        }
        Ok(records)
    }

    async fn one(&mut self) -> io::Result<Option<Bytes>> {
        let Some(file) = self.file.as_mut().filter(|_| self.filed > 0) else {
            return Ok(self.rest.next());
        };
        let length = usize::try_from(file.read_u64().await?).map_err(io::Error::other)?;
        let mut record = vec![0; length];
        file.read_exact(&mut record).await?;
        self.filed -= 1;
        Ok(Some(record.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn given_back(records: &[Bytes]) -> (Vec<Bytes>, bool) {
        let directory = tempfile::tempdir().unwrap();
        let mut buffer = RecordBuffer::new(directory.path());
        for some in records.chunks(7) {
            buffer.push(some.to_vec()).await.unwrap();
        }
        let filed = buffer.file.is_some();
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            0,
            "the file has no name"
        );
        let mut whole = buffer.whole().await.unwrap();
        let mut all = Vec::new();
        loop {
            let some = whole.next().await.unwrap();
            if some.is_empty() {
                return (all, filed);
            }
            assert!(some.len() <= BATCH.0);
            all.extend(some);
        }
    }

    #[tokio::test]
    async fn records_come_back_in_their_order_from_memory_and_from_the_file() {
        let records = |count: usize, length: usize| -> Vec<Bytes> {
            (0..count)
                .map(|n| Bytes::from(format!("{n}{}", "x".repeat(length))))
                .collect()
        };
        for (count, length, files) in [
            (0, 0, false),
            (1_000, 10, false),
            (100_000, 0, true),
            (500, 10_000, true),
        ] {
            let records = records(count, length);
            assert_eq!(
                given_back(&records).await,
                (records, files),
                "{count} of {length}"
            );
        }
    }
}
