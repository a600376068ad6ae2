//! Reads JSON as messages, by their descriptors. Reports every field at fault, not only the first.

pub(crate) mod scalar;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use kanat_model::FieldError;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::field;
use crate::json::{self, Value as Json};

/// Greatest number of faults that are reported.
const MAX_FAULTS: usize = 50;

/// Builds a message of `descriptor` from an object. Fields that only `read` knows are ignored: the
/// object may be what was read before, with fields that the server sets.
pub(crate) fn message(
    descriptor: &MessageDescriptor,
    read: Option<&MessageDescriptor>,
    json: Json<'_>,
) -> Result<DynamicMessage, Vec<FieldError>> {
    decoded(read, |decoder| decoder.message(descriptor, json, ""))
}

/// Builds one item of the list `field`, which stands at `path`.
pub(crate) fn item(
    field: &FieldDescriptor,
    json: Json<'_>,
    path: &str,
) -> Result<Value, Vec<FieldError>> {
    decoded(None, |decoder| decoder.value(&field.kind(), json, path))
}

fn decoded<'a, T>(
    read: Option<&'a MessageDescriptor>,
    decode: impl FnOnce(&mut Decoder<'a>) -> Option<T>,
) -> Result<T, Vec<FieldError>> {
    let mut decoder = Decoder {
        faults: Vec::new(),
        read,
    };
    match decode(&mut decoder) {
        Some(whole) if decoder.faults.is_empty() => Ok(whole),
        Some(_) | None => Err(decoder.faults),
    }
}

struct Decoder<'a> {
    faults: Vec<FieldError>,
    /// The message that a read of the same resource gives.
    read: Option<&'a MessageDescriptor>,
}

impl Decoder<'_> {
    /// Returns `None` when it is no object. Other faults are noted, and leave their field out.
    fn message(
        &mut self,
        descriptor: &MessageDescriptor,
        json: Json<'_>,
        path: &str,
    ) -> Option<DynamicMessage> {
        let place = if path.is_empty() { "body" } else { path };
        self.expect(json::Kind::Object, json, place)?;
        let mut message = DynamicMessage::new(descriptor.clone());
        let mut seen = HashSet::new();
        for (name, value) in json.members() {
            let here = field::member(path, &name);
            let Some(field) = field::find(descriptor, &name) else {
                let is_read = path.is_empty()
                    && self
                        .read
                        .is_some_and(|read| field::find(read, &name).is_some());
                if !is_read && self.faults.len() < MAX_FAULTS {
                    let known: Vec<_> = descriptor.fields().collect();
                    self.fault(&here, field::unknown("field", &name, &known));
                }
                continue;
            };
            if !seen.insert(field.number()) {
                self.fault(&here, "given twice".to_owned());
                continue;
            }
            if let Some(other) = one_of(&message, &field) {
                self.fault(&here, format!("cannot stand beside {}", other.json_name()));
                continue;
            }
            if value.kind() == json::Kind::Null
                && let Some(clear) = field::cleared_by_null(&field)
            {
                clear_field(&mut message, &clear, &field);
                continue;
            }
            if let Some(value) = self.field(&field, value, &here) {
                message.set_field(&field, value);
            }
        }
        Some(message)
    }

    /// Returns `None` when the field is left out or at fault.
    fn field(&mut self, field: &FieldDescriptor, json: Json<'_>, path: &str) -> Option<Value> {
        let kind = field.kind();
        if json.kind() == json::Kind::Null
            && (field.is_list() || field.is_map() || !is_inline_json(&kind))
        {
            return None;
        }
        if field.is_map() {
            return self.map(&kind, json, path);
        }
        if !field.is_list() {
            return self.value(&kind, json, path);
        }
        self.expect(json::Kind::List, json, path)?;
        let items = json.items();
        // The message cannot tell an empty list from none.
        if items.is_empty() && field::is_filter(field) {
            self.fault(
                path,
                "is empty: leave it out, or give it a value".to_owned(),
            );
            return None;
        }
        let items = items.into_iter().enumerate();
        Some(Value::List(
            items
                .filter_map(|(at, item)| self.value(&kind, item, &format!("{path}[{at}]")))
                .collect(),
        ))
    }

    fn map(&mut self, entry: &Kind, json: Json<'_>, path: &str) -> Option<Value> {
        self.expect(json::Kind::Object, json, path)?;
        let entry = entry.as_message()?;
        let key_kind = entry.map_entry_key_field().kind();
        let value_kind = entry.map_entry_value_field().kind();
        let mut map = HashMap::new();
        for (name, value) in json.members() {
            let here = field::member(path, &name);
            let key = match scalar::from_text(&key_kind, &name).map(Value::into_map_key) {
                Ok(Some(key)) => key,
                Ok(None) => continue,
                Err(reason) => {
                    self.fault(&here, reason);
                    continue;
                }
            };
            match map.entry(key) {
                Entry::Occupied(_) => self.fault(&here, "given twice".to_owned()),
                Entry::Vacant(slot) => {
                    if let Some(value) = self.value(&value_kind, value, &here) {
                        slot.insert(value);
                    }
                }
            }
        }
        Some(Value::Map(map))
    }

    fn value(&mut self, kind: &Kind, json: Json<'_>, path: &str) -> Option<Value> {
        let Kind::Message(descriptor) = kind else {
            return scalar::from_json(kind, json)
                .map_err(|reason| self.fault(path, reason))
                .ok();
        };
        match field::inline_json(descriptor) {
            Some(text) => {
                let mut inline = DynamicMessage::new(descriptor.clone());
                inline.set_field(&text, Value::String(json.raw().to_owned()));
                Some(Value::Message(inline))
            }
            None => self.message(descriptor, json, path).map(Value::Message),
        }
    }

    /// Notes a fault and returns `None` where the value is of another kind.
    fn expect(&mut self, kind: json::Kind, json: Json<'_>, path: &str) -> Option<()> {
        if json.kind() == kind {
            return Some(());
        }
        let found = json.kind().describe();
        self.fault(path, format!("expected {}, found {found}", kind.describe()));
        None
    }

    fn fault(&mut self, path: &str, reason: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(FieldError::new(path, reason));
        }
    }
}

/// Adds the name of `field` to the list `clear`.
fn clear_field(message: &mut DynamicMessage, clear: &FieldDescriptor, field: &FieldDescriptor) {
    if let Value::List(names) = message.get_field_mut(clear) {
        names.push(Value::String(field.name().to_owned()));
    }
}

/// Returns the member of the same `oneof` that is set already.
fn one_of(message: &DynamicMessage, field: &FieldDescriptor) -> Option<FieldDescriptor> {
    field
        .containing_oneof()?
        .fields()
        .find(|other| other != field && message.has_field(other))
}

fn is_inline_json(kind: &Kind) -> bool {
    kind.as_message()
        .is_some_and(|message| field::inline_json(message).is_some())
}
