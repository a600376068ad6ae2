//! A model of what a loss of power leaves on a disk. `tests/power-loss/record.c` writes a trace of
//! all that a process does to the files of a folder; [`Disk`] follows the trace up to a cut and
//! makes an image of what may be there after it.
//!
//! What is modelled, by ext4 with `data=ordered` and by XFS:
//!
//! - What a write has put into a file is on disk once a sync of that file, which began after it,
//!   has completed. Before that each sector (of 512 bytes or of a page) has the contents of some
//!   moment since the last sync. Sectors do not wait for each other, within a write or between
//!   writes, so that writes are torn and swap places.
//! - A length that a write or a truncation gave the file is on disk by its next sync. Before that
//!   the file has the length of some moment since the last one; what was not written of it reads as
//!   zeros.
//! - What shortens a file frees its blocks: as long as it is not on disk, nothing that was written
//!   after it is.
//! - Names that were created, renamed or deleted in a folder are on disk once that folder is
//!   synced. Before that the changes up to some moment are. A sync of a file alone brings no name
//!   to disk, which is less than both file systems give.
//! - After a sync that failed, what it should have written may be on disk or not, and no later sync
//!   tells: the system takes it for written.
//!
//! What is not modelled: sectors that the disk itself tears, damages or only claims to have
//! written; the files of shared memory (`-shm`), which SQLite makes anew.

mod disk;
mod file;
mod recorder;
mod trace;

pub use self::disk::{Disk, Writeback};
pub use self::recorder::{Failure, Recorder};
pub use self::trace::{Operation, Record, Trace};
