//! The ways in which URLs, forms and JSON write characters that they do not let stand.

use std::ops::Range;

use memchr::{memchr, memchr2};

/// A way of writing texts in which some characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Strings of JSON: `\/`, `\u00e9`.
    Json,
    /// URLs: `%2F`.
    Percent,
    /// Forms: URLs with `+` for a blank.
    Form,
}

impl Spelling {
    pub const ALL: [Self; 3] = [Self::Json, Self::Percent, Self::Form];

    /// Returns where the first character stands that may begin an escape.
    pub fn first(self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Json => memchr(b'\\', text),
            Self::Percent => memchr(b'%', text),
            Self::Form => memchr2(b'%', b'+', text),
        }
    }

    /// Returns what a text stands for. What is no escape stands for itself.
    pub fn decode(self, text: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(text.len());
        self.each_part(text, |_, stands_for| decoded.extend_from_slice(stands_for));
        decoded
    }

    /// Returns where parts of what a text stands for are written in it. They are in order and do
    /// not overlap.
    pub fn places(
        self,
        text: &[u8],
        decoded: &[Range<usize>],
    ) -> impl Iterator<Item = Range<usize>> {
        let mut bounds = decoded.iter().flat_map(|part| [part.start, part.end - 1]);
        let mut next = bounds.next();
        let mut written = Vec::with_capacity(2 * decoded.len());
        let mut before = 0;
        self.each_part(text, |place, stands_for| {
            while let Some(bound) = next.filter(|bound| *bound < before + stands_for.len()) {
                let is_escape = place.len() != stands_for.len();
                let byte = place.start + bound - before;
                let byte = byte..byte + 1;
                written.push(if is_escape { place.clone() } else { byte });
                next = bounds.next();
            }
            before += stands_for.len();
        });
        let mut written = written.into_iter();
        std::iter::from_fn(move || Some(written.next()?.start..written.next()?.end))
    }

    /// Hands on the parts of a text, with where they stand and what they stand for.
    fn each_part(self, text: &[u8], mut part: impl FnMut(Range<usize>, &[u8])) {
        let mut stands_for = Vec::with_capacity(4);
        let mut done = 0;
        let mut from = 0;
        while let Some(found) = self.first(&text[from..]) {
            let escape = from + found;
            stands_for.clear();
            let length = self.unescape(&text[escape..], &mut stands_for).unwrap_or(0);
            from = escape + length.max(1);
            if length > 0 {
                part(done..escape, &text[done..escape]);
                part(escape..from, &stands_for);
                done = from;
            }
        }
        part(done..text.len(), &text[done..]);
    }

    /// Appends what the escape stands for that `text` begins with, and returns its length.
    fn unescape(self, text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        match self {
            Self::Json => json(text, out),
            Self::Form if text[0] == b'+' => {
                out.push(b' ');
                Some(1)
            }
            Self::Percent | Self::Form => {
                let code = hex(text.get(1..3)?)?;
                out.push(u8::try_from(code).ok()?);
                Some(3)
            }
        }
    }
}

fn json(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let stands_for = match text.get(1)? {
        b'b' => b'\x08',
        b'f' => b'\x0c',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode(text, out),
        itself @ (b'"' | b'\\' | b'/') => *itself,
        _ => return None,
    };
    out.push(stands_for);
    Some(2)
}

/// `\u00e9`, or the two of a character that UTF-16 has two units for.
fn unicode(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::try_from(hex(escape)?).ok()
    };
    let units = [unit(0)?, unit(6).unwrap_or(0)];
    let character = char::decode_utf16(units).next()?.ok()?;
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(6 * character.len_utf16())
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        Some(number * 16 + char::from(*digit).to_digit(16)?)
    })
}
