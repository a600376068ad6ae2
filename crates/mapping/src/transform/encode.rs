//! Transforms between text and its encodings.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::{TransformResult, sign, text};
use crate::EvaluationError;
use crate::value::Value;

/// Set of all characters but the unreserved ones of RFC 3986.
pub(crate) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Hashes a text. The result is hexadecimal, in lower case.
pub(super) fn sha256<'s>(value: &Value<'s>) -> TransformResult<'s> {
    Ok(Value::plain(hex::encode(Sha256::digest(
        sign::text_to_hash(value)?.as_bytes(),
    ))))
}

/// Encodes a text with the alphabet for addresses, without padding.
pub(super) fn base64url<'s>(value: &Value<'s>) -> TransformResult<'s> {
    Ok(Value::plain(
        URL_SAFE_NO_PAD.encode(text::of(value)?.as_bytes()),
    ))
}

pub(super) fn base64<'s>(value: &Value<'s>) -> TransformResult<'s> {
    Ok(Value::plain(STANDARD.encode(text::of(value)?.as_bytes())))
}

/// Decodes Base64 of either alphabet, with padding or without, to text.
pub(super) fn base64_decode<'s>(value: &Value<'s>) -> TransformResult<'s> {
    const ANY_PADDING: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let encoded = text::of(value)?.trim().replace('-', "+").replace('_', "/");
    let bytes = ANY_PADDING
        .decode(encoded)
        .map_err(|error| EvaluationError::mapping(format!("expected Base64: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| EvaluationError::mapping("expected Base64 of UTF-8 text"))?;
    Ok(Value::plain(text))
}

pub(super) fn url_encode<'s>(value: &Value<'s>) -> TransformResult<'s> {
    Ok(Value::plain(
        utf8_percent_encode(&text::of(value)?, RESERVED).to_string(),
    ))
}
