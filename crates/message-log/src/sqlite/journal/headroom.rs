//! Free space that the tables need for pending writes. An operation is acknowledged from the
//! journal only while the tables will very likely find room for it later. This is an estimate:
//! another program may fill the disk, and a result is reused for a moment.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Free bytes below which the journal is not used: the fewer of those of the disk and those that
/// `max_page_count` leaves to the file. The limit is many times what the pending writes need in
/// the write-ahead log and in the tables.
const MIN_FREE_BYTES: u64 = 128 * 1024 * 1024;
/// Time for which a result is reused. In that time less than [`MIN_FREE_BYTES`] can arrive.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Free space beside a file.
pub(super) struct Headroom {
    folder: PathBuf,
    /// Time and result of the last check.
    last_check: Option<(Instant, bool)>,
}

impl Headroom {
    /// Observes the disk that holds `file`.
    pub fn new(file: &Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new("/"));
        Self {
            folder: folder.to_owned(),
            last_check: None,
        }
    }

    /// Returns whether [`MIN_FREE_BYTES`] are free.
    pub fn is_sufficient(&mut self, conn: &Connection) -> rusqlite::Result<bool> {
        let now = Instant::now();
        if let Some((at, is_sufficient)) = self.last_check
            && now.duration_since(at) < CHECK_INTERVAL
        {
            return Ok(is_sufficient);
        }
        let is_sufficient = self.free_disk_bytes().min(free_page_bytes(conn)?) >= MIN_FREE_BYTES;
        self.last_check = Some((now, is_sufficient));
        Ok(is_sufficient)
    }

    /// Returns the free bytes of the disk; 0 when the system does not report them.
    fn free_disk_bytes(&self) -> u64 {
        rustix::fs::statvfs(&self.folder)
            .map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

/// Returns the bytes of the free pages that the file has and of the pages that it may still get.
fn free_page_bytes(conn: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name: &str| {
        let value = conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        value.map(|value| u64::try_from(value).unwrap_or(0))
    };
    let limit = pragma("max_page_count")?;
    let used = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(limit
        .saturating_sub(used)
        .saturating_mul(pragma("page_size")?))
}
