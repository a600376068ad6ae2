//! Rules of objects, their members and names.

use super::evaluated::EvaluatedSet;
use super::scalar::counted;
use super::{Fits, Run, need};
use crate::document::{Key, Value};
use crate::node::{Id, ObjectRules};

impl Run<'_> {
    pub(super) fn object(
        &mut self,
        rules: &ObjectRules,
        object: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut valid = true;
        let mut present = Present::new(rules.required.len());
        let mut count = 0_u64;
        for (place, (key, member)) in object.members().enumerate() {
            count += 1;
            if !self.spend(1) {
                return false;
            }
            let mut is_evaluated = false;
            if let Some(name) = rules.names.find(key) {
                if let Some(required) = name.required {
                    present.add(required);
                }
                if let Some(schema) = name.schema {
                    is_evaluated = true;
                    need!(self, valid, self.visit(schema, member, None));
                }
            }
            for (pattern, schema) in &rules.patterns {
                if self.matches(pattern, &key.name()) {
                    is_evaluated = true;
                    need!(self, valid, self.visit(*schema, member, None));
                }
            }
            if !is_evaluated && let Some(schema) = rules.additional {
                is_evaluated = true;
                need!(self, valid, self.unexpected(schema, member));
            }
            if let Some(schema) = rules.property_names {
                need!(self, valid, self.name(schema, key));
            }
            if let Some(track) = track.as_deref_mut().filter(|_| is_evaluated) {
                track.add(place);
            }
        }
        if !present.has_all() {
            for (place, name) in rules.required.iter().enumerate() {
                if !present.has(place) {
                    need!(
                        self,
                        valid,
                        self.note(object, Some(name), || "is required".to_owned())
                    );
                }
            }
        }
        if let Some(min) = rules.min.filter(|min| count < *min) {
            need!(
                self,
                valid,
                self.fail(object, || format!(
                    "must have at least {}",
                    counted(min, "member")
                ))
            );
        }
        if let Some(max) = rules.max.filter(|max| count > *max) {
            need!(
                self,
                valid,
                self.fail(object, || format!(
                    "must have at most {}",
                    counted(max, "member")
                ))
            );
        }
        need!(self, valid, self.dependencies(rules, object, count, track));
        valid
    }

    /// Checks a member that no rule knows by its name.
    pub(super) fn unexpected(&mut self, schema: Id, member: Value<'_>) -> Fits {
        if self.program.nodes[schema as usize].verdict == Some(false) {
            return self.fail(member, || "is not known here".to_owned());
        }
        self.visit(schema, member, None)
    }

    fn name(&mut self, schema: Id, key: Key<'_>) -> Fits {
        let was_name = std::mem::replace(&mut self.is_name, true);
        let fits = self.visit(schema, key.as_value(), None);
        self.is_name = was_name;
        fits
    }

    fn dependencies(
        &mut self,
        rules: &ObjectRules,
        object: Value<'_>,
        count: u64,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut valid = true;
        for dependency in &rules.dependencies {
            if !self.spend((1 + dependency.required.len() as u64).saturating_mul(count)) {
                return false;
            }
            if object.member(&dependency.name).is_none() {
                continue;
            }
            for name in &dependency.required {
                if object.member(name).is_none() {
                    need!(
                        self,
                        valid,
                        self.note(object, Some(name), || {
                            format!(
                                "is required when {} is there",
                                super::scalar::cut(&dependency.name)
                            )
                        })
                    );
                }
            }
            if let Some(schema) = dependency.schema {
                need!(
                    self,
                    valid,
                    self.visit(schema, object, track.as_deref_mut())
                );
            }
        }
        valid
    }
}

/// Set of the required members that are present.
struct Present {
    missing: usize,
    few: u64,
    many: Vec<bool>,
}

impl Present {
    fn new(required: usize) -> Self {
        Self {
            missing: required,
            few: 0,
            many: if required > 64 {
                vec![false; required]
            } else {
                Vec::new()
            },
        }
    }

    /// Adds a member. Each is added once, as each key comes once.
    fn add(&mut self, place: usize) {
        self.missing -= 1;
        match self.many.get_mut(place) {
            Some(present) => *present = true,
            None => self.few |= 1 << place,
        }
    }

    fn has(&self, place: usize) -> bool {
        self.many
            .get(place)
            .copied()
            .unwrap_or_else(|| self.few & 1 << place != 0)
    }

    fn has_all(&self) -> bool {
        self.missing == 0
    }
}
