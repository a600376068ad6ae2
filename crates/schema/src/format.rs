//! Formats, checked by the crate `jsonschema`.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::draft::Draft;

/// Greatest length of a text with a format, in bytes.
const LONGEST: usize = 64 * 1024;

const NAMES: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Each format that a draft knows.
static FORMATS: LazyLock<HashMap<(Draft, &str), Validator>> = LazyLock::new(|| {
    let pairs = Draft::ALL
        .into_iter()
        .flat_map(|draft| NAMES.into_iter().map(move |name| (draft, name)));
    let validators = pairs.filter_map(|(draft, name)| {
        let options = jsonschema::options()
            .with_draft(draft.of_the_crate())
            .should_validate_formats(true);
        Some((
            (draft, name),
            options.build(&json!({ "format": name })).ok()?,
        ))
    });
    validators.collect()
});

#[derive(Clone, Copy)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    validator: &'static Validator,
}

impl Format {
    /// Returns the format of that name; `None` for one that the draft does not know, which is
    /// ignored.
    pub(crate) fn named(draft: Draft, name: &str) -> Option<Self> {
        let name = NAMES.into_iter().find(|known| *known == name)?;
        FORMATS
            .get(&(draft, name))
            .map(|validator| Self { name, validator })
    }

    pub(crate) fn fits(self, text: &str) -> bool {
        text.len() <= LONGEST && self.validator.is_valid(&Value::String(text.to_owned()))
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_by_the_draft() {
        let fits =
            |draft, name, text| Format::named(draft, name).is_none_or(|format| format.fits(text));
        assert!(
            fits(Draft::Seven, "date", "2026-02-28") && !fits(Draft::Seven, "date", "2026-02-30")
        );
        assert!(fits(Draft::Seven, "uuid", "no") && !fits(Draft::TwentyNineteen, "uuid", "no"));
        assert!(fits(Draft::TwentyTwenty, "colour", "no"));
        assert!(!fits(
            Draft::TwentyTwenty,
            "email",
            &"a".repeat(LONGEST + 1)
        ));
    }
}
