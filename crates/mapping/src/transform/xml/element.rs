//! An element that is read: its members as JSON, which grow as the document goes on.

use std::collections::HashMap;

use crate::effort::Held;
use crate::{Effort, EvaluationError, json};

/// Bytes of memory that a name in an element takes besides its text.
const PER_NAME: usize = 160;

pub(super) struct Element {
    pub name: String,
    /// Attributes, as members of an object.
    attributes: Vec<u8>,
    children: Vec<Child>,
    places: HashMap<String, usize>,
    text: String,
}

/// Elements of one name within another, as JSON with commas between them.
struct Child {
    key: Vec<u8>,
    json: Vec<u8>,
    count: usize,
}

impl Element {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            attributes: Vec::new(),
            children: Vec::new(),
            places: HashMap::new(),
            text: String::new(),
        }
    }

    pub fn attribute(&mut self, name: &str, value: &str) {
        if !self.attributes.is_empty() {
            self.attributes.push(b',');
        }
        json::write_string(&format!("@{name}"), &mut self.attributes);
        self.attributes.push(b':');
        json::write_string(value, &mut self.attributes);
    }

    pub fn push_text(&mut self, text: &str, held: &mut Held) -> Result<(), EvaluationError> {
        held.add(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds an element that has ended.
    pub fn push(
        &mut self,
        child: &Self,
        held: &mut Held,
        effort: &Effort,
    ) -> Result<(), EvaluationError> {
        let place = match self.places.get(&child.name) {
            Some(place) => *place,
            None => {
                held.add(PER_NAME + 2 * child.name.len())?;
                let mut key = Vec::new();
                json::write_string(&child.name, &mut key);
                self.children.push(Child {
                    key,
                    json: Vec::new(),
                    count: 0,
                });
                let place = self.children.len() - 1;
                self.places.insert(child.name.clone(), place);
                place
            }
        };
        let Some(known) = self.children.get_mut(place) else {
            return Ok(());
        };
        let before = known.json.len();
        if known.count > 0 {
            known.json.push(b',');
        }
        child.write(&mut known.json);
        known.count += 1;
        held.add(known.json.len() - before)?;
        effort.check_count(known.count)
    }

    /// Appends the value of the element.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.attributes.is_empty() && self.children.is_empty() {
            json::write_string(&self.text, out);
            return;
        }
        out.push(b'{');
        let start = out.len();
        out.extend_from_slice(&self.attributes);
        for child in &self.children {
            separate(out, start);
            out.extend_from_slice(&child.key);
            out.push(b':');
            if child.count > 1 {
                out.push(b'[');
            }
            out.extend_from_slice(&child.json);
            if child.count > 1 {
                out.push(b']');
            }
        }
        let is_mixed = !self.children.is_empty();
        let text = if is_mixed {
            self.text.trim()
        } else {
            &self.text
        };
        if !text.trim().is_empty() {
            separate(out, start);
            out.extend_from_slice(b"\"#text\":");
            json::write_string(text, out);
        }
        out.push(b'}');
    }
}

fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b',');
    }
}
