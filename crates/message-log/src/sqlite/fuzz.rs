//! What the doors for the fuzz targets lead to.

use super::intake::rewritten;
use super::journal::{self, Left};

pub(crate) fn record(input: &[u8]) {
    let Some(written) = rewritten(input.to_vec()) else {
        return;
    };
    let again = rewritten(written.clone()).expect("what was written can be read");
    assert_eq!(again, written);
}

pub(crate) fn file(input: &[u8]) {
    const SALT: i64 = 7;
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let (damage, lines) = lines
        .split_last()
        .map_or((&[][..], &[][..]), |(last, lines)| (*last, lines));
    let mut bytes = journal::bytes(SALT, lines);
    bytes.extend_from_slice(damage);
    match journal::parse(&bytes, SALT, 0) {
        Left::Own(own) => {
            let found: Vec<&[u8]> = own
                .records
                .iter()
                .map(|(_, says)| says.as_slice())
                .take(lines.len())
                .collect();
            assert_eq!(found, lines);
        }
        left => panic!("a journal with its header is {left:?}"),
    }
    // A file of any bytes.
    journal::parse(input, SALT, 0);
}
