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
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ConfigFile {
    pub(crate) required: Vec<String>,
    pub(crate) properties: Map<String, Value>,
    /// Conditions between fields, as `if` and `then`.
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

/// Schema of a property, as far as a list of fields shows it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Property {
    r#type: String,
    r#enum: Option<Vec<String>>,
    description: String,
    default: Option<Value>,
    write_only: bool,
}

/// The fields of a schema, in its order. Errors name the one that is none.
pub(crate) fn fields(schema: &Value) -> Result<Vec<ConfigField>, String> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, schema): (&String, &Value)| {
        let property = Property::deserialize(schema).ok();
        let field = property.and_then(|property| property.field(name));
        let field = field.ok_or_else(|| {
            format!(
                "config.{name} must be a string, an enum of strings, a map, a number or a boolean"
            )
        })?;
        Ok(ConfigField {
            required: required.iter().any(|known| known == name),
            ..field
        })
    };
    properties.map(field).collect()
}

impl Property {
    fn field(self, name: &str) -> Option<ConfigField> {
        let kind = match (self.r#enum, self.r#type.as_str()) {
            (Some(options), _) => FieldKind::Enum(options),
            (None, "string") => FieldKind::String,
            (None, "object") => FieldKind::Map,
            (None, "number") => FieldKind::Number,
            (None, "integer") => FieldKind::Integer,
            (None, "boolean") => FieldKind::Boolean,
            (None, _) => return None,
        };
        Some(ConfigField {
            name: name.to_owned(),
            kind,
            required: false,
            secret: self.write_only,
            description: self.description,
            default: self.default.map(|default| match default {
                Value::String(text) => text,
                other => other.to_string(),
            }),
        })
    }
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
