//! The records of a page until it has come whole: one that breaks off is no messages, since the
//! next cycle asks for it again. A MiB of them is kept in memory, those of a longer page in a file
//! without a name.

use std::io::{self, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufWriter};

/// Bytes of memory that records take before they are put into a file.
const IN_MEMORY: usize = 1 << 20;

/// Bytes that go to the file at once, and come from it.
const AT_ONCE: usize = 256 << 10;

/// Records that are given out together, and the bytes of them after which no more are added.
const TOGETHER: (usize, usize) = (256, 1 << 20);

pub(super) struct Gathered<'a> {
    directory: &'a Path,
    records: Vec<Bytes>,
    /// What `records` takes in memory.
    bytes: usize,
    /// Those before, each behind its length.
    file: Option<BufWriter<File>>,
    /// Records in the file.
    filed: usize,
}

/// The records of a page that came whole, in their order.
pub(super) struct Records {
    /// Where they begin that are read from it.
    file: Option<BufReader<File>>,
    filed: usize,
    rest: std::vec::IntoIter<Bytes>,
}

impl<'a> Gathered<'a> {
    /// None yet; `directory` is where the file is made when it comes to that.
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
        if self.bytes <= IN_MEMORY {
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
                Some(BufReader::with_capacity(AT_ONCE, file))
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

/// The file is gone with its last handle, also when the process is killed.
fn create(directory: &Path) -> io::Result<BufWriter<File>> {
    let file = tempfile::tempfile_in(directory)?;
    Ok(BufWriter::with_capacity(AT_ONCE, File::from_std(file)))
}

impl Records {
    /// The next ones; none after the last.
    pub async fn next(&mut self) -> io::Result<Vec<Bytes>> {
        let mut records = Vec::new();
        let mut bytes = 0;
        while records.len() < TOGETHER.0 && bytes < TOGETHER.1 {
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
        let mut gathered = Gathered::new(directory.path());
        for some in records.chunks(7) {
            gathered.push(some.to_vec()).await.unwrap();
        }
        let filed = gathered.file.is_some();
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            0,
            "the file has no name"
        );
        let mut whole = gathered.whole().await.unwrap();
        let mut all = Vec::new();
        loop {
            let some = whole.next().await.unwrap();
            if some.is_empty() {
                return (all, filed);
            }
            assert!(some.len() <= TOGETHER.0);
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
