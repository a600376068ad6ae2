//! `steps`: calls of catalog actions, in order.

use kanat_mapping::JsonTemplate;

use super::Checker;
use super::cursor::{Cursor, Members, optional};
use super::expression::{Place, Secrets};
use crate::definition::{LocatedName, OnFailure, Step};
use crate::duration::quoted;
use crate::fields::InstanceOf;
use crate::yaml::{Member, Node, Value, member_path};

/// The most steps of a flow.
const MAX_STEPS: usize = 100;

pub(super) fn steps(checker: &mut Checker, flow: &Members) -> Option<Vec<Step>> {
    let Some(cursor) = flow.get("steps") else {
        return Some(Vec::new());
    };
    let items = match &cursor.node.value {
        Value::List(items) if !items.is_empty() && items.len() <= MAX_STEPS => items,
        _ => {
            checker.type_error(&cursor, &format!("a list of 1 to {MAX_STEPS} steps"));
            return None;
        }
    };
    checker.step_names = items.iter().map(name_of).collect();
    let spots = items
        .iter()
        .enumerate()
        .map(|(index, item)| (index, cursor.item(index, item)));
    let steps: Vec<Option<Step>> = spots
        .map(|(index, cursor)| step(checker, &cursor, index))
        .collect();
    steps.into_iter().collect()
}

/// The name that later expressions use; empty when there is none.
fn name_of(node: &Node) -> String {
    let members: &[Member] = match &node.value {
        Value::Map(members) => members,
        _ => &[],
    };
    let name = members
        .iter()
        .find(|member| member.name == "name")
        .map(|member| &member.value.value);
    match name {
        Some(Value::Text(text)) => text.text.clone(),
        _ => String::new(),
    }
}

fn step(checker: &mut Checker, cursor: &Cursor, index: usize) -> Option<Step> {
    let place = |name| Place {
        source: true,
        steps: index,
        instance: Some(InstanceOf::Step(index)),
        ..Place::new(name)
    };
    let members = checker.members(cursor, "steps[]")?;
    let name = checker
        .required(&members, "name")
        .and_then(|cursor| name(checker, &cursor, index));
    let action = checker
        .required(&members, "action")
        .and_then(|cursor| action(checker, &cursor));
    let connector = optional(members.get("connector"), |cursor| {
        checker.named(cursor, "a text, the name of a connector instance")
    });
    let params = members.get("params");
    let template = match &params {
        Some(cursor) => params_template(
            checker,
            cursor,
            Place {
                secrets: Secrets::Whole,
                ..place("a step's params")
            },
        ),
        None => JsonTemplate::parse("{}").ok(),
    };
    let on_failure = optional(members.get("on_failure"), |cursor| {
        checker.one_of(cursor, &["reject"])
    });
    let when = optional(members.get("when"), |cursor| {
        checker.expression(cursor, place("a step's when"))
    });
    let success_when = optional(members.get("success_when"), |cursor| {
        let place = place("a step's success_when");
        checker.expression(
            cursor,
            Place {
                response: true,
                ..place
            },
        )
    });
    let (action, entry, slug) = action?;
    Some(Step {
        name: name?,
        action,
        entry,
        slug,
        connector: connector?,
        params: params
            .as_ref()
            .map_or_else(|| "{}".to_owned(), |cursor| cursor.node.to_json()),
        params_node: params.map(|cursor| cursor.node.clone()),
        params_template: template?,
        on_failure: if on_failure?.is_some() {
            OnFailure::Reject
        } else {
            OnFailure::Retry
        },
        when: when?,
        success_when: success_when?,
    })
}

fn name(checker: &mut Checker, cursor: &Cursor, index: usize) -> Option<String> {
    let name = checker.text(cursor, "a text, the step's name")?;
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        checker.type_error(cursor, "a name of letters, digits, _ and -");
    }
    if checker.step_names[..index]
        .iter()
        .any(|other| other == name)
    {
        checker.error(
            cursor,
            format!(
                "found a second step named {}, expected a name of its own",
                quoted(name)
            ),
        );
    }
    Some(name.to_owned())
}

fn action(checker: &mut Checker, cursor: &Cursor) -> Option<(LocatedName, String, String)> {
    const EXPECTED: &str = "<catalog entry>.<action>, as in email-delivery.send-email";
    let named = checker.named(cursor, &format!("a text, {EXPECTED}"))?;
    match named.name.split_once('.') {
        Some((entry, slug)) if !entry.is_empty() && !slug.is_empty() && !slug.contains('.') => {
            let entry = entry.to_owned();
            let slug = slug.to_owned();
            Some((named, entry, slug))
        }
        Some(_) | None => {
            checker.type_error(cursor, EXPECTED);
            None
        }
    }
}

fn params_template(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<JsonTemplate> {
    checker.any_members(cursor, "a map of params")?;
    if !params_parts(checker, cursor, place) {
        return None;
    }
    match JsonTemplate::parse(&cursor.node.to_json()) {
        Ok(template) => Some(template),
        Err(errors) => {
            for error in errors {
                checker.error(cursor, error.message);
            }
            None
        }
    }
}

/// Checks each text of the tree in its own place; whether all were right.
fn params_parts(checker: &mut Checker, cursor: &Cursor, place: Place) -> bool {
    match &cursor.node.value {
        Value::Text(text) => checker.template_of(cursor, &text.text, place).is_some(),
        Value::Number(number) if number.json.is_none() => {
            checker.type_error(cursor, "a number that JSON has, or a text in quotes");
            false
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Invalid => false,
        // Counted to the end, so that every fault is reported.
        Value::List(items) => {
            let spots = items
                .iter()
                .enumerate()
                .map(|(index, item)| cursor.item(index, item));
            spots
                .filter(|cursor| !params_parts(checker, cursor, place))
                .count()
                == 0
        }
        Value::Map(members) => {
            let wrong = members.iter().filter(|member| {
                let inner = Cursor {
                    node: &member.value,
                    path: member_path(&cursor.path, &member.name),
                };
                !params_parts(checker, &inner, place)
            });
            wrong.count() == 0
        }
    }
}
