//! Writes an object as XML.

use super::{is_allowed, is_name};
use crate::transform::{BoundedText, TransformResult};
use crate::value::Value;
use crate::{Effort, EvaluationError};

/// Greatest depth to which elements nest.
const MAX_DEPTH: usize = 200;

/// Writes a value as the content of a root element.
pub(in crate::transform) fn write<'s>(
    value: &Value<'s>,
    root: &str,
    effort: &Effort,
) -> TransformResult<'s> {
    if matches!(value, Value::List(_)) {
        return Err(EvaluationError::mapping(format!(
            "expected one value for the element `{root}`, found a list"
        )));
    }
    let mut writer = Writer {
        out: BoundedText::default(),
        effort,
    };
    writer.element(root, value, 0)?;
    effort.check()?;
    Ok(Value::plain(writer.out.into_text()))
}

struct Writer<'e> {
    out: BoundedText,
    effort: &'e Effort,
}

impl Writer<'_> {
    fn element(&mut self, name: &str, value: &Value, depth: usize) -> Result<(), EvaluationError> {
        if depth == MAX_DEPTH {
            return Err(EvaluationError::mapping(format!(
                "elements nest deeper than {MAX_DEPTH} levels"
            )));
        }
        if !is_name(name) {
            let shown: String = name.chars().take(40).collect();
            return Err(EvaluationError::mapping(format!(
                "the key {shown:?} is no name of XML"
            )));
        }
        match value {
            Value::Undefined => Ok(()),
            Value::List(list) => {
                for item in self.effort.items(list) {
                    if item.starts_with('[') {
                        return Err(EvaluationError::mapping(format!(
                            "the element `{name}` has a list within a list"
                        )));
                    }
                    self.element(name, &Value::from_json(item), depth)?;
                }
                Ok(())
            }
            Value::Object(object) => self.object(name, object, depth),
            Value::Null => self.tag(name, "/>"),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.tag(name, ">")?;
                self.escaped(&value.rendered(), "")?;
                self.end(name)
            }
        }
    }

    /// Writes attributes first, then the text, then the elements, wherever they stand.
    fn object(&mut self, name: &str, object: &str, depth: usize) -> Result<(), EvaluationError> {
        let members: Vec<_> = self
            .effort
            .members(object)
            .into_iter()
            .map(|(key, value)| (crate::json::decode(key), Value::from_json(value)))
            .collect();
        self.tag(name, "")?;
        for (key, value) in &members {
            if let Some(attribute) = key.strip_prefix('@') {
                self.attribute(attribute, value)?;
            }
        }
        self.out.push(">")?;
        for (_, value) in members.iter().filter(|(key, _)| key == "#text") {
            self.escaped(&plain(value, "#text")?, "")?;
        }
        for (key, value) in &members {
            if !key.starts_with('@') && key != "#text" {
                self.element(key, value, depth + 1)?;
            }
        }
        self.end(name)
    }

    fn attribute(&mut self, name: &str, value: &Value) -> Result<(), EvaluationError> {
        if !is_name(name) {
            let shown: String = name.chars().take(40).collect();
            return Err(EvaluationError::mapping(format!(
                "the key \"@{shown}\" is no name of XML"
            )));
        }
        let text = plain(value, &format!("@{name}"))?;
        self.out.push(" ")?;
        self.out.push(name)?;
        self.out.push("=\"")?;
        self.escaped(&text, "\t\n")?;
        self.out.push("\"")
    }

    fn tag(&mut self, name: &str, end: &str) -> Result<(), EvaluationError> {
        self.out.push("<")?;
        self.out.push(name)?;
        self.out.push(end)
    }

    fn end(&mut self, name: &str) -> Result<(), EvaluationError> {
        self.out.push("</")?;
        self.out.push(name)?;
        self.out.push(">")
    }

    /// Writes a text. What a reader would take for something else is written as a reference; of
    /// blanks these are a carriage return and those in `blanks`.
    fn escaped(&mut self, text: &str, blanks: &str) -> Result<(), EvaluationError> {
        for letter in text.chars() {
            match letter {
                '&' => self.out.push("&amp;")?,
                '<' => self.out.push("&lt;")?,
                '>' => self.out.push("&gt;")?,
                '"' => self.out.push("&quot;")?,
                '\r' => self.out.push("&#13;")?,
                blank if blanks.contains(blank) => {
                    self.out.push(&format!("&#{};", u32::from(blank)))?;
                }
                letter if is_allowed(letter) => self.out.push(letter.encode_utf8(&mut [0; 4]))?,
                letter => {
                    return Err(EvaluationError::mapping(format!(
                        "the character U+{:04X} is not allowed in XML",
                        u32::from(letter)
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Returns the text of an attribute or of `#text`.
fn plain(value: &Value, name: &str) -> Result<String, EvaluationError> {
    value
        .text()
        .map(std::borrow::Cow::into_owned)
        .ok_or_else(|| {
            EvaluationError::mapping(format!(
                "expected a string, a number or a boolean in `{name}`, found {}",
                value.type_name()
            ))
        })
}
