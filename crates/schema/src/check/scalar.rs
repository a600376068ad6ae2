//! Rules of types, options, numbers and strings.

use std::cmp::Ordering;

use super::{Fits, Run, need};
use crate::document::{Kind, Value};
use crate::node::{NumberRules, Options, StringRules, Types};
use crate::number::{Limit, Number};
use crate::pattern::Pattern;

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
        let compares = |limit: &Option<Limit>, fits: fn(Ordering) -> bool| {
            limit
                .as_ref()
                .is_none_or(|limit| fits(number.compare(limit)))
        };
        let text = |limit: &Option<Limit>| {
            limit
                .as_ref()
                .map_or_else(String::new, |limit| limit.text.to_string())
        };
        if !compares(&rules.minimum, Ordering::is_ge) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must be at least {}",
                    text(&rules.minimum)
                ))
            );
        }
        if !compares(&rules.exclusive_minimum, Ordering::is_gt) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must be more than {}",
                    text(&rules.exclusive_minimum)
                ))
            );
        }
        if !compares(&rules.maximum, Ordering::is_le) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must be at most {}",
                    text(&rules.maximum)
                ))
            );
        }
        if !compares(&rules.exclusive_maximum, Ordering::is_lt) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must be less than {}",
                    text(&rules.exclusive_maximum)
                ))
            );
        }
        if !is_multiple(number, &rules.multiple_of) {
            need!(
                self,
                valid,
                self.fail(value, || format!(
                    "must be a multiple of {}",
                    text(&rules.multiple_of)
                ))
            );
        }
        valid
    }

    pub(super) fn string(&mut self, rules: &StringRules, value: Value<'_>) -> Fits {
        let Some(text) = value.as_str() else {
            return true;
        };
        let mut valid = true;
        if rules.min_length.is_some() || rules.max_length.is_some() {
            if !self.spend(text.len() as u64 / 16) {
                return false;
            }
            let length = text.chars().count() as u64;
            if let Some(min_length) = rules.min_length.filter(|min_length| length < *min_length) {
                need!(
                    self,
                    valid,
                    self.fail(value, || match min_length {
                        1 => "must not be empty".to_owned(),
                        min_length => format!("must have at least {min_length} characters"),
                    })
                );
            }
            if let Some(max_length) = rules.max_length.filter(|max_length| length > *max_length) {
                need!(
                    self,
                    valid,
                    self.fail(value, || format!(
                        "must have at most {}",
                        counted(max_length, "character")
                    ))
                );
            }
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

    pub(super) fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        self.spend(pattern.work(text)) && pattern.is_match(text)
    }
}

fn is_multiple(number: Number<'_>, divisor: &Option<Limit>) -> bool {
    divisor
        .as_ref()
        .is_none_or(|divisor| number.is_multiple_of(divisor))
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
