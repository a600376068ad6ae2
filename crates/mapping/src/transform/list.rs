//! Transforms of lists and objects. Both are JSON text, and their parts stay as they stand in it.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{BoundedText, TransformResult, refused, text};
use crate::value::{Value, canonical};
use crate::{Effort, EvaluationError, json};
use kanat_json::Decimal;

/// Greatest number of items that `split` gives.
const MAX_ITEMS: usize = 1_000_000;

/// Steps charged for finding the place of an item among many others.
pub(super) const SORT_STEPS: u64 = 300;

/// Splits a text; an empty separator splits it into characters.
pub(super) fn split<'s>(value: &Value<'s>, separator: &str) -> TransformResult<'s> {
    let text = text::of(value)?;
    let mut parts = Vec::with_capacity(text.len() + 16);
    let mut count = 0;
    let mut push = |part: &str| {
        count += 1;
        parts.push(if count == 1 { b'[' } else { b',' });
        json::write_string(part, &mut parts);
        if count > MAX_ITEMS {
            Err(EvaluationError::mapping(format!(
                "more than {MAX_ITEMS} parts"
            )))
        } else {
            Ok(())
        }
    };
    if separator.is_empty() {
        text.char_indices()
            .try_for_each(|(index, letter)| push(&text[index..index + letter.len_utf8()]))?;
    } else {
        text.split(separator).try_for_each(push)?;
    }
    if parts.is_empty() {
        parts.push(b'[');
    }
    parts.push(b']');
    Ok(String::from_utf8(parts).map_or(Value::Undefined, Value::from_owned_json))
}

/// Joins items. Null items add nothing between their separators.
pub(super) fn join<'s>(value: &Value<'s>, separator: &str, effort: &Effort) -> TransformResult<'s> {
    let mut joined = BoundedText::default();
    let items = effort.items(of(value)?).map(Value::from_json);
    for (index, item) in items.enumerate() {
        if index > 0 {
            joined.push(separator)?;
        }
        if !item.is_missing() {
            effort.read(item.size());
            joined.push(&text::of(&item)?)?;
        }
    }
    Ok(Value::plain(joined.into_text()))
}

/// Counts the characters of a string, the items of a list, or the keys of an object.
pub(super) fn length<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let length = match value {
        Value::String(text) => text.decode().chars().count(),
        Value::List(list) => effort.items(list).count(),
        Value::Object(object) => effort.members(object).len(),
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => {
            return Err(refused(value, "a string, a list or an object"));
        }
    };
    Ok(Value::number(length.to_string()))
}

/// Returns an item of a list; undefined for an empty one.
pub(super) fn first<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    of(value).map(|list| Value::from_part(list, |list| effort.items(list).next()))
}

/// Returns an item of a list; undefined for an empty one.
pub(super) fn last<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    of(value).map(|list| Value::from_part(list, |list| effort.items(list).last()))
}

/// Keeps the first of equal items.
pub(super) fn unique<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let mut seen = HashSet::new();
    let items = effort
        .items(of(value)?)
        .filter(|item| seen.insert(canonical(&Value::from_json(item), effort)));
    Ok(rebuild(items))
}

/// Place of a value in an order: numbers by value, then strings by their characters, then booleans,
/// then nulls.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Number(Decimal),
    String(String),
    Bool(bool),
    Null,
}

pub(super) fn rank(value: &Value) -> Result<Rank, EvaluationError> {
    match value {
        Value::Number(digits) => Ok(Rank::Number(Decimal::parse(digits).unwrap_or_default())),
        Value::String(text) => Ok(Rank::String(text.decode().into_owned())),
        Value::Bool(value) => Ok(Rank::Bool(*value)),
        Value::Null | Value::Undefined => Ok(Rank::Null),
        Value::List(_) | Value::Object(_) => {
            Err(refused(value, "numbers, strings and booleans in the list"))
        }
    }
}

/// Sorts by rank.
pub(super) fn sort<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let items = effort.items(of(value)?).map(|item| {
        effort.read(item.len());
        effort.spend(SORT_STEPS);
        Ok((rank(&Value::from_json(item))?, item))
    });
    let mut items = items.collect::<Result<Vec<_>, EvaluationError>>()?;
    items.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(rebuild(items.into_iter().map(|(_, item)| item)))
}

pub(super) fn keys<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    Ok(rebuild(
        effort
            .members(object(value)?)
            .into_iter()
            .map(|(key, _)| key),
    ))
}

pub(super) fn values<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    Ok(rebuild(
        effort
            .members(object(value)?)
            .into_iter()
            .map(|(_, value)| value),
    ))
}

pub(super) fn of<'v, 's>(value: &'v Value<'s>) -> Result<&'v Cow<'s, str>, EvaluationError> {
    match value {
        Value::List(list) => Ok(list),
        _ => Err(refused(value, "a list")),
    }
}

fn object<'v, 's>(value: &'v Value<'s>) -> Result<&'v Cow<'s, str>, EvaluationError> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(refused(value, "an object")),
    }
}

fn rebuild<'v, 's>(items: impl Iterator<Item = &'v str>) -> Value<'s> {
    let mut list = String::from("[");
    for item in items {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(item);
    }
    list.push(']');
    Value::from_owned_json(list)
}
