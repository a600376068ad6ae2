//! Rules of lists and their items.

use super::evaluated::EvaluatedSet;
use super::scalar::counted;
use super::{Fits, Run, need};
use crate::document::Value;
use crate::equality;
use crate::node::{Contains, ListRules};

impl Run<'_> {
    pub(super) fn list(
        &mut self,
        rules: &ListRules,
        list: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut valid = true;
        let count = list.count() as u64;
        if let Some(min) = rules.min.filter(|min| count < *min) {
            need!(
                self,
                valid,
                self.fail(list, || format!(
                    "must have at least {}",
                    counted(min, "item")
                ))
            );
        }
        if let Some(max) = rules.max.filter(|max| count > *max) {
            need!(
                self,
                valid,
                self.fail(list, || format!(
                    "must have at most {}",
                    counted(max, "item")
                ))
            );
        }
        if rules.rest.is_some() || !rules.first.is_empty() {
            for (place, item) in list.items().enumerate() {
                match rules.first.get(place).copied().or(rules.rest) {
                    Some(schema) => need!(self, valid, self.visit(schema, item, None)),
                    None => break,
                }
            }
            if let Some(track) = track.as_deref_mut() {
                track.add_first(rules.first.len());
                track.all |= rules.rest.is_some();
            }
        }
        if let Some(contains) = &rules.contains {
            need!(self, valid, self.contains(contains, list, track));
        }
        if rules.is_unique && count > 1 {
            if !self.spend(list.raw().len() as u64 / 2 + count) {
                return false;
            }
            if !equality::is_unique(list) {
                need!(
                    self,
                    valid,
                    self.fail(list, || "must not have the same item twice".to_owned())
                );
            }
        }
        valid
    }

    fn contains(
        &mut self,
        rules: &Contains,
        list: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut found = 0_u64;
        for (place, item) in list.items().enumerate() {
            if self.quietly(|run| run.visit(rules.schema, item, None)) {
                found += 1;
                if let Some(track) = track.as_deref_mut().filter(|_| rules.evaluates) {
                    track.add(place);
                }
            }
        }
        let mut valid = true;
        if found < rules.min {
            need!(
                self,
                valid,
                self.fail(list, || {
                    format!(
                        "must contain at least {} of the form that is asked for",
                        counted(rules.min, "item")
                    )
                })
            );
        }
        if let Some(max) = rules.max.filter(|max| found > *max) {
            need!(
                self,
                valid,
                self.fail(list, || {
                    format!(
                        "must contain at most {} of the form that is counted",
                        counted(max, "item")
                    )
                })
            );
        }
        valid
    }
}
