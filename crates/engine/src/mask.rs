//! Keeps secrets out of traces and errors.

use std::borrow::Cow;

use bytes::Bytes;
use kanat_catalog::MASK;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded;

/// The texts that may not show, in every spelling that a request gives them.
pub struct Mask {
    needles: Vec<String>,
}

impl Mask {
    /// Returns a mask of these secrets. Empty ones, and the mask itself, are passed over.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s String>) -> Self {
        let mut needles = Vec::new();
        for secret in secrets
            .into_iter()
            .filter(|secret| !secret.is_empty() && *secret != MASK)
        {
            needles.push(secret.clone());
            needles.push(utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string());
            needles.push(form_urlencoded::byte_serialize(secret.as_bytes()).collect());
            let mut quoted = Vec::new();
            kanat_mapping::json::write_string(secret, &mut quoted);
            needles.extend(
                String::from_utf8(quoted)
                    .ok()
                    .map(|text| text[1..text.len() - 1].to_owned()),
            );
        }
        in_order(&mut needles);
        Self { needles }
    }

    /// Hides these secrets too.
    pub fn add<'s>(&mut self, secrets: impl IntoIterator<Item = &'s String>) {
        self.needles.append(&mut Self::new(secrets).needles);
        in_order(&mut self.needles);
    }

    /// Bytes of the longest text that may not show.
    pub fn longest(&self) -> usize {
        self.needles.first().map_or(0, String::len)
    }

    /// Returns `text` with the mask in the place of every secret.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for needle in &self.needles {
            if masked.contains(needle.as_str()) {
                masked = Cow::Owned(masked.replace(needle.as_str(), MASK));
            }
        }
        masked
    }

    /// Returns a text in UTF-8 with the mask in the place of every secret; shares the bytes of a
    /// text without one.
    pub fn apply_to_bytes(&self, text: &Bytes) -> Bytes {
        match std::str::from_utf8(text).map(|text| self.apply(text)) {
            Ok(Cow::Owned(masked)) => masked.into(),
            Ok(Cow::Borrowed(_)) | Err(_) => text.clone(),
        }
    }
}

/// The longest first: one secret may be part of another.
fn in_order(needles: &mut Vec<String>) {
    needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    needles.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_a_secret_in_every_spelling() {
        let mask = Mask::new(&["p@ss \"word\"".to_owned(), String::new(), "p@ss".to_owned()]);
        for text in [
            r#"p@ss "word""#,
            "k=p%40ss%20%22word%22",
            "k=p%40ss+%22word%22",
            r#"{"a":"p@ss \"word\""}"#,
            "p@ss",
        ] {
            let masked = mask.apply(text);
            assert!(
                masked.contains(MASK) && !masked.contains("ss"),
                "{text} -> {masked}"
            );
        }
        assert_eq!(mask.apply("nothing here"), "nothing here");
    }
}
