//! Paths: a root, then names, indexes and `[*]`, with blanks between them.

use super::nearest::suggestion;
use super::token::is_word;
use super::{ParseResult, Parser};
use crate::ParseError;
use crate::path::{Path, Segment};
use crate::references::{InstanceValue, ItemReference, Reference, Root, ValueForm};
use crate::transform;

const MAX_STEPS: usize = 64;

/// Members of `trigger`. The ones after `received_at` exist in calls of published APIs.
const TRIGGER: &[&str] = &[
    "body",
    "payload",
    "headers",
    "query",
    "method",
    "path_params",
    "received_at",
    "api",
    "validation",
];
const STEP: &[&str] = &["output", "status"];
const TARGET: &[&str] = &["response"];
const TARGET_RESPONSE: &[&str] = &["body", "status"];
const RESPONSE: &[&str] = &["status", "headers", "body"];
const STATE: &[&str] = &["cursor", "last_success_at"];

/// Word before `item` and `index` that leads to the list around.
const OUTER: &str = "outer";

impl Parser<'_> {
    /// Parses the rest of a path whose first word, at `offset`, has been read.
    pub(super) fn path(&mut self, word: &str, offset: usize) -> ParseResult<Path> {
        let (root, outward) = self.root(word, offset)?;
        let (segments, offsets) = self.located_segments()?;
        if root == Root::Env && !matches!(segments.first(), Some(Segment::Name(_))) {
            let message = "found `env` alone, expected the name of a variable, as in `env.NAME`";
            return Err(ParseError::new(offset, message));
        }
        self.references
            .definition_faults
            .extend(unknown_member(root, &segments, offsets));
        let path = self.rewritten(root, outward, segments);
        self.note(&path, offset, offsets[0]);
        Ok(path)
    }

    /// Returns the root that begins with a word, and how many lists outward it is known.
    fn root(&mut self, word: &str, offset: usize) -> ParseResult<(Root, usize)> {
        if word != OUTER {
            return match Root::parse(word) {
                Some(root) => Ok((root, 0)),
                None => Err(self.unknown_root(word, offset)),
            };
        }
        let mut outward = 1;
        while self.dot() {
            match self.word() {
                OUTER => outward += 1,
                "item" => return Ok((Root::Item, outward)),
                "index" => return Ok((Root::Index, outward)),
                _ => break,
            }
        }
        Err(ParseError::new(
            offset,
            "found `outer`, expected `outer.item` or `outer.index`",
        ))
    }

    fn unknown_root(&mut self, word: &str, offset: usize) -> ParseError {
        self.position = offset;
        let names = Root::ALL.map(Root::as_str);
        let mut hint = suggestion(word, &names);
        let named = word.split_once('-').filter(|(first, _)| {
            Root::parse(first).is_some() || ["true", "false", "null"].contains(first)
        });
        if self.is_called(word) {
            return self.unknown_function(word);
        } else if let Some((first, rest)) = named {
            hint = format!("; a minus stands between blanks: `{first} - {rest}`");
        } else if hint.is_empty() && !word.starts_with('-') {
            hint = self.quoted_hint(word);
        }
        self.unexpected(&format!("one of the roots {}{hint}", names.join(", ")))
    }

    /// Returns whether an opening parenthesis follows the word.
    fn is_called(&self, word: &str) -> bool {
        self.here()[word.len()..].trim_start().starts_with('(')
    }

    fn unknown_function(&mut self, word: &str) -> ParseError {
        let transforms: Vec<&str> = transform::functions().map(|known| known.name).collect();
        let hint = match transforms.contains(&word) {
            true => format!(
                "; `{word}` is a transform: it stands behind its value and a pipe, as in \
                 `source.value | {word}`"
            ),
            false => suggestion(word, &transforms),
        };
        self.unexpected(&format!(
            "one of the functions if, coalesce, now, uuid{hint}"
        ))
    }

    /// Returns how a word that stands alone is written as a text; with the quotes of YAML around it
    /// when it is all that there is.
    fn quoted_hint(&self, word: &str) -> String {
        let after = &self.here()[word.len()..];
        let after = after.trim_start();
        let next = after.split(|letter: char| !is_word(letter)).next();
        // A path and a sentence are no texts that stand alone.
        let goes_on = after.starts_with(['.', '[', '('])
            || !matches!(next, Some("" | "and" | "or" | "in") | None);
        if goes_on {
            return String::new();
        }
        if self.text.trim() == word {
            format!("; for the text itself write \"'{word}'\"")
        } else {
            format!("; a text stands in quotes: `'{word}'`")
        }
    }

    /// Notes what a path uses from outside of its expression.
    fn note(&mut self, path: &Path, offset: usize, first: usize) {
        match (path.root, path.segments.first()) {
            (Root::Item | Root::Index, _) => {
                // What the lists of the expression itself give is not from outside.
                if let Some(lists) = (path.outward + 1).checked_sub(self.lists)
                    && lists > 0
                {
                    self.references.items.push(ItemReference {
                        root: path.root,
                        lists,
                        offset,
                    });
                    self.references.root(path.root);
                }
                return;
            }
            (Root::Steps, Some(Segment::Name(name))) => {
                self.references.steps.push(Reference {
                    name: name.clone(),
                    offset: first,
                });
            }
            (Root::Env, Some(Segment::Name(name))) => {
                self.references.variables.push(Reference {
                    name: name.clone(),
                    offset: first,
                });
            }
            (Root::Instance, segment) => {
                let offset = if segment.is_some() { first } else { offset };
                let names = path.names().map(str::to_owned).collect();
                self.references.instance_values.push(InstanceValue {
                    names,
                    offset,
                    form: ValueForm::Whole,
                });
            }
            (Root::Trigger, _) => self
                .references
                .trigger_values
                .push(path.names().map(str::to_owned).collect()),
            (
                Root::Source
                | Root::Steps
                | Root::Target
                | Root::State
                | Root::Env
                | Root::Response,
                _,
            ) => {}
        }
        self.references.root(path.root);
    }

    /// Parses the segments that stand here, if any.
    pub(super) fn segments(&mut self) -> ParseResult<Vec<Segment>> {
        self.located_segments().map(|(segments, _)| segments)
    }

    /// Returns segments with the offsets of the first two.
    fn located_segments(&mut self) -> ParseResult<(Vec<Segment>, [usize; 2])> {
        let mut segments = Vec::new();
        let mut offsets = [self.position; 2];
        while let Some(segment) = self.segment()? {
            if let Some(offset) = offsets.get_mut(segments.len()) {
                *offset = self.position - name_length(&segment);
            }
            if segments.len() == MAX_STEPS {
                return Err(self.error(format!("a path of more than {MAX_STEPS} steps")));
            }
            segments.push(segment);
        }
        Ok((segments, offsets))
    }

    /// Steps over a dot, and the blanks around it.
    fn dot(&mut self) -> bool {
        let found = self.here().trim_start().starts_with('.');
        if found {
            self.skip_whitespace();
            self.position += 1;
            self.skip_whitespace();
        }
        found
    }

    fn segment(&mut self) -> ParseResult<Option<Segment>> {
        if self.dot() {
            let name = self.word();
            if name.is_empty() {
                return Err(self.unexpected("a name"));
            }
            return Ok(Some(Segment::Name(name.to_owned())));
        }
        if !self.here().trim_start().starts_with('[') {
            return Ok(None);
        }
        self.skip_whitespace();
        self.position += 1;
        self.skip_whitespace();
        let segment = self.bracketed()?;
        if !self.rest().starts_with(']') {
            return Err(self.unexpected("`]`"));
        }
        self.position += 1;
        Ok(Some(segment))
    }

    fn bracketed(&mut self) -> ParseResult<Segment> {
        match self.peek() {
            Some('*') => {
                self.position += 1;
                Ok(Segment::Each)
            }
            Some('"' | '\'') => Ok(Segment::Name(self.string()?)),
            Some('0'..='9') => {
                let start = self.position;
                let digits = self.word();
                digits.parse().map(Segment::Index).map_err(|_| {
                    self.position = start;
                    self.unexpected("the index of an item")
                })
            }
            Some(_) | None => Err(self.unexpected("a number, `*` or a name in quotes")),
        }
    }

    /// Rewrites `trigger.body` and `trigger.payload` to the payload, and the names of headers to
    /// lower case.
    fn rewritten(&self, root: Root, outward: usize, mut segments: Vec<Segment>) -> Path {
        let is = |segment: Option<&Segment>, names: &[&str]| match segment {
            Some(Segment::Name(found)) => names.contains(&found.as_str()),
            Some(Segment::Index(_) | Segment::Each) | None => false,
        };
        let mut root = root;
        if root == Root::Trigger && is(segments.first(), &["body", "payload"]) {
            segments.remove(0);
            root = Root::Source;
        }
        if matches!(root, Root::Trigger | Root::Response)
            && is(segments.first(), &["headers"])
            && let Some(Segment::Name(header)) = segments.get_mut(1)
        {
            header.make_ascii_lowercase();
        }
        Path {
            root,
            outward,
            is_planned: outward == self.lists || !matches!(root, Root::Item | Root::Index),
            segments,
            slot: None,
        }
    }
}

