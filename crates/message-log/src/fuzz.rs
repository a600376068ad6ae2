//! Entry points of the fuzz targets for files that may be damaged. Each panics when a promise does
//! not hold, and on nothing else.

use crate::sqlite::fuzz;

/// Decodes the payload of a journal record: its messages and its ends of messages. A decoded
/// payload is encoded and decoded again to the same bytes.
pub fn journal_record(input: &[u8]) {
    fuzz::record(input);
}

/// Parses the bytes after the valid header of a journal file. The lines of the input but the last
/// are framed as records, and are found again.
pub fn journal_file(input: &[u8]) {
    fuzz::file(input);
}
