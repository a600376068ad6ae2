//! Query parameters as fields: typed, by either spelling, repeated ones for lists, unknown ones
//! refused by name.

use kanat_model::FieldError;
use kanat_model::page::Page;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage, Value};

use super::FieldValues;
use crate::annotation::UnknownQuery;
use crate::decode::scalar;
use crate::error::Problem;
use crate::{field, percent};

/// Sets the fields that `query` names; `may_be_given` says which ones a query can name.
pub(super) fn read(
    message: &mut DynamicMessage,
    query: &str,
    unknown: UnknownQuery,
    may_be_given: impl Fn(&FieldDescriptor) -> bool,
) -> Result<(), Problem> {
    let input = message.descriptor();
    let mut given = FieldValues::new();
    let mut faults = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(text)) = (percent::decode_query(name), percent::decode_query(text))
        else {
            faults.push(FieldError::new(
                name,
                "the query is not percent-encoded UTF-8",
            ));
            continue;
        };
        let addressable = |f: &FieldDescriptor| f.kind().as_message().is_none() && may_be_given(f);
        let Some(field) = field::find(&input, &name).filter(addressable) else {
            if unknown == UnknownQuery::Refused {
                let known: Vec<_> = input.fields().filter(addressable).collect();
                let message = field::unknown("query parameter", &name, &known);
                faults.push(FieldError::new(name, message));
            }
            continue;
        };
        let values = given.entry(field.number()).or_default();
        match scalar::from_text(&field.kind(), within_page(&field, &text)) {
            Ok(_) if !field.is_list() && !values.is_empty() => {
                faults.push(FieldError::new(name, "given twice"))
            }
            Ok(value) => values.push(value),
            Err(_) if is_page_limit(&field) => {
                let most = Page::MAX_LIMIT;
                let found: String = text.chars().take(40).collect();
                let reason = format!("expected a whole number from 1 to {most}, found {found:?}");
                faults.push(FieldError::new(name, reason));
            }
            Err(reason) => faults.push(FieldError::new(name, reason)),
        }
    }
    if !faults.is_empty() {
        return Err(Problem::fields(faults));
    }
    for (number, mut values) in given {
        let Some(field) = input.get_field(number) else {
            continue;
        };
        if field.is_list() {
            message.set_field(&field, Value::List(values));
        } else if let Some(value) = values.pop() {
            message.set_field(&field, value);
        }
    }
    Ok(())
}

/// Returns the text from which the `limit` of a list is read. A larger number than the field holds
/// is no fault, because a page never has that many entries.
fn within_page<'t>(field: &FieldDescriptor, text: &'t str) -> &'t str {
    const MAX_LIMIT: &str = "4294967295";
    let number = is_page_limit(field) && text.bytes().all(|b| b.is_ascii_digit());
    let too_large = number && !text.is_empty() && text.parse::<u32>().is_err();
    if too_large { MAX_LIMIT } else { text }
}

/// Returns whether a field is the `limit` of a list.
fn is_page_limit(field: &FieldDescriptor) -> bool {
    field.name() == "limit" && field.kind() == Kind::Uint32
}
