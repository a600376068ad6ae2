//! Checks of the fuzz targets.

use super::journal::{JournalContents, encode, parse, reencode};

/// Decodes a payload. What can be decoded is encoded and decoded again to the same bytes.
pub(crate) fn record(input: &[u8]) {
    let Some(encoded) = reencode(input.to_vec()) else {
        return;
    };
    let again = reencode(encoded.clone()).expect("an encoded payload can be decoded");
    assert_eq!(again, encoded);
}

/// Parses a file that begins with valid records, one for each line of `input` but the last, and
/// ends with that line. Then parses `input` as a file.
pub(crate) fn file(input: &[u8]) {
    const SALT: i64 = 7;
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let (damage, lines) = lines
        .split_last()
        .map_or((&[][..], &[][..]), |(last, lines)| (*last, lines));
    let mut bytes = encode(SALT, lines);
    bytes.extend_from_slice(damage);
    match parse(&bytes, SALT, 0) {
        JournalContents::Own(own) => {
            let found: Vec<&[u8]> = own
                .records
                .iter()
                .map(|record| record.payload.as_slice())
                .take(lines.len())
                .collect();
            assert_eq!(found, lines);
        }
        contents => panic!("a journal with its header is {contents:?}"),
    }
    parse(input, SALT, 0);
}
