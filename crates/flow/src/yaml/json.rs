//! A tree as JSON text, keys in their order, digits kept; and a tree of JSON.

use super::{Member, Node, Number, Text, Value};
use crate::diagnostic::Position;

impl Node {
    /// The tree of a JSON value, which has no places.
    pub(crate) fn from_json(json: serde_json::Value) -> Self {
        let at = Position::UNKNOWN;
        let value = match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => Value::Number(Number {
                text: number.to_string(),
                json: Some(number.to_string()),
            }),
            serde_json::Value::String(text) => Value::Text(Text {
                text,
                anchors: Vec::new(),
                written: None,
            }),
            serde_json::Value::Array(items) => {
                Value::List(items.into_iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(members) => Value::Map(
                members
                    .into_iter()
                    .map(|(name, json)| Member {
                        name,
                        at,
                        value: Self::from_json(json),
                    })
                    .collect(),
            ),
        };
        Self { value, at }
    }

    /// The tree as JSON. What JSON cannot say becomes a text; the checker has reported it.
    pub(crate) fn to_json(&self) -> String {
        self.to_json_with(|_, text| text.to_owned())
    }

    /// The same with what `shown` makes of each text; it gets the keys that lead there and the
    /// text.
    pub(crate) fn to_json_with(&self, shown: impl Fn(&[&str], &str) -> String) -> String {
        let mut writer = Writer {
            out: String::new(),
            path: Vec::new(),
            shown: &shown,
        };
        writer.write(self);
        writer.out
    }
}

struct Writer<'n> {
    out: String,
    path: Vec<&'n str>,
    shown: &'n dyn Fn(&[&str], &str) -> String,
}

impl<'n> Writer<'n> {
    fn write(&mut self, node: &'n Node) {
        match &node.value {
            Value::Null | Value::Invalid => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => match &number.json {
                Some(json) => self.out.push_str(json),
                None => self.text(&number.text),
            },
            Value::Text(text) => self.text(&(self.shown)(&self.path, &text.text)),
            Value::List(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.write(item);
                }
                self.out.push(']');
            }
            Value::Map(members) => {
                self.out.push('{');
                for (index, member) in members.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.text(&member.name);
                    self.out.push(':');
                    self.path.push(&member.name);
                    self.write(&member.value);
                    self.path.pop();
                }
                self.out.push('}');
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.out
            .push_str(&serde_json::Value::from(text).to_string());
    }
}
