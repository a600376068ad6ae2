//! The program of a schema: its keywords by the kind of value that they apply to.

use std::collections::HashMap;

use crate::document::{Key, Kind, Value, hash};
use crate::equality;
use crate::format::Format;
use crate::number::Limit;
use crate::pattern::Pattern;

/// Index of a node in its program.
pub(crate) type Id = u32;

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: Id,
    /// The nodes of dynamic anchors, by resource and name.
    pub(crate) dynamic: HashMap<(u32, String), Id>,
    /// The roots of resources with `$recursiveAnchor`.
    pub(crate) recursive: HashMap<u32, Id>,
    /// Some reference depends on how its node was reached.
    pub(crate) has_scope: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Verdict of the schemas `true` and `false`.
    pub(crate) verdict: Option<bool>,
    pub(crate) types: Option<Types>,
    /// Values of `const` and `enum`.
    pub(crate) options: Vec<Options>,
    pub(crate) number: Option<Box<NumberRules>>,
    pub(crate) string: Option<Box<StringRules>>,
    pub(crate) list: Option<Box<ListRules>>,
    pub(crate) object: Option<Box<ObjectRules>>,
    pub(crate) applied: Vec<Applicator>,
    pub(crate) unevaluated_items: Option<Id>,
    pub(crate) unevaluated_members: Option<Id>,
    /// Resource that the node is part of.
    pub(crate) resource: u32,
}

/// Schemas that apply to the same value as the one that they stand in.
#[derive(Debug)]
pub(crate) enum Applicator {
    All(Vec<Id>),
    Any(Vec<Id>),
    One(Vec<Id>),
    Not(Id),
    If {
        test: Id,
        then: Option<Id>,
        otherwise: Option<Id>,
    },
    Reference(Id),
    /// `$dynamicRef` to a dynamic anchor. It leads to the anchor of the outermost resource in scope
    /// that has it, else to the target.
    Dynamic {
        target: Id,
        name: String,
    },
    /// `$recursiveRef` to a root with `$recursiveAnchor`.
    Recursive {
        target: Id,
    },
}

#[derive(Debug, Default)]
pub(crate) struct NumberRules {
    pub(crate) minimum: Option<Limit>,
    pub(crate) exclusive_minimum: Option<Limit>,
    pub(crate) maximum: Option<Limit>,
    pub(crate) exclusive_maximum: Option<Limit>,
    pub(crate) multiple_of: Option<Limit>,
}

#[derive(Debug, Default)]
pub(crate) struct StringRules {
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: Option<Format>,
}

#[derive(Debug, Default)]
pub(crate) struct ListRules {
    /// Schemas of the first items, one each.
    pub(crate) first: Vec<Id>,
    pub(crate) rest: Option<Id>,
    pub(crate) contains: Option<Contains>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) is_unique: bool,
}

#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) schema: Id,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// Items that fit count as evaluated.
    pub(crate) evaluates: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ObjectRules {
    pub(crate) names: Names,
    /// Names of the required members, in the order in which [`Name::required`] counts them.
    pub(crate) required: Vec<Box<str>>,
    pub(crate) patterns: Vec<(Pattern, Id)>,
    pub(crate) additional: Option<Id>,
    pub(crate) property_names: Option<Id>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// Rules that apply when a member is present.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: Box<str>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) schema: Option<Id>,
}

/// A member that the schema knows by name.
#[derive(Debug)]
pub(crate) struct Name {
    name: Box<str>,
    hash: u32,
    pub(crate) schema: Option<Id>,
    pub(crate) required: Option<usize>,
}

/// The members that a schema knows by name: a table of places with open addressing.
#[derive(Debug, Default)]
pub(crate) struct Names {
    all: Vec<Name>,
    /// One more than the place in `all`; 0 where it is free. As many as a power of two.
    table: Vec<u32>,
}

