//! Texts of data files: names between braces, maps of texts, schemas.

use serde::Deserialize;

/// Returns the names between braces.
pub(crate) fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// Deserializes a map of texts, in the order of the file.
pub(crate) fn pairs<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    let members = serde_json::Map::<String, serde_json::Value>::deserialize(deserializer)?;
    let text = |(name, value): (String, serde_json::Value)| match value {
        serde_json::Value::String(text) => Ok((name, text)),
        _ => Err(serde::de::Error::custom(format!("{name} must be a text"))),
    };
    members.into_iter().map(text).collect()
}

/// Reads the fields of a data file of this build.
pub(crate) fn fields_of(text: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_saphyr::from_str(text).expect("the file is part of the build, and tests read it")
}

/// Parses the schema of an entry or an action; one that cannot be parsed allows everything.
pub(crate) fn schema_value(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or(serde_json::Value::Bool(true))
}
