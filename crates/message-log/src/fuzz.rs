//! Doors for the fuzz targets to what reads files that may be damaged. Each panics where a promise
//! does not hold, and at nothing else.

use crate::sqlite::fuzz;

/// Reads a record of the journal: the messages and the ends that it says. What was read is written
/// and reads back as the same.
pub fn journal_record(input: &[u8]) {
    fuzz::record(input);
}

/// Reads what stands in the file of a journal, behind a header that is whole. Lines of the input
/// are written as records before it, and are found again.
pub fn journal_file(input: &[u8]) {
    fuzz::file(input);
}
