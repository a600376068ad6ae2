//! Rules of types, options, numbers and strings.

use std::cmp::Ordering;

use super::{Fits, Run, need};
use crate::document::{Kind, Value};
use crate::node::{Bounds, NumberRules, Options, StringRules, Types};
use crate::pattern::Pattern;

/// Test of how a number stands to a bound.
type Comparison = fn(Ordering) -> bool;

impl Run<'_> {
    pub(super) fn option(&mut self, options: &Options, value: Value<'_>) -> Fits {
        if !self.spend(value.raw().len() as u64 / 4) {
            return false;
        }
        let one = options.strings.len() + options.others.len() == 1;
        options.has(value)
            || self.fail(value, || {
                format!(
                    "must be {}{}",
                    if one { "" } else { "one of " },
                    options.shown
                )
            })
    }

    pub(super) fn number(&mut self, rules: &NumberRules, value: Value<'_>) -> Fits {
        let Some(number) = value.as_number() else {
            return true;
        };
        if !self.spend(value.raw().len() as u64 / 8) {
            return false;
        }
        let mut valid = true;
        let comparisons: [(_, Comparison, _); 4] = [
            (&rules.minimum, Ordering::is_ge, "at least"),
            (&rules.exclusive_minimum, Ordering::is_gt, "more than"),
            (&rules.maximum, Ordering::is_le, "at most"),
            (&rules.exclusive_maximum, Ordering::is_lt, "less than"),
        ];
        for (limit, fits, words) in comparisons {
            if let Some(limit) = limit
                && !fits(number.compare(limit))
            {
                need!(
                    self,
                    valid,
                    self.fail(value, || format!("must be {words} {}", limit.text))
                );
            }
        }
        if let Some(divisor) = &rules.multiple_of
            && !number.is_multiple_of(divisor)
        {
            need!(
                self,
                valid,
                self.fail(value, || format!("must be a multiple of {}", divisor.text))
            );
        }
        valid
    }

    pub(super) fn string(&mut self, rules: &StringRules, value: Value<'_>) -> Fits {
        let Some(text) = value.as_str() else {
            return true;
        };
        let mut valid = true;
        if rules.length != Bounds::default() {
            if !self.spend(text.len() as u64 / 16) {
                return false;
            }
            let fits = if text.is_empty() && rules.length.min == Some(1) {
                self.fail(value, || "must not be empty".to_owned())
            } else {
                let length = text.chars().count() as u64;
                self.size(value, rules.length, length, "character")
            };
            need!(self, valid, fits);
        }
        if let Some(pattern) = &rules.pattern
            && !self.matches(pattern, &text)
        {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must match the pattern {}",
                    cut(pattern.text())
                ))
            );
        }
        if let Some(format) = rules.format {
            if !self.spend(text.len() as u64 / 4) {
                return false;
            }
            if !format.fits(&text) {
                need!(
                    self,
                    valid,
                    self.fail(value, || format!("must have the format {}", format.name))
                );
            }
        }
        valid
    }

    /// Checks the number of things of a value.
    pub(super) fn size(
        &mut self,
        value: Value<'_>,
        bounds: Bounds,
        count: u64,
        thing: &str,
    ) -> Fits {
        let mut valid = true;
        if let Some(min) = bounds.min.filter(|min| count < *min) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must have at least {}",
                    counted(min, thing)
                ))
            );
        }
        if let Some(max) = bounds.max.filter(|max| count > *max) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must have at most {}",
                    counted(max, thing)
                ))
            );
        }
        valid
    }

    pub(super) fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        self.spend(pattern.work(text)) && pattern.is_match(text)
    }
}

pub(super) fn wrong_type(types: Types, value: Value<'_>) -> String {
    let expected: Vec<&str> = types
        .names()
        .map(|name| match name {
            "boolean" => "a boolean",
            "integer" => "an integer",
            "number" => "a number",
            "string" => "a string",
            "array" => "a list",
            "object" => "an object",
            name => name,
        })
        .collect();
    let found = value.kind().describe();
    match expected.as_slice() {
        ["an integer"] if value.kind() == Kind::Number => "must be an integer".to_owned(),
        [] => "must be of a type that there is none of".to_owned(),
        expected => format!("must be {}, not {found}", expected.join(" or ")),
    }
}

pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Returns a text of the schema, cut where it is long.
pub(super) fn cut(text: &str) -> String {
    const MAX_CHARACTERS: usize = 200;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
