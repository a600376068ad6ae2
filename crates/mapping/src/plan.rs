//! Plans: finding the values of many paths in one pass over a document.
//!
//! # From text to values
//!
//! 1. `parse` turns the text of an expression into a tree of `node::Node`s. Every path in it is a
//!    [`Path`](crate::path::Path): a root, such as `source`, and segments, such as `.items[0].sku`.
//! 2. A mapping has many expressions, which read the same payload. When it is built, it makes a
//!    [`Plan`] for each document that it reads: one for the payload, which covers inner mappings,
//!    and one in each inner mapping for its item. The plan visits the paths of all nodes and merges
//!    their segments into one tree of steps, so that paths with a common beginning share its steps.
//! 3. A *slot* is an index into the values that a plan finds, one for each distinct path. The plan
//!    writes it into [`Path::slot`](crate::path::Path). Segments from the first `[*]` on are not
//!    planned: they lead to many values, and paths that differ only there share a slot.
//! 4. For a message, [`Plan::find`] walks through the document once and fills the slots with slices
//!    of it. Values that no path leads to are skipped.
//! 5. An evaluation takes the slice in the slot of a path, and follows only the segments that are
//!    left with [`path::follow`](crate::path::follow). A path without a slot, as in an expression
//!    outside of a mapping, is followed from its root.
//!
//! The slots of all steps below a step are contiguous. When a key comes again in an object, the
//! plan clears that range, and the last value counts.

use std::ops::Range;

use crate::effort::WALKED;
use crate::path::{Segment, Visit};
use crate::references::Root;
use crate::{Effort, json};

/// Greatest number of names that are compared one by one; more are searched.
const MAX_COMPARED_NAMES: usize = 16;

/// Number of steps of members and slots after which they are charged.
const CHARGE_INTERVAL: u64 = 10_000;

/// Tree of the paths from one root.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    slots: usize,
}

#[derive(Debug, Clone, Default)]
struct Step {
    /// Slot of the value at this step, if a path ends here.
    slot: Option<usize>,
    /// Slots of this step and of all steps below it.
    slots: Range<usize>,
    /// Steps below by name, in order.
    names: Vec<(String, usize)>,
    /// Steps below by index, in order.
    indexes: Vec<(usize, usize)>,
}

impl Plan {
    /// Plans all paths from `root` that `each_path` visits, and sets the slot of each.
    pub fn new(root: Root, each_path: &mut dyn FnMut(&mut Visit)) -> Self {
        let mut plan = Self {
            steps: vec![Step::default()],
            slots: 0,
        };
        let mut ends = Vec::new();
        each_path(&mut |path| {
            if path.root == root && path.is_planned {
                ends.push(plan.insert(path.split().0));
            }
        });
        for end in &ends {
            plan.steps[*end].slot = Some(0);
        }
        plan.number(0);
        let mut ends = ends.into_iter();
        each_path(&mut |path| {
            if path.root == root && path.is_planned {
                path.slot = ends.next().and_then(|end| plan.steps[end].slot);
            }
        });
        plan
    }

    /// Fills `slots` with the values of the paths in `document`. Of equal keys, the last counts.
    /// The values mean nothing when no effort is left.
    pub fn find<'s>(&self, document: &'s str, slots: &mut Vec<Option<&'s str>>, effort: &Effort) {
        slots.clear();
        slots.resize(self.slots, None);
        if self.slots > 0 {
            let start = json::skip_whitespace(document.as_bytes(), 0);
            effort.pass(document.len());
            self.visit(0, document, start, slots, effort);
        }
    }

    fn insert(&mut self, segments: &[Segment]) -> usize {
        let mut at = 0;
        for segment in segments {
            let new = self.steps.len();
            let step = &mut self.steps[at];
            at = match segment {
                Segment::Name(name) => {
                    match step.names.binary_search_by(|(known, _)| known.cmp(name)) {
                        Ok(place) => step.names[place].1,
                        Err(place) => {
                            step.names.insert(place, (name.clone(), new));
                            new
                        }
                    }
                }
                Segment::Index(index) => match step
                    .indexes
                    .binary_search_by_key(index, |(known, _)| *known)
                {
                    Ok(place) => step.indexes[place].1,
                    Err(place) => {
                        step.indexes.insert(place, (*index, new));
                        new
                    }
                },
                Segment::Each => return at,
            };
            if at == new {
                self.steps.push(Step::default());
            }
        }
        at
    }

    /// Numbers the slots so that those below a step are contiguous. Recurses as deep as the longest
    /// path.
    fn number(&mut self, at: usize) {
        let first = self.slots;
        if let Some(slot) = &mut self.steps[at].slot {
            *slot = first;
            self.slots += 1;
        }
        let step = &self.steps[at];
        let below: Vec<usize> = step
            .names
            .iter()
            .map(|(_, below)| *below)
            .chain(step.indexes.iter().map(|(_, below)| *below))
            .collect();
        for below in below {
            self.number(below);
        }
        self.steps[at].slots = first..self.slots;
    }

    /// Visits the value that begins at `start` and returns its end. Recurses as deep as the longest
    /// path.
    fn visit<'s>(
        &self,
        at: usize,
        text: &'s str,
        start: usize,
        slots: &mut [Option<&'s str>],
        effort: &Effort,
    ) -> usize {
        let step = &self.steps[at];
        // An earlier member of the same name may have filled them.
        slots[step.slots.clone()].fill(None);
        let bytes = text.as_bytes();
        let end = match bytes.get(start) {
            Some(b'{') if !step.names.is_empty() => {
                self.visit_object(step, text, start, slots, effort)
            }
            Some(b'[') if !step.indexes.is_empty() => {
                self.visit_list(step, text, start, slots, effort)
            }
            Some(_) | None => json::skip_value(bytes, start),
        };
        if let Some(slot) = step.slot {
            slots[slot] = text.get(start..end);
        }
        end
    }

    fn visit_object<'s>(
        &self,
        step: &Step,
        text: &'s str,
        start: usize,
        slots: &mut [Option<&'s str>],
        effort: &Effort,
    ) -> usize {
        let bytes = text.as_bytes();
        let mut passed = 0;
        let mut position = start + 1;
        loop {
            let key = json::skip_whitespace(bytes, position);
            if bytes.get(key) != Some(&b'"') {
                effort.spend(passed);
                return key + 1;
            }
            let (name, key_end) = json::read_string(text, key);
            let value = json::skip_colon(bytes, key_end);
            passed += WALKED;
            let end = match step.named(&name) {
                Some(below) => {
                    passed += self.steps[below].slots.len() as u64;
                    self.visit(below, text, value, slots, effort)
                }
                None => json::skip_value(bytes, value),
            };
            if end <= value {
                return bytes.len();
            }
            if passed > CHARGE_INTERVAL {
                if !effort.spend(passed) {
                    return bytes.len();
                }
                passed = 0;
            }
            position = json::skip_comma(bytes, end);
        }
    }

    fn visit_list<'s>(
        &self,
        step: &Step,
        text: &'s str,
        start: usize,
        slots: &mut [Option<&'s str>],
        effort: &Effort,
    ) -> usize {
        let bytes = text.as_bytes();
        let mut position = start + 1;
        for index in 0.. {
            let item = json::skip_whitespace(bytes, position);
            if matches!(bytes.get(item), Some(b']') | None) {
                effort.spend(WALKED * index as u64);
                return item + 1;
            }
            let end = match step
                .indexes
                .binary_search_by_key(&index, |(wanted, _)| *wanted)
            {
                Ok(place) => self.visit(step.indexes[place].1, text, item, slots, effort),
                Err(_) => json::skip_value(bytes, item),
            };
            if end <= item {
                break;
            }
            position = json::skip_comma(bytes, end);
        }
        bytes.len()
    }
}

