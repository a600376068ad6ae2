//! A value that a JSON Schema takes, as full as it can be: every property, one item of each list.

use serde_json::{Map, Value};

/// A value for a whole schema; `name` goes into its texts, so that each is unique.
pub fn of(schema: &Value, name: &str) -> Value {
    value(schema, schema, name)
}

fn value(schema: &Value, root: &Value, name: &str) -> Value {
    if let Some(place) = schema["$ref"].as_str() {
        let place = place
            .strip_prefix('#')
            .expect("schemas refer to themselves alone");
        return value(root.pointer(place).unwrap(), root, name);
    }
    if let Some(fixed) = schema.get("const") {
        return fixed.clone();
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.as_str(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or("null"),
        _ if schema["properties"].is_object() => "object",
        _ => "string",
    };
    match kind {
        "integer" | "number" => schema["minimum"].as_i64().unwrap_or(7).into(),
        "boolean" => true.into(),
        "array" => list(schema, root, name),
        "object" => object(schema, root, name),
        "null" => Value::Null,
        _ => text(schema, name).into(),
    }
}

fn list(schema: &Value, root: &Value, name: &str) -> Value {
    let count = schema["minItems"].as_u64().unwrap_or(1).max(1);
    (0..count)
        .map(|n| value(&schema["items"], root, &format!("{name}-{n}")))
        .collect()
}

fn object(schema: &Value, root: &Value, name: &str) -> Value {
    let mut members = Map::new();
    for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
        members.insert(property.clone(), value(schema, root, property));
    }
    for property in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        members
            .entry(property)
            .or_insert_with(|| format!("needed-{property}").into());
    }
    // One that says nothing of its members takes any.
    if members.is_empty() && schema["additionalProperties"] != false {
        let member = value(
            &schema["additionalProperties"],
            root,
            &format!("{name}-member"),
        );
        members.insert("member".to_owned(), member);
    }
    Value::Object(members)
}

fn text(schema: &Value, name: &str) -> String {
    let plain: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let text = match schema["format"].as_str() {
        Some("email") => "ada@acme.example".to_owned(),
        Some("date-time") => "2026-01-31T08:15:00Z".to_owned(),
        Some("date") => "2026-01-31".to_owned(),
        Some("http-url" | "base-url" | "uri") => format!("https://acme.example/{plain}"),
        _ => format!(
            "{}a-{plain}",
            prefix(schema["pattern"].as_str().unwrap_or_default())
        ),
    };
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxLength"]
        .as_u64()
        .map_or(usize::MAX, |most| most as usize);
    let text = format!("{text:x<least$}");
    text[..text.len().min(most)].to_owned()
}

/// Literal prefix of all texts that a pattern matches.
fn prefix(pattern: &str) -> String {
    let Some(rest) = pattern.strip_prefix('^') else {
        return String::new();
    };
    let rest = rest.replace("\\.", ".");
    rest.chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        .collect()
}
