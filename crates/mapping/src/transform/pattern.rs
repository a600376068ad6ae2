//! Regular expressions in the syntax of the crate `regex`, which run in linear time.

use std::sync::Arc;

use regex_automata::meta::{self, Regex};

use super::{TransformResult, text};
use crate::environment::Environment;
use crate::value::Value;

/// Greatest number of characters of a pattern.
const MAX_CHARACTERS: usize = 1_000;
/// Greatest size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 1024 * 1024;
/// Capacity of the cache of the lazy automaton of one pattern in one thread, in bytes.
const CACHE_CAPACITY: usize = 256 * 1024;
/// Bytes of a compiled pattern for which a byte of text is charged one step more.
const BYTES_PER_STEP: usize = 256;

/// A compiled pattern. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Arc<Regex>);

impl Pattern {
    /// Compiles a pattern. The error is a message.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let length = pattern.chars().count();
        if length > MAX_CHARACTERS {
            return Err(format!(
                "a regular expression of {length} characters, expected at most {MAX_CHARACTERS}"
            ));
        }
        let hir = regex_syntax::parse(pattern).map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let reason = last.strip_prefix("error: ").unwrap_or(last);
            format!("found `{pattern}`, expected a regular expression: {reason}")
        })?;
        let config = Regex::config()
            .nfa_size_limit(Some(MAX_COMPILED))
            .hybrid_cache_capacity(CACHE_CAPACITY);
        let regex = meta::Builder::new()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|_| {
                "a regular expression that takes more than 1 MiB when it is compiled".to_owned()
            })?;
        Ok(Self(Arc::new(regex)))
    }

    /// Charges a search in a text.
    fn charge(
        &self,
        text: &str,
        environment: &Environment<'_>,
    ) -> Result<(), crate::EvaluationError> {
        let steps = 1 + self.0.memory_usage() / BYTES_PER_STEP;
        environment.spend(text.len() as u64 * steps as u64)
    }

    /// Returns whether the pattern is anywhere in a text.
    pub(super) fn matches<'s>(
        &self,
        value: &Value<'s>,
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        let text = text::of(value)?;
        self.charge(&text, environment)?;
        Ok(Value::Bool(self.0.is_match(text.as_bytes())))
    }

    /// Returns the first group of the first match, or all of it when the pattern has no groups.
    pub(super) fn extract<'s>(
        &self,
        value: &Value<'s>,
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        let text = text::of(value)?;
        self.charge(&text, environment)?;
        let mut captures = self.0.create_captures();
        self.0.captures(text.as_bytes(), &mut captures);
        let group = usize::from(captures.group_len() > 1);
        let found = captures
            .get_group(group)
            .and_then(|span| text.get(span.range()));
        Ok(found.map_or(Value::Undefined, |found| Value::plain(found.to_owned())))
    }
}