/// Returns what is wrong with the first name that a closed list of members does not have. `offsets`
/// are those of the first two segments.
fn unknown_member(root: Root, segments: &[Segment], offsets: [usize; 2]) -> Option<ParseError> {
    let name = |place: usize| match segments.get(place)? {
        Segment::Name(name) => Some(name.as_str()),
        Segment::Index(_) | Segment::Each => None,
    };
    let check = |place: usize, of: &str, members: &[&str]| {
        let found = name(place).filter(|name| !members.contains(name))?;
        let suggestion = suggestion(found, members);
        let message = format!(
            "found `{found}`, expected a member of {of}: {}{suggestion}",
            members.join(", ")
        );
        Some(ParseError::new(offsets[place], message))
    };
    match root {
        Root::Trigger => check(0, "trigger", TRIGGER),
        Root::State => check(0, "state", STATE),
        Root::Response => check(0, "response", RESPONSE),
        Root::Target => {
            check(0, "target", TARGET).or_else(|| check(1, "target.response", TARGET_RESPONSE))
        }
        Root::Steps => check(1, &format!("the step {}", name(0)?), STEP),
        Root::Source | Root::Instance | Root::Item | Root::Index | Root::Env => None,
    }
}

/// Returns the length of the name that was just read.
fn name_length(segment: &Segment) -> usize {
    match segment {
        Segment::Name(name) => name.len(),
        Segment::Index(_) | Segment::Each => 0,
    }
}
