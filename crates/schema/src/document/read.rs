//! Reading a text into entries: strict, in one pass, without recursion. It takes what
//! `kanat_json::check` takes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Entry, Kind, Value, hash};

/// Up to as many keys of one object are compared each with each; more go through a map.
const FEW_KEYS: usize = 32;

/// The entries of a text; nothing when it is no JSON, or nested too deeply.
pub(super) fn entries(text: &str) -> Option<Vec<Entry>> {
    u32::try_from(text.len()).ok()?;
    let entries = Vec::with_capacity(text.len() / 8 + 4);
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        entries,
        open: Vec::new(),
    };
    reader.document()?;
    Some(reader.entries)
}

/// A container that is being read.
struct Open {
    index: u32,
    is_object: bool,
    /// A bit for each key so far, by its hash.
    seen: u64,
    /// Two keys may be the same.
    doubtful: bool,
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    entries: Vec<Entry>,
    open: Vec<Open>,
}

impl Reader<'_> {
    fn document(&mut self) -> Option<()> {
        loop {
            self.blanks();
            let opened = match self.peek()? {
                b'"' => {
                    self.count_item();
                    self.string()?;
                    false
                }
                b'{' => self.enter(Kind::Object)?,
                b'[' => self.enter(Kind::List)?,
                b't' => self.word("true", Kind::Boolean, true)?,
                b'f' => self.word("false", Kind::Boolean, false)?,
                b'n' => self.word("null", Kind::Null, false)?,
                _ => self.number()?,
            };
            if !opened && self.after_value()? {
                return Some(());
            }
        }
    }

    /// Goes on to where the next value begins; `true` at the end of the document.
    fn after_value(&mut self) -> Option<bool> {
        loop {
            self.blanks();
            let Some(open) = self.open.last() else {
                return (self.at == self.bytes.len()).then_some(true);
            };
            match (open.is_object, self.peek()?) {
                (true, b',') => {
                    self.at += 1;
                    self.blanks();
                    self.key()?;
                    return Some(false);
                }
                (false, b',') => {
                    self.at += 1;
                    return Some(false);
                }
                (true, b'}') | (false, b']') => self.leave()?,
                _ => return None,
            }
        }
    }

    /// Opens a container: `true` when a value comes next, `false` when it was empty.
    fn enter(&mut self, kind: Kind) -> Option<bool> {
        if self.open.len() >= kanat_json::MAX_DEPTH {
            return None;
        }
        self.count_item();
        let index = self.push(self.at, self.at, kind, false);
        let is_object = kind == Kind::Object;
        self.open.push(Open {
            index,
            is_object,
            seen: 0,
            doubtful: false,
        });
        self.at += 1;
        self.blanks();
        match (is_object, self.peek()?) {
            (true, b'}') | (false, b']') => {
                self.leave()?;
                Some(false)
            }
            (true, _) => {
                self.key()?;
                Some(true)
            }
            (false, _) => Some(true),
        }
    }

    fn leave(&mut self) -> Option<()> {
        let open = self.open.pop()?;
        self.at += 1;
        let next = self.entries.len() as u32;
        let entry = &mut self.entries[open.index as usize];
        entry.end = self.at as u32;
        entry.next = next;
        if open.doubtful {
            self.mark_repeated(open.index);
        }
        Some(())
    }

    /// Marks each key of an object that comes again.
    fn mark_repeated(&mut self, object: u32) {
        let end = self.entries[object as usize].next;
        let mut keys: Vec<(u32, u32)> =
            Vec::with_capacity(self.entries[object as usize].count as usize);
        let mut at = object + 1;
        while at < end {
            keys.push((self.entries[at as usize].count, at));
            at = self.entries[at as usize + 1].next;
        }
        let mut repeated = Vec::new();
        if keys.len() <= FEW_KEYS {
            for (place, (hash, key)) in keys.iter().enumerate() {
                let again = |(other_hash, other): &(u32, u32)| {
                    other_hash == hash && self.name(*other) == self.name(*key)
                };
                if keys[place + 1..].iter().any(again) {
                    repeated.push(*key);
                }
            }
        } else {
            let mut last: HashMap<Cow<'_, str>, u32> = HashMap::with_capacity(keys.len());
            for (_, key) in &keys {
                repeated.extend(last.insert(self.name(*key), *key));
            }
        }
        self.entries[object as usize].repeated = !repeated.is_empty();
        for key in repeated {
            self.entries[key as usize].repeated = true;
        }
    }

    fn name(&self, key: u32) -> Cow<'_, str> {
        Value {
            text: self.text,
            entries: &self.entries,
            index: key,
        }
        .string()
    }

    /// Whether the object has a key of that hash before this one; yes when it has many.
    fn may_have(&self, object: u32, key: u32, hash: u32) -> bool {
        if self.entries[object as usize].count as usize > FEW_KEYS {
            return true;
        }
        let mut at = object + 1;
        while at < key && self.entries[at as usize].count != hash {
            at = self.entries[at as usize + 1].next;
        }
        at < key
    }

    fn key(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        let index = self.string()?;
        let hash = hash(self.name(index).as_bytes());
        self.entries[index as usize].count = hash;
        let open = self.open.last()?;
        let object = open.index;
        let bit = 1_u64 << (hash >> 26);
        let doubtful =
            open.doubtful || (open.seen & bit != 0 && self.may_have(object, index, hash));
        let open = self.open.last_mut()?;
        open.doubtful = doubtful;
        open.seen |= bit;
        self.entries[object as usize].count += 1;
        self.blanks();
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Reads a string, and gives its entry.
    fn string(&mut self) -> Option<u32> {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = kanat_json::plain_end(self.bytes, self.at);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(self.push(start, self.at, Kind::String, escaped));
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        self.at += 1;
        match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 5;
            }
            _ => return None,
        }
        Some(())
    }

    fn number(&mut self) -> Option<bool> {
        let start = self.at;
        let mut is_whole = true;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return None;
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.count_item();
        self.push(start, self.at, Kind::Number, is_whole);
        Some(false)
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &str, kind: Kind, flag: bool) -> Option<bool> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return None;
        }
        self.count_item();
        self.push(self.at, self.at + word.len(), kind, flag);
        self.at += word.len();
        Some(false)
    }

    fn push(&mut self, start: usize, end: usize, kind: Kind, flag: bool) -> u32 {
        let index = self.entries.len() as u32;
        let start = start as u32;
        let end = end as u32;
        self.entries.push(Entry {
            start,
            end,
            next: index + 1,
            count: 0,
            kind,
            flag,
            repeated: false,
        });
        index
    }

    /// One more value stands in the open list.
    fn count_item(&mut self) {
        if let Some(open) = self.open.last()
            && !open.is_object
        {
            self.entries[open.index as usize].count += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        self.at = kanat_json::skip_whitespace(self.bytes, self.at);
    }
}
