//! The names of the fields of a message in JSON, and their paths.

use std::collections::HashSet;

use kanat_model::nearest::suggestion;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

/// Message that stands for JSON in place.
const JSON: &str = "kanat.v1.Json";

/// Option of fields that are filters.
const FILTER: &str = "kanat.v1.filter";

/// Fields that are null in JSON when they are absent. Collected once, because the options
/// of a field are decoded at every access.
#[derive(Debug)]
pub(crate) struct NullableFields(HashSet<String>);

impl NullableFields {
    /// Finds the fields of `pool` that are marked `null_when_absent`.
    pub(crate) fn of(pool: &DescriptorPool) -> Self {
        let Some(mark) = pool.get_extension_by_name("kanat.v1.null_when_absent") else {
            return Self(HashSet::new());
        };
        let messages: Vec<_> = pool.all_messages().collect();
        let fields = messages.iter().flat_map(MessageDescriptor::fields);
        let marked = fields.filter(|field| {
            field
                .options()
                .get_extension(&mark)
                .as_bool()
                .unwrap_or_default()
        });
        Self(marked.map(|field| field.full_name().to_owned()).collect())
    }

    pub(crate) fn contains(&self, field: &FieldDescriptor) -> bool {
        self.0.contains(field.full_name())
    }
}

/// Returns the text field of a message that stands for JSON in place; `None` for any other message.
pub(crate) fn inline_json(message: &MessageDescriptor) -> Option<FieldDescriptor> {
    (message.full_name() == JSON)
        .then(|| message.get_field_by_name("text"))
        .flatten()
}

/// Returns the list of the same message that takes the name of `field` when JSON says null; none
/// when null means that the field is left out.
pub(crate) fn cleared_by_null(field: &FieldDescriptor) -> Option<FieldDescriptor> {
    let mark = field
        .parent_pool()
        .get_extension_by_name("kanat.v1.null_clears")?;
    let is_marked = field
        .options()
        .get_extension(&mark)
        .as_bool()
        .unwrap_or_default();
    is_marked
        .then(|| field.parent_message().get_field_by_name("clear"))
        .flatten()
}

/// Finds a field by its JSON name, its name in snake_case, or that in camelCase.
pub(crate) fn find(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    message
        .get_field_by_json_name(name)
        .or_else(|| message.get_field_by_name(name))
        .or_else(|| {
            message
                .fields()
                .find(|field| is_camel_case_of(name, field.name()))
        })
}

/// Returns whether the field narrows the scope of a call, so that an empty one would mean more than
/// its caller expects.
pub(crate) fn is_filter(field: &FieldDescriptor) -> bool {
    let mark = field.parent_pool().get_extension_by_name(FILTER);
    mark.is_some_and(|mark| field.options().has_extension(&mark))
}

/// Returns the message about a name that is none of the known fields. It has the known name that
/// was probably meant, or all of them. `thing` is what such a field is to the caller.
pub(crate) fn unknown(thing: &str, name: &str, known: &[FieldDescriptor]) -> String {
    let names: Vec<_> = known.iter().map(FieldDescriptor::json_name).collect();
    let meant = suggestion(name, names.iter().copied());
    if names.is_empty() || !meant.is_empty() {
        return format!("unknown {thing}{meant}");
    }
    format!("unknown {thing}; known: {}", names.join(", "))
}

/// Returns the path of a member: `a.b`, or `b` at the root.
pub(crate) fn member(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns a path from a service in the spelling of its REST callers: `yaml_config` becomes
/// `yamlConfig`. A name that is no field stays as it is, and so does the rest of the path after it.
pub(crate) fn rest_path(message: &MessageDescriptor, path: &str) -> String {
    let (segment, rest) = path
        .split_once('.')
        .map_or((path, None), |(segment, rest)| (segment, Some(rest)));
    let (name, index) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
    let Some(field) = find(message, name) else {
        return path.to_owned();
    };
    let name = field.json_name();
    match (rest, field.kind()) {
        (None, _) => format!("{name}{index}"),
        (Some(rest), Kind::Message(inner)) if inline_json(&inner).is_none() && !field.is_map() => {
            format!("{name}{index}.{}", rest_path(&inner, rest))
        }
        (Some(rest), _) => format!("{name}{index}.{rest}"),
    }
}

fn is_camel_case_of(camel: &str, snake: &str) -> bool {
    let mut expected = String::with_capacity(snake.len());
    let mut upper = false;
    for c in snake.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                expected.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => expected.push(c),
        }
    }
    camel == expected
}
