//! `steps`: calls of catalog actions, in order.

use kanat_mapping::JsonTemplate;

use super::Checker;
use super::expression::{Place, Secrets};
use super::flow::optional;
use super::spot::{Members, Spot};
use crate::definition::{Named, OnFailure, Step};
use crate::duration::quoted;
use crate::fields::InstanceOf;
use crate::yaml::{Member, Node, Value, member_path};

const KEYS: &[&str] = &[
    "name",
    "action",
    "connector",
    "params",
    "on_failure",
    "when",
];

/// The most steps of a flow.
const MAX_STEPS: usize = 100;

pub(super) fn steps(checker: &mut Checker, flow: &Members) -> Option<Vec<Step>> {
    let Some(spot) = flow.get("steps") else {
        return Some(Vec::new());
    };
    let items = match &spot.node.value {
        Value::List(items) if !items.is_empty() && items.len() <= MAX_STEPS => items,
        _ => {
            checker.wrong(&spot, &format!("a list of 1 to {MAX_STEPS} steps"));
            return None;
        }
    };
    checker.step_names = items.iter().map(name_of).collect();
    let spots = items
        .iter()
        .enumerate()
        .map(|(index, item)| (index, spot.item(index, item)));
    let steps: Vec<Option<Step>> = spots
        .map(|(index, spot)| step(checker, &spot, index))
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

fn step(checker: &mut Checker, spot: &Spot, index: usize) -> Option<Step> {
    let place = |name| Place {
        source: true,
        steps: index,
        instance: Some(InstanceOf::Step(index)),
        ..Place::new(name)
    };
    let members = checker.members(spot, KEYS)?;
    let name = checker
        .required(&members, "name")
        .and_then(|spot| name(checker, &spot, index));
    let action = checker
        .required(&members, "action")
        .and_then(|spot| action(checker, &spot));
    let connector = optional(members.get("connector"), |spot| {
        checker.named(spot, "a text, the name of a connector instance")
    });
    let params = members.get("params");
    let template = match &params {
        Some(spot) => params_template(
            checker,
            spot,
            Place {
                secrets: Secrets::Whole,
                ..place("a step's params")
            },
        ),
        None => JsonTemplate::parse("{}").ok(),
    };
    let on_failure = optional(members.get("on_failure"), |spot| {
        checker.word(spot, &["reject"])
    });
    let when = optional(members.get("when"), |spot| {
        checker.expression(spot, place("a step's when"))
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
            .map_or_else(|| "{}".to_owned(), |spot| spot.node.to_json()),
        params_node: params.map(|spot| spot.node.clone()),
        params_template: template?,
        on_failure: if on_failure?.is_some() {
            OnFailure::Reject
        } else {
            OnFailure::Retry
        },
        when: when?,
    })
}

fn name(checker: &mut Checker, spot: &Spot, index: usize) -> Option<String> {
    let name = checker.text(spot, "a text, the step's name")?;
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        checker.wrong(spot, "a name of letters, digits, _ and -");
    }
    if checker.step_names[..index]
        .iter()
        .any(|other| other == name)
    {
        checker.error(
            spot,
            format!(
                "found a second step named {}, expected a name of its own",
                quoted(name)
            ),
        );
    }
    Some(name.to_owned())
}

fn action(checker: &mut Checker, spot: &Spot) -> Option<(Named, String, String)> {
    const EXPECTED: &str = "<catalog entry>.<action>, as in email-delivery.send-email";
    let named = checker.named(spot, &format!("a text, {EXPECTED}"))?;
    match named.name.split_once('.') {
        Some((entry, slug)) if !entry.is_empty() && !slug.is_empty() && !slug.contains('.') => {
            let entry = entry.to_owned();
            let slug = slug.to_owned();
            Some((named, entry, slug))
        }
        Some(_) | None => {
            checker.wrong(spot, EXPECTED);
            None
        }
    }
}

fn params_template(checker: &mut Checker, spot: &Spot, place: Place) -> Option<JsonTemplate> {
    checker.any_members(spot, "a map of params")?;
    if !params_parts(checker, spot, place) {
        return None;
    }
    match JsonTemplate::parse(&spot.node.to_json()) {
        Ok(template) => Some(template),
        Err(errors) => {
            for error in errors {
                checker.error(spot, error.message);
            }
            None
        }
    }
}

/// Checks each text of the tree in its own place; whether all were right.
fn params_parts(checker: &mut Checker, spot: &Spot, place: Place) -> bool {
    match &spot.node.value {
        Value::Text(text) => checker.template_of(spot, &text.text, place).is_some(),
        Value::Number(number) if number.json.is_none() => {
            checker.wrong(spot, "a number that JSON has, or a text in quotes");
            false
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Invalid => false,
        // Counted to the end, so that every fault is reported.
        Value::List(items) => {
            let spots = items
                .iter()
                .enumerate()
                .map(|(index, item)| spot.item(index, item));
            spots
                .filter(|spot| !params_parts(checker, spot, place))
                .count()
                == 0
        }
        Value::Map(members) => {
            let wrong = members.iter().filter(|member| {
                let inner = Spot {
                    node: &member.value,
                    path: member_path(&spot.path, &member.name),
                };
                !params_parts(checker, &inner, place)
            });
            wrong.count() == 0
        }
    }
}
