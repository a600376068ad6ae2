//! The config of an entry's instances: its JSON Schema, completed by what every entry takes, and
//! the fields told from it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::auth::Auth;
use crate::template::fields_of;

/// The longest text of a config field in characters.
pub const MAX_TEXT_LENGTH: u64 = 16 * 1024;

/// The `config` of an entry's file: a JSON Schema of an object, less what goes without saying.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigFile {
    #[serde(default)]
    pub(crate) required: Vec<String>,
    #[serde(default)]
    pub(crate) properties: Map<String, Value>,
    /// Conditions between fields, as `if` and `then`.
    #[serde(default, rename = "allOf")]
    pub(crate) all_of: Vec<Value>,
}

/// A field of an instance's config, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigField {
    /// The key in the config object.
    pub name: String,
    /// Type of its value.
    pub kind: FieldKind,
    /// No instance can do without it.
    pub required: bool,
    /// Encrypted at rest and never shown.
    pub secret: bool,
    /// One sentence.
    pub description: String,
    /// Default value as text.
    pub default: Option<String>,
}

/// Type of a config field's value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FieldKind {
    /// A text.
    #[default]
    String,
    /// One of these texts.
    Enum(Vec<String>),
    /// An object whose values are texts.
    Map,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

impl FieldKind {
    /// `string`, `enum`, `map`, `number`, `integer` or `boolean`, as the API says it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Enum(_) => "enum",
            Self::Map => "map",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
        }
    }

    /// The texts of an enum; none for the others.
    pub fn options(&self) -> &[String] {
        match self {
            Self::Enum(options) => options,
            Self::String | Self::Map | Self::Number | Self::Integer | Self::Boolean => &[],
        }
    }

    fn of(schema: &Value) -> Option<Self> {
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            let options: Option<Vec<String>> = options
                .iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect();
            return options.map(Self::Enum);
        }
        match schema.get("type").and_then(Value::as_str)? {
            "string" => Some(Self::String),
            "object" => Some(Self::Map),
            "number" => Some(Self::Number),
            "integer" => Some(Self::Integer),
            "boolean" => Some(Self::Boolean),
            _ => None,
        }
    }
}

/// The whole schema of a config: the file's, the fields that the kind of authentication takes, and
/// those of every entry.
pub(crate) fn schema(file: &ConfigFile, auth: &Auth) -> Value {
    let mut properties = file.properties.clone();
    let mut required = file.required.clone();
    if let Auth::OAuth2(oauth2) = auth {
        for (name, schema) in oauth2.fields() {
            properties.entry(name).or_insert(schema);
        }
        for name in oauth2.required() {
            if !required.iter().any(|known| known == name) {
                required.push(name.to_owned());
            }
        }
    }
    for (name, schema) in fields_of(include_str!("../fields/common.yaml")) {
        properties.entry(name).or_insert(schema);
    }
    properties.values_mut().for_each(bound);
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    });
    if !file.all_of.is_empty() {
        schema["allOf"] = Value::Array(file.all_of.clone());
    }
    schema
}

/// The fields of a schema, in its order. Errors name the one that is none.
pub(crate) fn fields(schema: &Value) -> Result<Vec<ConfigField>, String> {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| field(name, schema, required.contains(&json!(name))))
        .collect()
}

fn field(name: &str, schema: &Value, required: bool) -> Result<ConfigField, String> {
    let kind = FieldKind::of(schema).ok_or_else(|| {
        format!("config.{name} must be a string, an enum of strings, a map, a number or a boolean")
    })?;
    let description = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let default = schema.get("default").map(|default| match default {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let secret = schema
        .get("writeOnly")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    Ok(ConfigField {
        name: name.to_owned(),
        kind,
        required,
        secret,
        description: description.to_owned(),
        default,
    })
}

/// No text without a bound, and none empty where the schema does not say so.
fn bound(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    match members.get("type").and_then(Value::as_str) {
        Some("string") if !members.contains_key("enum") => {
            members.entry("minLength").or_insert(1.into());
            members.entry("maxLength").or_insert(MAX_TEXT_LENGTH.into());
        }
        Some("object") => {
            if let Some(values) = members
                .get_mut("additionalProperties")
                .and_then(Value::as_object_mut)
            {
                values.entry("maxLength").or_insert(MAX_TEXT_LENGTH.into());
            }
        }
        Some(_) | None => {}
    }
}
