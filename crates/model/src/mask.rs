//! Keeps secrets out of texts that are shown, such as traces and errors.

mod spelling;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use memchr::memmem;

use spelling::Spelling;

/// Text that replaces a secret.
pub const MASK: &str = "********";

/// Texts shorter than this are everywhere: a trace without them could not be read, and would tell
/// them all the same.
pub const SHORTEST_MASKED: usize = 4;

/// Bytes of the longest spelling of a byte of a secret: `\u0041`.
const MAX_SPELLING_BYTES: usize = 6;

/// The texts that may not show, however a request or an answer spells them.
#[derive(Default)]
pub struct Mask {
    needles: Vec<Vec<u8>>,
    /// Some of them have other characters than letters and digits, which are not written in the
    /// same way everywhere.
    is_spelled: bool,
    /// Some of them have a blank, which forms write as `+`.
    has_blank: bool,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").finish_non_exhaustive()
    }
}

impl Mask {
    /// Returns a mask of these secrets. Empty ones, and the mask itself, are passed over.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s String>) -> Self {
        let mut mask = Self::default();
        mask.add(secrets);
        mask
    }

    /// Returns the mask of nothing.
    pub fn none() -> &'static Self {
        static NONE: Mask = Mask {
            needles: Vec::new(),
            is_spelled: false,
            has_blank: false,
        };
        &NONE
    }

    /// Hides these secrets too.
    pub fn add<'s>(&mut self, secrets: impl IntoIterator<Item = &'s String>) {
        for secret in secrets {
            self.add_needle(secret.as_bytes());
            // A secret that holds its own escapes, as one of a URL does.
            if secret.contains('%') {
                let bare = Spelling::Percent.decode(secret.as_bytes());
                if bare.len() >= SHORTEST_MASKED {
                    self.add_needle(&bare);
                }
            }
        }
    }

    fn add_needle(&mut self, needle: &[u8]) {
        let is_passed_over = needle.is_empty() || needle == MASK.as_bytes();
        if is_passed_over || self.needles.iter().any(|known| known == needle) {
            return;
        }
        self.is_spelled |= !needle.iter().all(u8::is_ascii_alphanumeric);
        self.has_blank |= needle.contains(&b' ');
        self.needles.push(needle.to_vec());
    }

    /// Returns how far behind the end of what is shown of a text secrets may stand that begin
    /// before it.
    pub fn reach(&self) -> usize {
        self.longest() * MAX_SPELLING_BYTES
    }

    fn longest(&self) -> usize {
        self.needles.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns `text` with the mask in the place of every secret.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.apply_to_beginning(text, text.len())
    }

    /// Returns the first `end` bytes of `text` with the mask in the place of every secret, also of
    /// one that goes on behind them. What stands behind them does not come into view; it has to be
    /// there as far as the mask reaches.
    pub fn apply_to_beginning<'t>(&self, text: &'t str, end: usize) -> Cow<'t, str> {
        let end = text.floor_char_boundary(end);
        let ranges = self.ranges(text.as_bytes());
        if ranges.first().is_none_or(|first| first.start >= end) {
            return Cow::Borrowed(&text[..end]);
        }
        let mut masked = String::with_capacity(end);
        let mut at = 0;
        for range in ranges.iter().take_while(|range| range.start < end) {
            // A secret may be bytes of a character, where it holds escapes of its own.
            masked.push_str(&text[at..text.floor_char_boundary(range.start).max(at)]);
            masked.push_str(MASK);
            at = text.ceil_char_boundary(range.end);
        }
        masked.push_str(text.get(at..end).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// Returns where secrets stand in a text, in order and without overlaps.
    fn ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.find(text, &mut found);
        if self.is_spelled {
            for spelling in Spelling::ALL {
                let is_met = spelling != Spelling::Form || self.has_blank;
                if let Some(first) = spelling.first(text).filter(|_| is_met) {
                    self.find_spelled(spelling, first, text, &mut found);
                }
            }
        }
        merge(&mut found);
        found
    }

    /// Finds secrets in a text as it stands.
    fn find(&self, text: &[u8], found: &mut Vec<Range<usize>>) {
        for needle in self.needles.iter().filter(|n| n.len() <= text.len()) {
            find_all(text, needle, found);
        }
    }

    /// Finds secrets that are spelled. What stands far before the first escape is no part of them.
    fn find_spelled(
        &self,
        spelling: Spelling,
        first: usize,
        text: &[u8],
        found: &mut Vec<Range<usize>>,
    ) {
        let begin = first.saturating_sub(self.longest());
        let decoded = spelling.decode(&text[begin..]);
        let mut hidden = Vec::new();
        self.find(&decoded, &mut hidden);
        if !hidden.is_empty() {
            merge(&mut hidden);
            let places = spelling.places(&text[begin..], &hidden);
            found.extend(places.map(|place| place.start + begin..place.end + begin));
        }
    }
}

/// Finds a needle wherever it stands; occurrences that overlap are one.
fn find_all(text: &[u8], needle: &[u8], found: &mut Vec<Range<usize>>) {
    let mut from = 0;
    let mut borders = Vec::new();
    while let Some(at) = memmem::find(&text[from..], needle) {
        if borders.is_empty() {
            borders = borders_of(needle);
        }
        let start = from + at;
        let mut end = start + needle.len();
        // As long as the last bytes begin the needle, it may stand there once more.
        let mut begun = borders[needle.len() - 1];
        from = end;
        while begun > 0 && from < text.len() {
            begun = continued(needle, &borders, begun, text[from]);
            from += 1;
            if begun == needle.len() {
                end = from;
                begun = borders[begun - 1];
            }
        }
        found.push(start..end);
    }
}

/// Returns for each beginning of the needle how long the longest shorter one is that it ends with.
fn borders_of(needle: &[u8]) -> Vec<usize> {
    let mut borders = vec![0];
    for at in 1..needle.len() {
        borders.push(continued(needle, &borders, borders[at - 1], needle[at]));
    }
    borders
}

/// Returns how much of the needle stands at an end that had `begun` bytes of it, one byte later.
fn continued(needle: &[u8], borders: &[usize], mut begun: usize, byte: u8) -> usize {
    while begun > 0 && needle[begun] != byte {
        begun = borders[begun - 1];
    }
    begun + usize::from(needle[begun] == byte)
}

/// Puts ranges in order, and those that overlap together.
fn merge(ranges: &mut Vec<Range<usize>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, former| {
        let overlaps = next.start < former.end;
        if overlaps {
            former.end = former.end.max(next.end);
        }
        overlaps
    });
}

#[cfg(test)]
mod tests;
