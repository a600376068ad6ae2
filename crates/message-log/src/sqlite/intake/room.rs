//! Whether the disk has room for what is yet to be put into the tables: what is acknowledged before
//! that must find it there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// So much has to be free, of the disk and of the pages that the file may have: many times what
/// waits for the tables, and the write-ahead log that it goes through.
const AMPLE_BYTES: u64 = 128 * 1024 * 1024;
/// Looked at no more often than this: less comes in meanwhile than what is kept free.
const PAUSE: Duration = Duration::from_millis(50);

/// The room beside a file.
pub(super) struct Room {
    folder: PathBuf,
    looked: Option<(Instant, bool)>,
}

impl Room {
    pub fn of(file: &Path) -> Self {
        let folder = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Self {
            folder: folder.to_owned(),
            looked: None,
        }
    }

    pub fn is_ample(&mut self, conn: &Connection) -> rusqlite::Result<bool> {
        let now = Instant::now();
        if let Some((at, ample)) = self.looked
            && now.duration_since(at) < PAUSE
        {
            return Ok(ample);
        }
        let ample = self.free_bytes().min(unused_bytes(conn)?) >= AMPLE_BYTES;
        self.looked = Some((now, ample));
        Ok(ample)
    }

    /// Of the disk; none when it cannot be asked.
    fn free_bytes(&self) -> u64 {
        rustix::fs::statvfs(&self.folder)
            .map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

/// Of the pages that the file has or may come to have.
fn unused_bytes(conn: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name: &str| {
        let value = conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        value.map(|value| u64::try_from(value).unwrap_or(0))
    };
    let most = pragma("max_page_count")?;
    let used = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(most
        .saturating_sub(used)
        .saturating_mul(pragma("page_size")?))
}
