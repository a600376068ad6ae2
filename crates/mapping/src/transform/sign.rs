//! Signatures: HMAC of a text with a secret.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{EagerHash, Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::{TransformResult, refused, text};
use crate::EvaluationError;
use crate::environment::Environment;
use crate::node::Node;
use crate::value::Value;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Algorithm {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Encoding {
    Hexadecimal,
    Base64,
    Base64Url,
}

pub(super) const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("sha1", Algorithm::Sha1),
    ("sha256", Algorithm::Sha256),
    ("sha384", Algorithm::Sha384),
    ("sha512", Algorithm::Sha512),
];

pub(super) const ENCODINGS: &[(&str, Encoding)] = &[
    ("hex", Encoding::Hexadecimal),
    ("base64", Encoding::Base64),
    ("base64url", Encoding::Base64Url),
];

/// Signs a text with the secret that is the argument.
pub(super) fn hmac<'s>(
    value: &Value<'s>,
    algorithm: Algorithm,
    encoding: Encoding,
    arguments: &'s [Node],
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let held = environment.effort.hold(value)?;
    let secret = environment.argument(arguments.first())?;
    drop(held);
    let is_empty = secret.is_missing() || secret.text().is_some_and(|text| text.is_empty());
    if is_empty {
        return Err(EvaluationError::mapping("the secret is empty"));
    }
    let secret = secret.text().ok_or_else(|| {
        EvaluationError::mapping(format!(
            "the secret is {}, expected a string",
            secret.type_name()
        ))
    })?;
    let text = text_to_hash(value)?;
    let signature = match algorithm {
        Algorithm::Sha1 => sign::<Sha1>(secret.as_bytes(), text.as_bytes()),
        Algorithm::Sha256 => sign::<Sha256>(secret.as_bytes(), text.as_bytes()),
        Algorithm::Sha384 => sign::<Sha384>(secret.as_bytes(), text.as_bytes()),
        Algorithm::Sha512 => sign::<Sha512>(secret.as_bytes(), text.as_bytes()),
    };
    Ok(Value::plain(match encoding {
        Encoding::Hexadecimal => hex::encode(signature),
        Encoding::Base64 => STANDARD.encode(signature),
        Encoding::Base64Url => URL_SAFE_NO_PAD.encode(signature),
    }))
}

/// Returns the text of a value that is hashed. Lists and objects have many texts.
pub(super) fn text_to_hash<'v>(
    value: &'v Value,
) -> Result<std::borrow::Cow<'v, str>, EvaluationError> {
    match value {
        Value::List(_) | Value::Object(_) => {
            let mut error = refused(value, "a string, a number or a boolean");
            error.message.push_str("; `json` makes a text of it");
            Err(error)
        }
        _ => text::of(value),
    }
}

fn sign<D: EagerHash>(secret: &[u8], text: &[u8]) -> Vec<u8>
where
    Hmac<D>: KeyInit + Mac,
{
    // HMAC takes keys of any length.
    let Ok(mut mac) = <Hmac<D> as KeyInit>::new_from_slice(secret) else {
        return Vec::new();
    };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}