impl Names {
    pub(crate) fn find(&self, key: Key<'_>) -> Option<&Name> {
        self.look_up(key.hash(), |name| key.is(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Name> {
        self.look_up(hash(name.as_bytes()), |known| known == name)
    }

    fn look_up(&self, hash: u32, is_it: impl Fn(&str) -> bool) -> Option<&Name> {
        let mut slot = hash as usize;
        loop {
            let number = *self.table.get(slot & self.table.len().checked_sub(1)?)?;
            let name = &self.all[(number as usize).checked_sub(1)?];
            if name.hash == hash && is_it(&name.name) {
                return Some(name);
            }
            slot += 1;
        }
    }

    pub(crate) fn all(&self) -> &[Name] {
        &self.all
    }

    /// Makes the table of the names that have been noted.
    pub(crate) fn new(noted: Vec<(Box<str>, Option<Id>, Option<usize>)>) -> Self {
        let named = |(name, schema, required): (Box<str>, _, _)| {
            let hash = hash(name.as_bytes());
            Name {
                name,
                hash,
                schema,
                required,
            }
        };
        let all: Vec<Name> = noted.into_iter().map(named).collect();
        let mut table = vec![
            0;
            if all.is_empty() {
                0
            } else {
                (all.len() * 2).next_power_of_two()
            }
        ];
        for (place, name) in all.iter().enumerate() {
            let mut slot = name.hash as usize & (table.len() - 1);
            while table[slot] != 0 {
                slot = (slot + 1) & (table.len() - 1);
            }
            table[slot] = place as u32 + 1;
        }
        Self { all, table }
    }
}

/// Set of the seven types; `integer` is one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Types {
    bits: u8,
    /// Only a number that is written as an integer is one, so that 1.0 is none.
    pub(crate) as_written: bool,
}

impl Types {
    pub(crate) const NAMES: [&str; 7] = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];

    /// Adds the type of that name. Returns `false` when there is none.
    pub(crate) fn add(&mut self, name: &str) -> bool {
        let place = Self::NAMES.iter().position(|known| *known == name);
        self.bits |= place.map_or(0, |place| 1 << place);
        place.is_some()
    }

    pub(crate) fn has(self, name: &str) -> bool {
        Self::NAMES
            .iter()
            .position(|known| *known == name)
            .is_some_and(|place| self.bits & 1 << place != 0)
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |name| self.has(name))
    }

    pub(crate) fn fit(self, value: Value<'_>) -> bool {
        let place = match value.kind() {
            Kind::Null => 0,
            Kind::Boolean => 1,
            Kind::Number => 3,
            Kind::String => 4,
            Kind::List => 5,
            Kind::Object => 6,
        };
        let is_integer = || {
            let number = value.as_number();
            number.is_some_and(|number| {
                if self.as_written {
                    number.is_written_whole()
                } else {
                    number.is_whole()
                }
            })
        };
        self.bits & 1 << place != 0 || (self.bits & 1 << 2 != 0 && is_integer())
    }
}

/// Values that a `const` or an `enum` allows, each once and in order.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) strings: Vec<Box<str>>,
    /// The other values, as [`equality::write`] writes them.
    pub(crate) others: Vec<Box<[u8]>>,
    /// Summary of the values for messages.
    pub(crate) shown: String,
}

impl Options {
    pub(crate) fn new<'d>(values: impl Iterator<Item = Value<'d>>) -> Self {
        let mut options = Self {
            strings: Vec::new(),
            others: Vec::new(),
            shown: String::new(),
        };
        let mut shown = OptionSummary::default();
        for value in values {
            shown.add(value);
            match value.as_str() {
                Some(text) => options.strings.push(text.into()),
                None => options.others.push(written(value)),
            }
        }
        options.strings.sort_unstable();
        options.strings.dedup();
        options.others.sort_unstable();
        options.others.dedup();
        options.shown = shown.text;
        options
    }

    pub(crate) fn has(&self, value: Value<'_>) -> bool {
        match value.as_str() {
            Some(text) => self.has_text(&text),
            None => !self.others.is_empty() && self.others.binary_search(&written(value)).is_ok(),
        }
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.strings
            .binary_search_by(|known| (**known).cmp(text))
            .is_ok()
    }
}

fn written(value: Value<'_>) -> Box<[u8]> {
    let mut out = Vec::new();
    equality::write(value, &mut out);
    out.into()
}

/// Summary of a list of options: the first values, each cut where it is long.
#[derive(Default)]
struct OptionSummary {
    text: String,
    count: usize,
}

impl OptionSummary {
    fn add(&mut self, value: Value<'_>) {
        const MAX_VALUES: usize = 20;
        const MAX_CHARACTERS: usize = 60;
        self.count += 1;
        if self.count > MAX_VALUES + 1 {
            return;
        }
        if self.count > 1 {
            self.text.push_str(", ");
        }
        if self.count > MAX_VALUES {
            self.text.push('…');
            return;
        }
        let text = match value.as_str() {
            Some(text) => text.into_owned(),
            None => value.raw().to_owned(),
        };
        match text.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => self.text.push_str(&format!("{}…", &text[..end])),
            None => self.text.push_str(&text),
        }
    }
}
