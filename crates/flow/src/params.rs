//! Check of the literal parts of a step's params by the request schema of its action.
//!
//! This is the part of JSON Schema that the catalog's schemas need to refuse what can never work:
//! types, required and unknown members, enums. Bounds, patterns and combinations are the provider's
//! to check at run time, as is everything that a template fills in.

use kanat_catalog::Action;
use kanat_mapping::Template;
use serde_json::Value as Schema;

use crate::check::literal_character;
use crate::definition::Step;
use crate::diagnostic::{Diagnostic, Severity};
use crate::duration::quoted;
use crate::nearest;
use crate::yaml::{Member, Node, Value, member_path};

/// Returns the params of a step that its action does not take.
pub(crate) fn check(step: &Step, action: &Action) -> Vec<Diagnostic> {
    let Ok(schema) = serde_json::from_str::<Schema>(&action.request_schema) else {
        return Vec::new();
    };
    let mut check = ParamCheck {
        root: &schema,
        faults: Vec::new(),
    };
    match &step.params_node {
        Some(node) => {
            let path = step.action.path.replace(".action", ".params");
            check.node(node, &schema, &path);
            check.open_path(node, action, &path);
        }
        None => {
            let empty = Node {
                value: Value::Map(Vec::new()),
                at: step.action.at,
            };
            check.node(&empty, &schema, &step.action.path);
        }
    }
    check.faults
}

struct ParamCheck<'s> {
    root: &'s Schema,
    faults: Vec<Diagnostic>,
}

impl<'s> ParamCheck<'s> {
    /// Reports a query in the param that is the whole path of the request. The path is encoded, so
    /// that a call with `?` would go to another path.
    fn open_path(&mut self, params: &Node, action: &Action, path: &str) {
        let (Some(param), Value::Map(members)) = (action.open_path(), &params.value) else {
            return;
        };
        let Some(member) = members.iter().find(|member| member.name == param) else {
            return;
        };
        let Value::Text(text) = &member.value.value else {
            return;
        };
        let template = Template::parse(&text.text).ok();
        let found = template.and_then(|it| literal_character(&it, |c| matches!(c, '?' | '#')));
        if let Some(found) = found {
            let message = format!(
                "found the character {found:?} in {}, which is sent as a part of the path: put \
                 the parameters of the query into params.query, or write {{{{ '{found}' }}}} for \
                 the character itself",
                quoted(&text.text)
            );
            self.fault(&member.value, &member_path(path, param), message);
        }
    }

    fn node(&mut self, node: &Node, schema: &'s Schema, path: &str) {
        let schema = self.resolved(schema);
        if matches!(&node.value, Value::Text(text) if text.text.contains("{{")) {
            return;
        }
        let types = types(schema);
        if !types.is_empty() && !types.iter().any(|kind| is_of(&node.value, kind)) {
            self.fault(
                node,
                path,
                format!(
                    "found {}, expected {}",
                    node.described(),
                    types.join(" or ")
                ),
            );
            return;
        }
        let options = schema.get("enum").and_then(Schema::as_array);
        if let Some(options) =
            options.filter(|options| !options.iter().any(|option| equals(&node.value, option)))
        {
            let options: Vec<String> = options.iter().map(Schema::to_string).collect();
            self.fault(
                node,
                path,
                format!(
                    "found {}, expected one of {}",
                    node.described(),
                    options.join(", ")
                ),
            );
        }
        match &node.value {
            Value::Map(members) => self.members(node, members, schema, path),
            Value::List(items) => {
                if let Some(inner) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.node(item, inner, &format!("{path}[{index}]"));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Invalid => {}
        }
    }

    fn members(&mut self, node: &Node, members: &[Member], schema: &'s Schema, path: &str) {
        let required = schema
            .get("required")
            .and_then(Schema::as_array)
            .into_iter()
            .flatten();
        for name in required.filter_map(Schema::as_str) {
            if !members.iter().any(|member| member.name == name) {
                self.fault(node, path, format!("lacks the param {name:?}"));
            }
        }
        let properties = schema.get("properties").and_then(Schema::as_object);
        let is_closed = schema.get("additionalProperties").and_then(Schema::as_bool) == Some(false);
        for member in members {
            let inner = member_path(path, &member.name);
            match properties.and_then(|properties| properties.get(&member.name)) {
                Some(schema) => self.node(&member.value, schema, &inner),
                None if is_closed => {
                    let known: Vec<&str> = properties
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.as_str())
                        .collect();
                    let near = nearest::suggestion(&member.name, known.iter().copied());
                    let expected = if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    };
                    let at_key = Node {
                        value: Value::Invalid,
                        at: member.at,
                    };
                    let message = format!(
                        "found the unknown param {:?}, expected {expected}{near}",
                        member.name
                    );
                    self.fault(&at_key, &inner, message);
                }
                None => {}
            }
        }
    }

    /// The schema that a reference into `$defs` points at; the catalog's schemas have no others.
    fn resolved(&self, schema: &'s Schema) -> &'s Schema {
        let name = schema
            .get("$ref")
            .and_then(Schema::as_str)
            .and_then(|target| target.strip_prefix("#/$defs/"));
        name.and_then(|name| self.root.get("$defs")?.get(name))
            .unwrap_or(schema)
    }

    fn fault(&mut self, node: &Node, path: &str, message: String) {
        let fault = Diagnostic::error(node.at, path, message);
        self.faults.push(Diagnostic {
            severity: Severity::Warning,
            ..fault
        });
    }
}

fn types(schema: &Schema) -> Vec<&str> {
    match schema.get("type") {
        Some(Schema::String(kind)) => vec![kind],
        Some(Schema::Array(kinds)) => kinds.iter().filter_map(Schema::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => {
            kind == "number"
                || kind == "integer"
                    && !number.text.contains(['.', 'e', 'E'])
                    && number.json.is_some()
        }
        Value::Text(_) => kind == "string",
        Value::List(_) => kind == "array",
        Value::Map(_) => kind == "object",
        Value::Invalid => true,
    }
}

fn equals(value: &Value, option: &Schema) -> bool {
    match (value, option) {
        (Value::Null, Schema::Null) => true,
        (Value::Bool(a), Schema::Bool(b)) => a == b,
        (Value::Number(a), Schema::Number(b)) => a.json.as_ref() == Some(&b.to_string()),
        (Value::Text(a), Schema::String(b)) => &a.text == b,
        _ => false,
    }
}
