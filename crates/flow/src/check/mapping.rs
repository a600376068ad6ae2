//! `mapping`: the fields of the output.

use kanat_mapping::{FieldValue as Compiled, Mapping};

use super::Checker;
use super::expression::Place;
use super::spot::{Members, Spot};
use crate::definition::{Field, FieldValue};
use crate::diagnostic::MAX_DIAGNOSTICS;
use crate::fields::InstanceOf;
use crate::yaml::{Text, Value};

pub(super) fn mapping(checker: &mut Checker, spot: &Spot, has_target: bool) -> Option<Vec<Field>> {
    let steps = checker.step_names.len();
    let place = Place {
        source: true,
        steps,
        instance: has_target.then_some(InstanceOf::Target),
        ..Place::new("mapping")
    };
    block(checker, spot, place)
}

/// A block that stands somewhere else.
pub(super) fn block(checker: &mut Checker, spot: &Spot, place: Place) -> Option<Vec<Field>> {
    fields(checker, spot, place).map(|(fields, _)| fields)
}

/// The fields, and the mapping that they make.
fn fields(checker: &mut Checker, spot: &Spot, place: Place) -> Option<(Vec<Field>, Mapping)> {
    let members = checker.any_members(spot, "a map from fields to expressions")?;
    if members.is_empty() {
        checker.wrong(
            spot,
            "one field at least; leave the key out to deliver the payload as it came",
        );
        return None;
    }
    let mut fields = Vec::new();
    let mut compiled = Vec::new();
    let mut good = true;
    for (member, spot) in members.iter() {
        if checker.is_full() {
            return None;
        }
        match value(checker, &spot, place) {
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

fn value(checker: &mut Checker, spot: &Spot, place: Place) -> Option<(FieldValue, Compiled)> {
    match &spot.node.value {
        Value::Map(_) => each(checker, spot, place),
        Value::Text(Text { text, .. }) if text.contains("{{") => {
            let template = checker.template_of(spot, text, place)?;
            Some((
                FieldValue::Template(template.clone()),
                Compiled::Template(template),
            ))
        }
        _ => {
            let expression = checker.field_expression(spot, place)?;
            Some((
                FieldValue::Expression(expression.clone()),
                Compiled::Expression(expression),
            ))
        }
    }
}

fn each(checker: &mut Checker, spot: &Spot, place: Place) -> Option<(FieldValue, Compiled)> {
    let members = checker.any_members(spot, "each and map")?;
    if !members.has("each") && !members.has("map") {
        nested(checker, spot, &members);
        return None;
    }
    let members = checker.members(spot, &["each", "map"])?;
    let list = checker
        .required(&members, "each")
        .and_then(|spot| checker.expression(&spot, place));
    let inner = Place {
        item: true,
        ..place
    };
    let map = checker
        .required(&members, "map")
        .and_then(|spot| fields(checker, &spot, inner));
    let list = list?;
    let (fields, map) = map?;
    Some((
        FieldValue::Each {
            list: list.clone(),
            map: fields,
        },
        Compiled::Each {
            list,
            map: Box::new(map),
        },
    ))
}

/// An object written as a map of its own.
fn nested(checker: &mut Checker, spot: &Spot, members: &Members) {
    let first = members
        .iter()
        .next()
        .map_or("name", |(member, _)| member.name.as_str());
    let message = format!(
        "found a map, expected an expression, or each and map; objects nest by dots, as in \
         <field>.{first}"
    );
    checker.error(spot, message);
}
