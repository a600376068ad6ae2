//! `mapping`: the fields of the output.

use kanat_mapping::{FieldValue as Compiled, Mapping};

use super::Checker;
use super::cursor::{Cursor, Members};
use super::expression::Place;
use crate::definition::{Field, FieldValue};
use crate::diagnostic::MAX_DIAGNOSTICS;
use crate::fields::InstanceOf;
use crate::yaml::{Member, Text, Value};

pub(super) fn mapping(
    checker: &mut Checker,
    cursor: &Cursor,
    instance: Option<InstanceOf>,
) -> Option<Vec<Field>> {
    let steps = checker.step_names.len();
    let place = Place {
        source: true,
        steps,
        instance,
        ..Place::new("mapping")
    };
    block(checker, cursor, place)
}

/// A block that stands somewhere else.
pub(super) fn block(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<Vec<Field>> {
    fields(checker, cursor, place).map(|(fields, _)| fields)
}

/// The fields, and the mapping that they make.
fn fields(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<(Vec<Field>, Mapping)> {
    let members = checker.any_members(cursor, "a map from fields to expressions")?;
    if members.is_empty() {
        checker.type_error(
            cursor,
            "one field at least; leave the key out to deliver the payload as it came",
        );
        return None;
    }
    let mut fields = Vec::new();
    let mut compiled = Vec::new();
    let mut good = true;
    let mut rest = members.iter().peekable();
    while let Some((member, cursor)) = rest.next() {
        if checker.is_full() {
            return None;
        }
        let mut open = open_parentheses(&cursor.node.value);
        if open > 0 && rest.peek().is_some_and(has_no_value) {
            checker.error(
                &cursor,
                "ends within parentheses: inside of { } YAML ends a value at a comma; put the \
                 expression in quotes, or each field on a line of its own",
            );
            while open > 0
                && let Some((part, _)) = rest.next_if(has_no_value)
            {
                open += open_parentheses_of(&part.name);
            }
            good = false;
            continue;
        }
        if has_path_brackets(&member.name) {
            let (at, path) = members.key(&member.name);
            checker.warn(
                at,
                &path,
                "the brackets are a part of this name: dots build objects, and a list is an \
                 expression such as \"[source.a, source.b]\" or an each",
            );
        }
        match value(checker, &cursor, place) {
            Some((value, mapped)) => {
                fields.push(Field {
                    name: member.name.clone(),
                    value,
                });
                compiled.push((member.name.clone(), mapped));
            }
            None => good = false,
        }
    }
    match Mapping::new(compiled) {
        Ok(mapping) if good => Some((fields, mapping)),
        Ok(_) => None,
        Err(conflicts) => {
            for conflict in conflicts.into_iter().take(MAX_DIAGNOSTICS) {
                let (at, path) = members.key(&conflict.field);
                checker.report(at, &path, conflict.message);
            }
            None
        }
    }
}

/// Returns whether a name has brackets as a path has: `lines[0].sku`, `tags[*]`, `meta["a b"]`.
fn has_path_brackets(name: &str) -> bool {
    name.match_indices('[').any(|(at, _)| {
        let follows_name = !name[..at].ends_with(|letter: char| letter.is_whitespace());
        let inner = name[at + 1..].split(']').next().unwrap_or_default().trim();
        let is_place = inner == "*" || inner.parse::<i64>().is_ok();
        follows_name && (is_place || inner.starts_with(['"', '\'']))
    })
}

/// Returns whether a field is a key alone, as a part of an expression after a comma is.
fn has_no_value((_, cursor): &(&Member, Cursor)) -> bool {
    matches!(cursor.node.value, Value::Null)
}

/// Returns how many parentheses a text opens and does not close; 0 for what is no text.
fn open_parentheses(value: &Value) -> i64 {
    match value {
        Value::Text(Text { text, .. }) => open_parentheses_of(text),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::List(_)
        | Value::Map(_)
        | Value::Invalid => 0,
    }
}

fn open_parentheses_of(text: &str) -> i64 {
    text.bytes()
        .map(|byte| match byte {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        })
        .sum()
}

fn value(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<(FieldValue, Compiled)> {
    match &cursor.node.value {
        Value::Map(_) => each(checker, cursor, place),
        Value::List(_) => {
            checker.type_error(
                cursor,
                "an expression; a list is one in quotes, such as \"[source.a, source.b]\"",
            );
            None
        }
        Value::Null => {
            checker.type_error(
                cursor,
                "an expression such as source.id | required; for null write \"null\" in quotes, or \
                 leave the field out",
            );
            None
        }
        Value::Text(Text { text, .. }) if text.contains("{{") => {
            let template = checker.template_of(cursor, text, place)?;
            Some((
                FieldValue::Template(template.clone()),
                Compiled::Template(template),
            ))
        }
        _ => {
            let expression = checker.field_expression(cursor, place)?;
            Some((
                FieldValue::Expression(expression.clone()),
                Compiled::Expression(expression),
            ))
        }
    }
}

fn each(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<(FieldValue, Compiled)> {
    let members = checker.any_members(cursor, "each and map")?;
    if !members.has("each") && !members.has("map") {
        nested(checker, cursor, &members);
        return None;
    }
    let members = checker.members(cursor, "mapping.*")?;
    let list = checker
        .required(&members, "each")
        .and_then(|cursor| checker.expression(&cursor, place));
    checker.lists.push(list.as_ref());
    let filter = members.get("where");
    let filter = filter.map(|cursor| checker.condition(&cursor, place));
    let map = checker
        .required(&members, "map")
        .and_then(|cursor| fields(checker, &cursor, place));
    checker.lists.pop();
    let list = list?;
    let (fields, map) = map?;
    let filter = match filter {
        Some(filter) => Some(filter?),
        None => None,
    };
    Some((
        FieldValue::Each {
            list: list.clone(),
            filter: filter.clone(),
            map: fields,
        },
        Compiled::Each {
            list,
            filter,
            map: Box::new(map),
        },
    ))
}

/// An object written as a map of its own.
fn nested(checker: &mut Checker, cursor: &Cursor, members: &Members) {
    let first = members
        .iter()
        .next()
        .map_or("name", |(member, _)| member.name.as_str());
    let message = format!(
        "found a map, expected an expression, or each and map; objects nest by dots, as in \
         <field>.{first}"
    );
    checker.error(cursor, message);
}
