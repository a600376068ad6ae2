//! The contents of one file: what is on disk, and what is not yet.

use bytes::Bytes;

use super::Writeback;

/// A file with all that was done to it.
pub(super) struct File {
    number: u64,
    base: Bytes,
    changes: Vec<Change>,
    /// Number of changes at the begin that a sync has decided on.
    settled: usize,
}

struct Change {
    /// Length of the trace with it.
    end: u64,
    is_durable: bool,
    kind: Kind,
}

enum Kind {
    Write { offset: usize, data: Bytes },
    Length(usize),
}

impl File {
    /// A file that is on disk with these contents; `number` sets its choices apart from those of
    /// other files.
    pub fn new(number: u64, base: Bytes) -> Self {
        Self {
            number,
            base,
            changes: Vec::new(),
            settled: 0,
        }
    }

    pub fn write(&mut self, end: u64, offset: u64, data: Bytes) {
        let offset = usize::try_from(offset).expect("files of a test are small");
        self.changes.push(Change {
            end,
            is_durable: false,
            kind: Kind::Write { offset, data },
        });
    }

    pub fn set_length(&mut self, end: u64, length: u64) {
        let length = usize::try_from(length).expect("files of a test are small");
        self.changes.push(Change {
            end,
            is_durable: false,
            kind: Kind::Length(length),
        });
    }

    /// Puts on disk what was changed up to this place of the trace.
    pub fn sync(&mut self, covers: u64) {
        for change in self.take_settled(covers) {
            change.is_durable = true;
        }
    }

    /// Leaves open for good whether what was written up to this place of the trace is on disk.
    pub fn fail_to_sync(&mut self, covers: u64) {
        let from = self.settled;
        let is_length = |change: &Change| matches!(change.kind, Kind::Length(_));
        self.take_settled(covers);
        // Lengths are in the file system's own journal, which a later sync writes.
        if let Some(first) = self.changes[from..self.settled].iter().position(is_length) {
            self.settled = from + first;
        }
    }

    fn take_settled(&mut self, covers: u64) -> &mut [Change] {
        let from = self.settled;
        self.settled += self.changes[from..]
            .iter()
            .take_while(|change| change.end <= covers)
            .count();
        &mut self.changes[from..self.settled]
    }

    /// Returns what the file may hold after a loss of power.
    pub fn after_a_crash(&self, writeback: &Writeback) -> Vec<u8> {
        let pending = self
            .changes
            .iter()
            .filter(|change| !change.is_durable)
            .count();
        let known = writeback.count(self.number, u64::MAX, pending);
        let mut contents = self.base.to_vec();
        let mut length = contents.len();
        let mut rank = 0;
        let mut is_cut_off = false;
        for change in &self.changes {
            let own = rank;
            rank += usize::from(!change.is_durable);
            match &change.kind {
                Kind::Length(new) if change.is_durable || own < known => {
                    contents.resize(*new, 0);
                    length = *new;
                }
                // What is written after it would be in blocks that the file does not have.
                Kind::Length(new) => is_cut_off |= *new < length,
                Kind::Write { offset, data } if change.is_durable => {
                    put(&mut contents, *offset, data);
                    length = length.max(offset + data.len());
                }
                Kind::Write { .. } if is_cut_off => {}
                Kind::Write { offset, data } => {
                    for (offset, piece) in pieces(*offset, data, writeback.sector_bytes()) {
                        let sector = (offset / writeback.sector_bytes()) as u64;
                        if own < writeback.count(self.number, sector, pending) {
                            put(&mut contents, offset, piece);
                        }
                    }
                    if own < known {
                        length = length.max(offset + data.len());
                    }
                }
            }
        }
        contents.resize(length, 0);
        contents
    }
}

fn put(contents: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[offset..end].copy_from_slice(data);
}

/// The parts of a write, sector by sector, with their offsets.
fn pieces(offset: usize, data: &[u8], sector_bytes: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = offset;
    let mut rest = data;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.len().min(sector_bytes - at % sector_bytes));
        let from = at;
        at += piece.len();
        rest = after;
        (!piece.is_empty()).then_some((from, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4_096;

    fn file() -> File {
        File::new(1, Bytes::from(vec![b'.'; 2 * PAGE]))
    }

    fn filled(byte: u8, bytes: usize) -> Bytes {
        Bytes::from(vec![byte; bytes])
    }

    fn crashes(file: &File) -> Vec<Vec<u8>> {
        (0..200)
            .map(|seed| file.after_a_crash(&Writeback::random(seed)))
            .collect()
    }

    #[test]
    fn what_was_synced_is_there_after_every_crash() {
        let mut file = file();
        file.write(10, 100, filled(b'a', 1_000));
        file.sync(10);
        file.write(20, 0, filled(b'b', 50));
        for contents in crashes(&file) {
            assert_eq!(contents[100..1_100], filled(b'a', 1_000));
            assert_eq!(contents.len(), 2 * PAGE);
        }
    }

    #[test]
    fn a_sync_covers_nothing_that_came_after_its_begin() {
        let mut file = file();
        file.write(10, 0, filled(b'a', PAGE));
        file.write(20, 0, filled(b'b', PAGE));
        file.sync(10);
        let crashes = crashes(&file);
        assert!(
            crashes
                .iter()
                .any(|contents| contents[..PAGE] == filled(b'a', PAGE))
        );
        assert!(
            crashes
                .iter()
                .any(|contents| contents[..PAGE] == filled(b'b', PAGE))
        );
        assert!(
            crashes
                .iter()
                .any(|contents| contents[..512] != contents[512..1_024]),
            "some are torn"
        );
        assert!(
            crashes
                .iter()
                .all(|contents| !contents[..PAGE].contains(&b'.'))
        );
    }

    #[test]
    fn a_sector_has_the_contents_of_one_moment() {
        let mut file = file();
        file.write(10, 0, filled(b'a', 512));
        file.write(20, 100, filled(b'b', 100));
        for contents in crashes(&file) {
            assert!(
                contents[100] != b'b' || contents[0] == b'a',
                "the second write without the first"
            );
        }
    }

    #[test]
    fn nothing_is_there_of_what_was_written_after_a_truncation_that_is_not() {
        let mut file = file();
        file.set_length(10, 0);
        file.write(20, 0, filled(b'a', 100));
        for contents in crashes(&file) {
            match contents.len() {
                0 | 100 => assert!(!contents.contains(&b'.')),
                length => assert_eq!(contents, filled(b'.', length), "the former contents, whole"),
            }
        }
    }

    #[test]
    fn a_sync_after_one_that_failed_does_not_bring_back_what_that_lost() {
        let mut file = file();
        file.write(10, 0, filled(b'a', PAGE));
        file.fail_to_sync(10);
        file.write(20, PAGE as u64, filled(b'b', PAGE));
        file.sync(20);
        let crashes = crashes(&file);
        assert!(
            crashes
                .iter()
                .all(|contents| contents[PAGE..] == filled(b'b', PAGE))
        );
        assert!(crashes.iter().any(|contents| contents[0] == b'.'));
        assert!(crashes.iter().any(|contents| contents[0] == b'a'));
    }

    #[test]
    fn a_file_that_grew_may_have_any_length_of_its_own() {
        let mut file = file();
        file.write(10, 2 * PAGE as u64, filled(b'a', PAGE));
        file.write(20, 3 * PAGE as u64, filled(b'b', PAGE));
        let mut lengths: Vec<_> = crashes(&file)
            .iter()
            .map(|contents| contents.len() / PAGE)
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert_eq!(lengths, [2, 3, 4]);
    }
}
