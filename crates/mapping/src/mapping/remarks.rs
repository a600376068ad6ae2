//! Fields of a mapping that compare a text with a number, which is false or unequal for every
//! message, or whose template has a part that renders to nothing. A test of a flow names them.

use super::{Each, Mapping, MemberValue, Object};
use crate::environment::Environment;
use crate::mismatch::within;
use crate::template::Part;
use crate::value::Value;
use crate::{NoAdapters, Scope};

pub(super) fn of(mapping: &Mapping, scope: &Scope) -> Vec<(String, String)> {
    let scope = Scope {
        adapters: &NoAdapters,
        ..*scope
    };
    let mut found = Vec::new();
    in_object(&mapping.object, "", &Environment::new(&scope), &mut found);
    found
}

fn in_object<'s>(
    object: &'s Object,
    place: &str,
    environment: &Environment<'s>,
    found: &mut Vec<(String, String)>,
) {
    for member in &object.members {
        let field = match place {
            "" => member.name.clone(),
            place => format!("{place}.{}", member.name),
        };
        let sentence = match &member.value {
            MemberValue::Object(object) => {
                in_object(object, &field, environment, found);
                None
            }
            MemberValue::Expression(expression) => within(expression, environment),
            MemberValue::Template(template) => {
                let mut parts = template.parts.iter();
                let mismatch = parts.find_map(|part| match part {
                    Part::Literal(_) => None,
                    Part::Expression(expression) => within(expression, environment),
                });
                mismatch.or_else(|| template.missing_part(environment))
            }
            MemberValue::Each(each) => {
                in_items(each, &field, environment, found);
                within(&each.list, environment)
            }
        };
        found.extend(sentence.map(|sentence| (field, sentence)));
    }
}

/// Searches the items of a list up to the first one for which something is found.
fn in_items<'s>(
    each: &'s Each,
    field: &str,
    environment: &Environment<'s>,
    found: &mut Vec<(String, String)>,
) {
    let Ok(Value::List(items)) = each.list.evaluate(environment) else {
        return;
    };
    let before = found.len();
    for (index, item) in environment.effort.items(&items).enumerate() {
        let place = format!("{field}[{index}]");
        let element = environment.element(index, item, &[]);
        let environment = &environment.of_element(&element);
        if let Some(filter) = &each.filter {
            let sentence = within(filter, environment);
            found.extend(sentence.map(|sentence| (place.clone(), sentence)));
            let value = filter.evaluate(environment);
            if !value.is_ok_and(|value| environment.holds(&value)) {
                continue;
            }
        }
        in_object(&each.map.object, &place, environment, found);
        if found.len() > before {
            return;
        }
    }
}