impl Step {
    /// Returns the step below of that name.
    fn named(&self, wanted: &str) -> Option<usize> {
        if self.names.len() <= MAX_COMPARED_NAMES {
            return self
                .names
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, below)| *below);
        }
        let place = self
            .names
            .binary_search_by(|(name, _)| name.as_str().cmp(wanted))
            .ok()?;
        Some(self.names[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lists;
    use crate::evaluate::CompiledExpression;

    /// Compares the values that the paths find in one pass with the one that each finds by itself.
    #[track_caller]
    fn check(document: &str, paths: &[&str], expected: &[Option<&str>]) {
        let mut compiled: Vec<_> = paths
            .iter()
            .map(|path| CompiledExpression::parse(path, &Lists::default()).unwrap())
            .collect();
        let plan = Plan::new(Root::Source, &mut |visit| {
            compiled.iter_mut().for_each(|one| one.node.paths(visit))
        });
        let mut slots = Vec::new();
        plan.find(document, &mut slots, &Effort::default());
        for ((compiled, path), expected) in compiled.iter_mut().zip(paths).zip(expected) {
            compiled.node.paths(&mut |path| {
                let found = slots[path.slot.unwrap()];
                assert_eq!(found, *expected);
                let alone =
                    crate::path::follow(document.trim(), &path.segments, &Effort::default());
                assert_eq!(
                    alone,
                    found.map_or(crate::Value::Undefined, crate::Value::from_json)
                );
            });
            assert!(!path.is_empty());
        }
    }

    #[test]
    fn finds_all_paths_in_one_pass() {
        let document =
            r#" { "a" : {"b": [1, {"c": "x"}, 3 ], "d":1.10}, "e" : null , "\u0066":[] } "#;
        check(
            document,
            &[
                "source.a.b[1].c",
                "source.a.d",
                "source.a",
                "source.e",
                "source.f",
                "source.a.b[7]",
                "source.a.d.x",
            ],
            &[
                Some(r#""x""#),
                Some("1.10"),
                Some(r#"{"b": [1, {"c": "x"}, 3 ], "d":1.10}"#),
                Some("null"),
                Some("[]"),
                None,
                None,
            ],
        );
        check(
            "[[5]]",
            &["source[0][0]", "source[0]", "source.a"],
            &[Some("5"), Some("[5]"), None],
        );
        check("7", &["source", "source.a"], &[Some("7"), None]);
    }

    #[test]
    fn the_last_of_equal_keys_counts_with_all_below_it() {
        check(
            r#"{"a":{"b":1,"c":2},"a":{"c":3}}"#,
            &["source.a.b", "source.a.c"],
            &[None, Some("3")],
        );
    }

    #[test]
    fn finds_many_names() {
        let names: Vec<String> = (0..40).map(|n| format!("source.n{n}")).collect();
        let document = format!(
            "{{{}}}",
            (0..40)
                .map(|n| format!("\"n{n}\":{n}"))
                .collect::<Vec<_>>()
                .join(",")
        );
        let values: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let expected: Vec<_> = values.iter().map(|value| Some(value.as_str())).collect();
        check(
            &document,
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
            &expected,
        );
    }

    #[test]
    fn ends_on_text_that_is_not_json() {
        let mut compiled =
            CompiledExpression::parse("source.a.b | default(source.a[1])", &Lists::default())
                .unwrap();
        let plan = Plan::new(Root::Source, &mut |visit| compiled.node.paths(visit));
        for document in [
            "",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":{",
            "{\"a\":[",
            "{\"a\":[1",
            "{\"a\":[,",
            "{\"a\":}",
            "\"\\",
        ] {
            plan.find(document, &mut Vec::new(), &Effort::default());
        }
    }
}
