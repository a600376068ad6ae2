//! Transforms that evaluate an expression for each element of a list.

use std::collections::HashMap;

use super::number::Total;
use super::{BoundedList, TransformResult, list, refused};
use crate::EvaluationError;
use crate::environment::Environment;
use crate::node::Node;
use crate::value::{Value, canonical};

/// What becomes of the values that the expression has for the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elementwise {
    /// They are the result.
    Map,
    /// The elements for which they are true.
    Where,
    /// The elements in the order of the values.
    SortBy,
    /// Lists of the elements with equal values.
    GroupBy,
    /// Whether one of them is true.
    Any,
    /// Whether all of them are true.
    All,
    Sum,
}

/// Function that gets the elements and the values that the expression has for them, and returns
/// whether to go on.
type Visit<'v, 'l> = dyn FnMut(&'l str, Value<'_>) -> Result<bool, EvaluationError> + 'v;

impl Elementwise {
    pub(super) fn apply<'s>(
        self,
        value: &Value<'s>,
        arguments: &'s [Node],
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        let Some(node) = arguments.first() else {
            return Ok(Value::Undefined);
        };
        let list = match value {
            Value::List(list) => list,
            other => return Err(refused(other, "a list")),
        };
        let _held = environment.effort.hold(value)?;
        match self {
            Self::Map => map(list, node, environment),
            Self::Where => keep(list, node, environment),
            Self::SortBy => sort_by(list, node, environment),
            Self::GroupBy => group_by(list, node, environment),
            Self::Any => any(list, node, environment),
            Self::All => all(list, node, environment),
            Self::Sum => sum(list, node, environment),
        }
    }
}

/// Evaluates a node for each element of a list.
fn for_each<'s, 'l>(
    list: &'l str,
    node: &'s Node,
    environment: &Environment<'s>,
    visit: &mut Visit<'_, 'l>,
) -> Result<(), EvaluationError> {
    for (index, item) in environment.effort.items(list).enumerate() {
        let goes_on = {
            let element = environment.element(index, item, &[]);
            let value = node.evaluate(&environment.of_element(&element))?;
            visit(item, value)?
        };
        if !goes_on {
            return Ok(());
        }
    }
    environment.effort.check()
}

fn map<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let mut result = BoundedList::new(environment.effort);
    for_each(list, node, environment, &mut |_, value| {
        result.push(&value)?;
        Ok(true)
    })?;
    Ok(result.into_value())
}

fn keep<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let mut result = BoundedList::with_room_for(list.len(), environment.effort);
    for_each(list, node, environment, &mut |item, value| {
        if environment.holds(&value) {
            result.push_json(item)?;
        }
        Ok(true)
    })?;
    Ok(result.into_value())
}

fn any<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let mut holds = false;
    for_each(list, node, environment, &mut |_, value| {
        holds = environment.holds(&value);
        Ok(!holds)
    })?;
    Ok(Value::Bool(holds))
}

fn all<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let mut holds = true;
    for_each(list, node, environment, &mut |_, value| {
        holds = environment.holds(&value);
        Ok(holds)
    })?;
    Ok(Value::Bool(holds))
}

fn sum<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let mut total = Total::new(environment.effort);
    for (index, item) in environment.effort.items(list).enumerate() {
        let element = environment.element(index, item, &[]);
        total.add_operand(node.operand(&environment.of_element(&element))?)?;
    }
    environment.effort.check()?;
    total.into_value()
}

/// Bytes of memory that an element takes while elements are ordered or grouped, without its key.
const PER_ELEMENT: usize = 48;

fn sort_by<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let effort = environment.effort;
    let mut held = effort.hold_nothing();
    let mut ranks = Vec::new();
    for_each(list, node, environment, &mut |_, value| {
        held.add(PER_ELEMENT + value.size())?;
        effort.read(value.size());
        effort.spend(list::SORT_STEPS);
        ranks.push(list::rank(&value).map_err(|error| {
            EvaluationError::mapping(format!("a key to sort by: {}", error.message))
        })?);
        Ok(true)
    })?;
    let mut items: Vec<_> = ranks.into_iter().zip(effort.items(list)).collect();
    items.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut result = BoundedList::new(effort);
    for (_, item) in items {
        result.push_json(item)?;
    }
    Ok(result.into_value())
}

/// Elements with equal keys.
struct Group<'l> {
    /// JSON of the key that was met first.
    key: Vec<u8>,
    items: Vec<&'l str>,
}

fn group_by<'s>(list: &str, node: &'s Node, environment: &Environment<'s>) -> TransformResult<'s> {
    let effort = environment.effort;
    let mut held = effort.hold_nothing();
    let mut places = HashMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for_each(list, node, environment, &mut |item, value| {
        let next = groups.len();
        let place = *places.entry(canonical(&value, effort)).or_insert(next);
        if place == next {
            held.add(2 * (PER_ELEMENT + value.size()))?;
            let mut key = Vec::with_capacity(value.size() + 2);
            value.write_json(&mut key);
            let items = Vec::new();
            groups.push(Group { key, items });
        }
        held.add(PER_ELEMENT)?;
        groups[place].items.push(item);
        Ok(true)
    })?;
    let mut result = BoundedList::with_room_for(list.len() + groups.len() * PER_ELEMENT, effort);
    for group in groups {
        result.push_with(|json| group.write(json))?;
    }
    Ok(result.into_value())
}

impl Group<'_> {
    fn write(&self, json: &mut Vec<u8>) {
        json.extend_from_slice(b"{\"key\":");
        json.extend_from_slice(&self.key);
        json.extend_from_slice(b",\"items\":");
        for (index, item) in self.items.iter().enumerate() {
            json.push(if index == 0 { b'[' } else { b',' });
            json.extend_from_slice(item.as_bytes());
        }
        json.extend_from_slice(b"]}");
    }
}
