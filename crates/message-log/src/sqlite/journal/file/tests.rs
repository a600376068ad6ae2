//! The file as it is written, torn, damaged, full and refused by the disk.

use super::scan::OwnRecords;
use super::*;

fn write(journal: &mut JournalFile, payload: &str) -> i64 {
    journal
        .append(&mut [&[0; RECORD_HEADER_BYTES], payload.as_bytes()].concat())
        .unwrap()
}

fn own(path: &Path, salt: i64, applied: i64) -> OwnRecords {
    match read(path, salt, applied).unwrap() {
        JournalContents::Own(own) => own,
        other => panic!("{other:?}"),
    }
}

fn intact_records(path: &Path, salt: i64) -> Vec<RawRecord> {
    let own = own(path, salt, 0);
    assert!(own.is_header_valid && own.salvaged.is_empty(), "{own:?}");
    own.records
}

fn expected(records: &[(i64, &str)]) -> Vec<RawRecord> {
    records
        .iter()
        .map(|(number, text)| RawRecord {
            number: *number,
            payload: text.as_bytes().to_vec(),
        })
        .collect()
}

#[test]
fn reads_the_written_records_and_none_of_an_earlier_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    assert_eq!(read(&path, 7, 0).unwrap(), JournalContents::Missing);
    let mut journal = JournalFile::create(&path, 7, 40).unwrap();
    assert_eq!(intact_records(&path, 7), expected(&[]));
    assert_eq!(
        [
            write(&mut journal, "one"),
            write(&mut journal, ""),
            write(&mut journal, "three")
        ],
        [41, 42, 43]
    );
    assert_eq!(
        intact_records(&path, 7),
        expected(&[(41, "one"), (42, ""), (43, "three")])
    );
    journal.restart();
    write(&mut journal, "ONE");
    assert_eq!(
        intact_records(&path, 7),
        expected(&[(44, "ONE")]),
        "record 42 is at the offset of 45, and is not taken for it"
    );
    assert_eq!(
        read(&path, 8, 0).unwrap(),
        JournalContents::Foreign { is_empty: false }
    );
    journal.remove().unwrap();
    assert_eq!(read(&path, 7, 0).unwrap(), JournalContents::Missing);
}

#[test]
fn a_torn_record_ends_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = JournalFile::create(&path, 1, 0).unwrap();
    write(&mut journal, "first");
    let second = journal.next_offset;
    write(&mut journal, "second");
    let whole = std::fs::read(&path).unwrap();
    let end = usize::try_from(journal.next_offset).unwrap();
    for at in usize::try_from(second).unwrap()..end {
        let mut torn = whole.clone();
        torn[at] ^= 0x10;
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(
            intact_records(&path, 1),
            expected(&[(1, "first")]),
            "byte {at}"
        );
        std::fs::write(&path, &whole[..at]).unwrap();
        assert_eq!(
            intact_records(&path, 1),
            expected(&[(1, "first")]),
            "cut at {at}"
        );
    }
    for cut in [0, 7, 4_095] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(
            read(&path, 1, 0).unwrap(),
            JournalContents::Missing,
            "a file whose creation was not completed"
        );
    }
}

#[test]
fn valid_records_after_any_damaged_one_are_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = JournalFile::create(&path, 1, 0).unwrap();
    // Records of an earlier use.
    for number in 1..=9 {
        write(&mut journal, &format!("earlier {number}"));
    }
    journal.restart();
    let ends: Vec<u64> = (10..=14)
        .map(|number| {
            write(&mut journal, &format!("number {number}"));
            journal.next_offset
        })
        .collect();
    let whole = std::fs::read(&path).unwrap();
    let read_numbers = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let own = own(&path, 1, 9);
        let numbers = |records: &[RawRecord]| {
            records
                .iter()
                .map(|record| record.number)
                .collect::<Vec<_>>()
        };
        (
            numbers(&own.records),
            numbers(&own.salvaged),
            own.is_header_valid,
        )
    };
    for at in FILE_HEADER_BYTES..ends[0] {
        let mut damaged = whole.clone();
        damaged[usize::try_from(at).unwrap()] ^= 0x10;
        assert_eq!(
            read_numbers(&damaged),
            (vec![], vec![11, 12, 13, 14], true),
            "byte {at} of the first"
        );
    }
    let mut damaged = whole.clone();
    damaged[usize::try_from(ends[1]).unwrap()..usize::try_from(ends[3]).unwrap()].fill(0);
    assert_eq!(
        read_numbers(&damaged),
        (vec![10, 11], vec![14], true),
        "zeros over two of them"
    );
    for at in [0, 8, 15] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert_eq!(
            read_numbers(&damaged),
            (vec![10, 11, 12, 13, 14], vec![], false),
            "byte {at} of the header"
        );
    }
}

#[test]
fn distinguishes_a_file_of_another_version_from_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    write(&mut JournalFile::create(&path, 1, 0).unwrap(), "one");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[7] = b'2';
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path, 1, 0).unwrap(), JournalContents::UnknownVersion);
    std::fs::write(&path, vec![0x20; 8_192]).unwrap();
    assert_eq!(read(&path, 1, 0).unwrap(), JournalContents::Damaged);
}

#[test]
fn removes_a_file_that_finds_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let error = JournalFile::create(&path, 1, 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(std::fs::symlink_metadata(&path).is_err());
}

#[test]
fn a_failed_sync_is_not_taken_for_a_full_disk() {
    let refused = |device: &str, preallocated| {
        let file = OpenOptions::new().write(true).open(device).unwrap();
        let mut journal = JournalFile {
            file,
            path: PathBuf::new(),
            salt: 1,
            next_offset: 0,
            preallocated,
            last_record_number: 0,
        };
        journal.append(&mut [0; 100]).unwrap_err()
    };
    assert!(matches!(refused("/dev/full", 0), AppendError::NoSpace(_)));
    // It takes everything, and refuses to sync.
    assert!(
        matches!(refused("/dev/null", 0), AppendError::Broken(_)),
        "while it grows"
    );
    assert!(matches!(
        refused("/dev/null", 4_096),
        AppendError::Broken(_)
    ));
}

#[test]
fn grows_to_its_limit_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = JournalFile::create(&path, 1, 0).unwrap();
    let large = "x".repeat(5_000_000);
    let mut written = 0;
    while journal.has_room_for(large.len()) {
        write(&mut journal, &large);
        written += 1;
    }
    assert_eq!(written, 6);
    assert_eq!(intact_records(&path, 1).len(), 6);
    assert!(std::fs::metadata(&path).unwrap().len() <= MAX_BYTES + GROWTH_BYTES);
    assert!(JournalFile::can_hold(large.len()) && !JournalFile::can_hold(34_000_000));
}
