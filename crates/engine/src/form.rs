//! Forms: bodies of `application/x-www-form-urlencoded` as payloads, and queries by name.

use std::collections::HashMap;

use bytes::Bytes;
use kanat_model::media_type;
use percent_encoding::percent_decode;
use url::form_urlencoded;

use crate::trigger::write_members;

/// Media type of forms.
pub const CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 10_000;

/// A form that is no payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It has too many fields.
    #[error("the form has more than {MAX_FIELDS} fields")]
    TooManyFields,
    /// The field of this name is not UTF-8.
    #[error("the form field {0:?} is not UTF-8")]
    NotUtf8(String),
}

/// Returns whether a content type is that of forms, whatever its parameters are.
pub fn is_declared(content_type: &str) -> bool {
    media_type::essence(content_type).eq_ignore_ascii_case(CONTENT_TYPE)
}

/// Returns a form as a JSON object, with the names in the order of their first appearance. A
/// repeated name has a list.
///
/// # Errors
///
/// More than 10,000 fields, or one that is not UTF-8.
pub fn payload(body: &[u8]) -> Result<Bytes, FormError> {
    let members = fields(body)?;
    let mut out = Vec::with_capacity(body.len() + body.len() / 2 + 2);
    write_members(&members, &mut out);
    Ok(out.into())
}

/// Returns the values of a form by name. Invalid UTF-8 is refused: its replacement would change the
/// bytes.
///
/// # Errors
///
/// More than 10,000 fields, or one that is not UTF-8.
pub fn fields(body: &[u8]) -> Result<Vec<(String, Vec<String>)>, FormError> {
    let members = members(body)?;
    let is_replaced = |text: &String| text.contains(char::REPLACEMENT_CHARACTER);
    if members
        .iter()
        .any(|(name, values)| is_replaced(name) || values.iter().any(is_replaced))
    {
        // The client may have sent the replacement character itself.
        let broken = |part: &&[u8]| {
            let plain: Vec<u8> = part
                .iter()
                .map(|byte| if *byte == b'+' { b' ' } else { *byte })
                .collect();
            percent_decode(&plain).decode_utf8().is_err()
        };
        if let Some(pair) = body.split(|byte| *byte == b'&').find(broken) {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            return Err(FormError::NotUtf8(
                percent_decode(name).decode_utf8_lossy().into_owned(),
            ));
        }
    }
    Ok(members)
}

/// Returns the values of a form or a query by name, with the replacement character in the place of
/// what is not UTF-8.
///
/// # Errors
///
/// More than 10,000 fields.
pub fn members(text: &[u8]) -> Result<Vec<(String, Vec<String>)>, FormError> {
    let mut order: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (count, (name, value)) in form_urlencoded::parse(text).enumerate() {
        if count == MAX_FIELDS {
            return Err(FormError::TooManyFields);
        }
        match places.get(name.as_ref()) {
            Some(place) => order[*place].1.push(value.into_owned()),
            None => {
                places.insert(name.to_string(), order.len());
                order.push((name.into_owned(), vec![value.into_owned()]));
            }
        }
    }
    Ok(order)
}
