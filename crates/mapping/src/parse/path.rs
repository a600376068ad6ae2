//! Paths: a root, then names, indexes and `[*]`.

use super::nearest::suggestion;
use super::{ParseResult, Parser};
use crate::ParseError;
use crate::path::{Path, Segment};
use crate::references::{InstanceValue, Reference, Root, ValueForm};

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
const RESPONSE: &[&str] = &["body", "status"];
const STATE: &[&str] = &["cursor", "last_success_at"];

impl Parser<'_> {
    /// Parses the rest of a path whose first word, at `offset`, has been read.
    pub(super) fn path(&mut self, word: &str, offset: usize) -> ParseResult<Path> {
        let Some(root) = Root::parse(word) else {
            self.position = offset;
            let names = Root::ALL.map(Root::as_str);
            let suggestion = suggestion(word, &names);
            return Err(self.unexpected(&format!(
                "one of the roots {}{suggestion}",
                names.join(", ")
            )));
        };
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
        self.references
            .definition_faults
            .extend(unknown_member(root, &segments, offsets));
        let path = rewrite(root, segments);
        self.references.root(path.root);
        match (path.root, path.segments.first()) {
            (Root::Steps, Some(Segment::Name(name))) => {
                self.references.steps.push(Reference {
                    name: name.clone(),
                    offset: offsets[0],
                });
            }
            (Root::Instance, first) => {
                let offset = if first.is_some() { offsets[0] } else { offset };
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
            (Root::Source | Root::Steps | Root::Target | Root::Item | Root::State, _) => {}
        }
        Ok(path)
    }

    fn segment(&mut self) -> ParseResult<Option<Segment>> {
        match self.peek() {
            Some('.') => {
                self.position += 1;
                let name = self.word();
                if name.is_empty() {
                    return Err(self.unexpected("a name"));
                }
                Ok(Some(Segment::Name(name.to_owned())))
            }
            Some('[') => {
                self.position += 1;
                self.skip_whitespace();
                let segment = self.bracketed()?;
                if !self.rest().starts_with(']') {
                    return Err(self.unexpected("`]`"));
                }
                self.position += 1;
                Ok(Some(segment))
            }
            Some(_) | None => Ok(None),
        }
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
}

/// Rewrites `trigger.body` and `trigger.payload` to the payload, and the names of headers to lower
/// case.
fn rewrite(root: Root, mut segments: Vec<Segment>) -> Path {
    let is = |segment: Option<&Segment>, name: &str| {
        matches!(
            segment,
            Some(Segment::Name(found)) if found == name
        )
    };
    if root == Root::Trigger && (is(segments.first(), "body") || is(segments.first(), "payload")) {
        segments.remove(0);
        return Path {
            root: Root::Source,
            segments,
            slot: None,
        };
    }
    if root == Root::Trigger
        && is(segments.first(), "headers")
        && let Some(Segment::Name(header)) = segments.get_mut(1)
    {
        header.make_ascii_lowercase();
    }
    Path {
        root,
        segments,
        slot: None,
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
        Root::Target => {
            check(0, "target", TARGET).or_else(|| check(1, "target.response", RESPONSE))
        }
        Root::Steps => check(1, &format!("the step {}", name(0)?), STEP),
        Root::Source | Root::Instance | Root::Item => None,
    }
}

/// Returns the length of the name that was just read.
fn name_length(segment: &Segment) -> usize {
    match segment {
        Segment::Name(name) => name.len(),
        Segment::Index(_) | Segment::Each => 0,
    }
}
