//! Doors for the fuzz targets to what reads foreign bytes in the control plane. Each panics where a
//! promise does not hold, and at nothing else.

use crate::app::lookup_table::csv;

/// Reads entries of a lookup table as CSV. What is written of them reads back as the same.
pub fn lookup_csv(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(entries) = csv::read(&text) else {
        return;
    };
    let written = csv::write(&entries).expect("entries can be written");
    assert_eq!(
        csv::read(&written).expect("what was written can be read"),
        entries
    );
}
