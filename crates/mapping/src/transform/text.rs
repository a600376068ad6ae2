//! Transforms of text. Numbers and booleans are taken as their text.

use std::borrow::Cow;

use super::{BoundedText, TransformResult, refused};
use crate::EvaluationError;
use crate::evaluate::Environment;
use crate::node::Operand;
use crate::value::Value;

/// Returns the text of a value that has one.
pub(super) fn of<'v>(value: &'v Value) -> Result<Cow<'v, str>, EvaluationError> {
    value
        .text()
        .ok_or_else(|| refused(value, "a string, a number or a boolean"))
}

pub(super) fn replace<'s>(value: &Value<'s>, from: &str, to: &str) -> TransformResult<'s> {
    let text = of(value)?;
    let mut replaced = BoundedText::default();
    let mut end = 0;
    for (index, found) in text.match_indices(from) {
        replaced.push(&text[end..index])?;
        replaced.push(to)?;
        end = index + found.len();
    }
    replaced.push(&text[end..])?;
    Ok(Value::plain(replaced.into_text()))
}

/// Takes a part of a text by its characters. A negative start counts from the end.
pub(super) fn substring<'s>(
    value: &Value<'s>,
    start: i64,
    length: Option<usize>,
) -> TransformResult<'s> {
    let text = of(value)?;
    let skipped = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => {
            let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
            text.chars().count().saturating_sub(from_end)
        }
    };
    Ok(Value::plain(
        text.chars()
            .skip(skipped)
            .take(length.unwrap_or(usize::MAX))
            .collect::<String>(),
    ))
}

/// Appends operands to a text. Missing values add nothing.
pub(super) fn concat<'s>(
    value: &Value<'s>,
    operands: &'s [Operand],
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let mut text = BoundedText::default();
    text.push(&of(value)?)?;
    for operand in operands {
        let operand = environment.operand(operand)?;
        if !operand.is_missing() {
            environment.effort.read(operand.size());
            environment.effort.check()?;
            text.push(&of(&operand)?)?;
        }
    }
    Ok(Value::plain(text.into_text()))
}

/// Masks all but the last `keep` characters. A text that has no more than those is masked whole.
pub(super) fn mask<'s>(value: &Value<'s>, keep: usize) -> TransformResult<'s> {
    let text = of(value)?;
    let count = text.chars().count();
    let masked = if count > keep { count - keep } else { count };
    let mut out = "*".repeat(masked);
    out.extend(text.chars().skip(masked));
    Ok(Value::plain(out))
}
