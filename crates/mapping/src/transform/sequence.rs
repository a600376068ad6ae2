//! Transforms of lists that look at the elements as they are.

use std::cmp::Ordering;

use super::{BoundedList, TransformResult, list, refused};
use crate::environment::Environment;
use crate::node::Node;
use crate::value::{Value, order};
use crate::{Effort, EvaluationError, evaluate};
use kanat_json::Decimal;

pub(super) fn min<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    extreme(value, Ordering::Less, effort)
}

pub(super) fn max<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    extreme(value, Ordering::Greater, effort)
}

/// Returns the first element that is on that side of all others; undefined when there is none.
fn extreme<'s>(value: &Value<'s>, side: Ordering, effort: &Effort) -> TransformResult<'s> {
    const EXPECTED: &str = "numbers alone or strings alone in the list";
    let list = list::of(value)?;
    let mut best: Option<(&str, Value)> = None;
    for item in effort.items(list) {
        let candidate = Value::from_json(item);
        match candidate {
            Value::Null | Value::Undefined => continue,
            Value::Number(_) | Value::String(_) => {}
            Value::Bool(_) | Value::List(_) | Value::Object(_) => {
                return Err(refused(&candidate, EXPECTED));
            }
        }
        let is_better = match &best {
            None => true,
            Some((_, known)) => match order(&candidate, known, effort) {
                Some(found) => found == side,
                None => return Err(refused(&candidate, EXPECTED)),
            },
        };
        if is_better {
            best = Some((item, candidate));
        }
    }
    effort.check()?;
    let best = best.map(|(item, _)| item.to_owned());
    Ok(best.map_or(Value::Undefined, Value::from_owned_json))
}

/// Opens the lists among the elements.
pub(super) fn flatten<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let mut result = BoundedList::new(effort);
    for item in effort.items(list::of(value)?) {
        if item.starts_with('[') {
            for inner in effort.items(item) {
                result.push_json(inner)?;
            }
        } else {
            result.push_json(item)?;
        }
    }
    effort.check()?;
    Ok(result.into_value())
}

pub(super) fn reverse<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let mut result = BoundedList::new(effort);
    let items: Vec<_> = effort.items(list::of(value)?).collect();
    for item in items.into_iter().rev() {
        result.push_json(item)?;
    }
    effort.check()?;
    Ok(result.into_value())
}

/// Returns the elements from a place to before another. Negative places count from the end.
pub(super) fn slice<'s>(
    value: &Value<'s>,
    arguments: &'s [Node],
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let effort = environment.effort;
    let list = list::of(value)?;
    let held = effort.hold(value)?;
    let from = place(&environment.argument(arguments.first())?)?;
    let to = match arguments.get(1) {
        Some(argument) => Some(place(&environment.argument(Some(argument))?)?),
        None => None,
    };
    drop(held);
    let length = effort.items(list).count();
    effort.check()?;
    let cut = |place: i64| {
        let distance = usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX);
        if place < 0 {
            length.saturating_sub(distance)
        } else {
            distance.min(length)
        }
    };
    let (from, to) = (cut(from), to.map_or(length, cut));
    let mut result = BoundedList::new(effort);
    for item in effort.items(list).take(to).skip(from) {
        result.push_json(item)?;
    }
    effort.check()?;
    Ok(result.into_value())
}

/// Returns a whole number as a place; what is beyond all lists is cut.
fn place(value: &Value) -> Result<i64, EvaluationError> {
    let expected = || {
        EvaluationError::mapping(format!(
            "expected whole numbers as places, found {}",
            match value {
                Value::Number(digits) => digits.chars().take(40).collect::<String>(),
                other => other.type_name().to_owned(),
            }
        ))
    };
    let Value::Number(digits) = value else {
        return Err(expected());
    };
    let number = Decimal::parse(digits).filter(Decimal::is_whole);
    let number = number.ok_or_else(expected)?;
    let is_negative = !number.is_zero() && !number.is_positive();
    let size = number.abs().to_count().unwrap_or(u64::MAX);
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    Ok(if is_negative { -size } else { size })
}

/// Returns whether the argument is `in` the value.
pub(super) fn contains<'s>(
    value: &Value<'s>,
    arguments: &'s [Node],
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let effort = environment.effort;
    let held = effort.hold(value)?;
    let part = environment.argument(arguments.first())?;
    drop(held);
    let found = evaluate::contains(value, &part, effort);
    effort.check()?;
    Ok(Value::Bool(found))
}
