//! JSON Schema of definitions, of draft 2020-12, made from the table of keys. It refuses nothing
//! that the compiler takes: expressions and templates are texts to it.

use serde_json::{Map, Value, json};

use super::{KEYS, Key, Kind};

/// Form of a duration. Texts of other units and orders than the compiler takes may pass.
const DURATION: &str = "^([0-9]+(ms|d|h|m|s))+$";

/// Form of a retry policy.
const RETRY: &str = "^\\s*[0-9]+\\s*x\\s*(exponential|linear|fixed)\\s*\\(.*\\)\\s*$";

/// Form of a step's name.
const NAME: &str = "^[A-Za-z0-9_-]+$";

/// Returns the JSON Schema of definitions, as indented text with a line end.
pub fn schema() -> String {
    let mut schema = object("");
    let members = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Flow definition of Kanat",
        "oneOf": [{ "required": ["flow"] }, { "required": ["name"] }],
        "$defs": { "fields": fields(), "expression": expression() },
    });
    if let Value::Object(members) = members {
        schema.extend(members);
    }
    format!("{:#}\n", Value::Object(schema))
}

/// Returns the schema of a map whose members are the keys below `path`.
fn object(path: &str) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in children(path) {
        let name = name(key);
        properties.insert(name.to_owned(), value(key));
        if key.required {
            required.push(Value::from(name));
        }
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), "object".into());
    object.insert("properties".to_owned(), properties.into());
    object.insert("additionalProperties".to_owned(), false.into());
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    object
}

/// Returns the keys of the map at `path`, in the order of the table.
pub(super) fn children(path: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| {
        let (parent, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        parent == path && name != "*"
    })
}

/// Returns the last part of its path.
pub(super) fn name(key: &Key) -> &'static str {
    key.path.rsplit('.').next().unwrap_or(key.path)
}

fn value(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Text | Kind::Template => json!({ "type": "string" }),
        Kind::Templates => json!({
            "type": ["string", "array"],
            "items": { "type": "string" },
            "minItems": 1,
        }),
        Kind::Name => json!({ "type": "string", "pattern": NAME }),
        Kind::Expression => json!({ "$ref": "#/$defs/expression" }),
        Kind::Duration => json!({ "type": "string", "pattern": DURATION }),
        Kind::Tolerance => json!({ "type": ["string", "number"], "pattern": DURATION }),
        Kind::Retry => json!({ "type": "string", "pattern": RETRY }),
        Kind::Whole { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Words(words) => json!({ "enum": words }),
        Kind::Methods(words) => json!({ "type": "string", "pattern": in_any_case(words) }),
        Kind::Map => object(key.path).into(),
        Kind::TemplateMap => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Kind::AnyMap => json!({ "type": "object" }),
        Kind::List => {
            let items = object(&format!("{}[]", key.path));
            json!({ "type": "array", "minItems": 1, "items": items })
        }
        Kind::Fields => json!({ "$ref": "#/$defs/fields" }),
    };
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), key.text.into());
    }
    schema
}

/// Returns the schema of a mapping.
fn fields() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "anyOf": [{ "$ref": "#/$defs/expression" }, object("mapping.*")],
        },
    })
}

/// Returns the schema of an expression: constants need no quotes.
fn expression() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

/// Returns the pattern of words in capitals or not.
fn in_any_case(words: &[&str]) -> String {
    let word = |word: &&str| -> String {
        word.chars()
            .map(|c| format!("[{c}{}]", c.to_ascii_lowercase()))
            .collect()
    };
    let words: Vec<_> = words.iter().map(word).collect();
    format!("^({})$", words.join("|"))
}
