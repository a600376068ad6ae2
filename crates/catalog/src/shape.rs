//! Shapes of answers, from samples: types and members, none of their values. Shapes of several
//! samples become one, shapes of two times are compared, and a shape is shown as JSON Schema.
//! Everything is bounded, since samples are foreign.

mod compare;
mod infer;

use std::collections::{BTreeMap, BTreeSet};

use kanat_model::Mask;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use compare::{Change, compare};

/// Shape of the JSON values at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// How many values were seen here.
    seen: u64,
    types: BTreeSet<Type>,
    /// How many of them were objects.
    #[serde(default, skip_serializing_if = "is_zero")]
    objects: u64,
    /// The members of the objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<String, Shape>,
    /// The objects have names of all kinds: what stands under any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    any_member: Option<Box<Shape>>,
    /// The items of the lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    items: Option<Box<Shape>>,
}

kanat_model::texts! {
    /// A type of JSON Schema.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Type {
        /// A list.
        Array = "array",
        /// True or false.
        Boolean = "boolean",
        /// A number written without point and exponent.
        Integer = "integer",
        /// Null.
        Null = "null",
        /// A number written with one of them.
        Number = "number",
        /// An object.
        Object = "object",
        /// A text.
        String = "string",
    }
}

/// An object with more members than this has names that say nothing: it is taken for a map.
const MAX_MEMBERS: usize = 200;

impl Shape {
    /// Returns whether there was no sample.
    pub fn is_empty(&self) -> bool {
        self.seen == 0
    }

    /// How many values were seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Takes up what another shape has seen at the same place.
    pub fn merge(&mut self, other: Self) {
        self.seen = self.seen.saturating_add(other.seen);
        self.objects = self.objects.saturating_add(other.objects);
        self.types.extend(other.types);
        for (name, shape) in other.members {
            self.member(name, shape);
        }
        if let Some(shape) = other.any_member {
            self.generalize();
            self.any(*shape);
        }
        if let Some(items) = other.items {
            self.items.get_or_insert_default().merge(*items);
        }
    }

    /// Returns the shape with the mask in the place of secrets in names: some providers write what
    /// they were sent into their answers.
    #[must_use]
    pub fn masked(self, mask: &Mask) -> Self {
        let inner = |shape: Option<Box<Self>>| shape.map(|shape| Box::new(shape.masked(mask)));
        let mut masked = Self {
            members: BTreeMap::new(),
            any_member: inner(self.any_member),
            items: inner(self.items),
            ..self
        };
        for (name, shape) in self.members {
            masked.member(mask.apply(&name).into_owned(), shape.masked(mask));
        }
        masked
    }

    /// As JSON Schema. A member is required when every object had it.
    pub fn to_schema(&self) -> Value {
        let mut schema = Map::new();
        let types: Vec<&str> = self.shown_types().map(Type::as_str).collect();
        match types.as_slice() {
            [] => return json!({}),
            [only] => schema.insert("type".to_owned(), json!(only)),
            several => schema.insert("type".to_owned(), json!(several)),
        };
        if self.types.contains(&Type::Object) {
            let shown: Map<String, Value> = self
                .members
                .iter()
                .map(|(name, shape)| (name.clone(), shape.to_schema()))
                .collect();
            let always = self
                .members
                .iter()
                .filter(|(_, shape)| shape.seen >= self.objects);
            let required: Vec<&str> = always.map(|(name, _)| name.as_str()).collect();
            if !required.is_empty() {
                schema.insert("required".to_owned(), json!(required));
            }
            if !shown.is_empty() {
                schema.insert("properties".to_owned(), Value::Object(shown));
            }
            if let Some(any) = &self.any_member {
                schema.insert("additionalProperties".to_owned(), any.to_schema());
            }
        }
        if let Some(items) = &self.items {
            schema.insert("items".to_owned(), items.to_schema());
        }
        Value::Object(schema)
    }

    /// The types, of which a number covers an integer.
    fn shown_types(&self) -> impl Iterator<Item = Type> + '_ {
        let covered = self.types.contains(&Type::Number);
        self.types
            .iter()
            .copied()
            .filter(move |kind| !(covered && *kind == Type::Integer))
    }

    fn member(&mut self, name: String, shape: Self) {
        if self.any_member.is_some() {
            return self.any(shape);
        }
        self.members.entry(name).or_default().merge(shape);
        if self.members.len() > MAX_MEMBERS {
            self.generalize();
        }
    }

    /// Forgets names.
    fn generalize(&mut self) {
        let mut any = self.any_member.take().unwrap_or_default();
        for shape in std::mem::take(&mut self.members).into_values() {
            any.merge(shape);
        }
        self.any_member = Some(any);
    }

    fn any(&mut self, shape: Self) {
        self.any_member.get_or_insert_default().merge(shape);
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;
