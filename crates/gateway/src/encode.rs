//! Writes messages as JSON: fields by their JSON names in the order of their numbers. Plain fields
//! and lists are always written, optional ones when they are present or marked as null, and
//! `kanat.v1.Json` in place.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};

use crate::field::NullableFields;
use crate::{field, json};

/// Appends `message` to `out`, without white space.
pub(crate) fn message(message: &DynamicMessage, nullable: &NullableFields, out: &mut Vec<u8>) {
    if let Some(text) = field::inline_json(&message.descriptor()) {
        return inline(message.get_field(&text).as_str().unwrap_or_default(), out);
    }
    out.push(b'{');
    let mut first = true;
    for field in message.descriptor().fields() {
        let is_absent = field.supports_presence() && !message.has_field(&field);
        if is_absent && !nullable.contains(&field) && !is_withheld(message, &field) {
            continue;
        }
        separate(&mut first, out);
        json::write_string(field.json_name(), out);
        out.push(b':');
        if is_absent {
            out.extend_from_slice(b"null");
        } else {
            value(&message.get_field(&field), &field.kind(), nullable, out);
        }
    }
    out.push(b'}');
}

/// Returns whether the message says that the value of a field showed before, and does not show
/// again.
fn is_withheld(message: &DynamicMessage, field: &FieldDescriptor) -> bool {
    let shown = message
        .descriptor()
        .get_field_by_name(&format!("{}_shown", field.name()));
    shown.is_some_and(|shown| {
        message.has_field(&shown) && message.get_field(&shown).as_bool() == Some(false)
    })
}

/// Appends one value of a field of `kind`.
pub(crate) fn value(value: &Value, kind: &Kind, nullable: &NullableFields, out: &mut Vec<u8>) {
    match value {
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::I32(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::I64(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::U32(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::U64(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::F32(n) => float(serde_json::to_string(n), out),
        Value::F64(n) => float(serde_json::to_string(n), out),
        Value::String(text) => json::write_string(text, out),
        Value::Bytes(bytes) => json::write_string(&STANDARD.encode(bytes), out),
        Value::EnumNumber(number) => match kind.as_enum().and_then(|e| e.get_value(*number)) {
            Some(known) => json::write_string(known.name(), out),
            None => out.extend_from_slice(number.to_string().as_bytes()),
        },
        Value::Message(inner) => message(inner, nullable, out),
        Value::List(items) => {
            out.push(b'[');
            let mut first = true;
            for item in items {
                separate(&mut first, out);
                self::value(item, kind, nullable, out);
            }
            out.push(b']');
        }
        Value::Map(entries) => map(entries.iter().collect(), kind, nullable, out),
    }
}

/// Writes a map with its keys in order, so that equal maps have equal texts.
fn map(
    mut entries: Vec<(&MapKey, &Value)>,
    kind: &Kind,
    nullable: &NullableFields,
    out: &mut Vec<u8>,
) {
    entries.sort_by_key(|(key, _)| (*key).clone());
    let Some(value_kind) = kind
        .as_message()
        .map(|entry| entry.map_entry_value_field().kind())
    else {
        return;
    };
    out.push(b'{');
    let mut first = true;
    for (key, entry) in entries {
        separate(&mut first, out);
        let key = match key {
            MapKey::Bool(b) => b.to_string(),
            MapKey::I32(n) => n.to_string(),
            MapKey::I64(n) => n.to_string(),
            MapKey::U32(n) => n.to_string(),
            MapKey::U64(n) => n.to_string(),
            MapKey::String(s) => s.clone(),
        };
        json::write_string(&key, out);
        out.push(b':');
        value(entry, &value_kind, nullable, out);
    }
    out.push(b'}');
}

/// Writes JSON in place. A text that is not JSON becomes a string, so that the whole stays
/// readable.
fn inline(text: &str, out: &mut Vec<u8>) {
    if text.is_empty() {
        out.extend_from_slice(b"null");
    } else if !json::write_compact(text, out) {
        json::write_string(text, out);
    }
}

/// Writes a number. JSON has no infinities: they are `null`.
fn float(text: serde_json::Result<String>, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_deref().unwrap_or("null").as_bytes());
}

fn separate(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::replace(first, false) {
        out.push(b',');
    }
}
