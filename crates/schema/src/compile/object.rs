//! Keywords of objects.

use super::{At, Compiler};
use crate::Error;
use crate::document::{Kind, Value};
use crate::draft::Draft;
use crate::node::{Dependency, Names, ObjectRules};
use crate::resources::is_schema;

impl Compiler {
    pub(super) fn object_rules(&mut self, at: &At<'_>) -> Result<Option<Box<ObjectRules>>, Error> {
        let mut rules = ObjectRules {
            min: self.count(at, "minProperties")?,
            max: self.count(at, "maxProperties")?,
            additional: self.schema(at, at.get("additionalProperties"))?,
            property_names: self.schema(at, at.since(Draft::Six, "propertyNames"))?,
            dependencies: self.dependencies(at)?,
            ..ObjectRules::default()
        };
        if let Some(value) = at.get("required") {
            rules.required = self.names(at, value)?;
        }
        rules.names = self.known(at, &rules.required)?;
        for (key, schema) in self.members(at, "patternProperties")? {
            let pattern = self.pattern(at, schema, &key)?;
            if let Some(id) = self.schema(at, Some(schema))? {
                rules.patterns.push((pattern, id));
            }
        }
        let asks = !rules.names.all().is_empty()
            || !rules.patterns.is_empty()
            || !rules.dependencies.is_empty()
            || rules.additional.is_some()
            || rules.property_names.is_some()
            || rules.min.is_some()
            || rules.max.is_some();
        Ok(asks.then(|| Box::new(rules)))
    }

    /// Returns the members with schemas of their own, and the required ones.
    fn known(&mut self, at: &At<'_>, required: &[Box<str>]) -> Result<Names, Error> {
        let mut places: std::collections::HashMap<Box<str>, Option<usize>> = required
            .iter()
            .enumerate()
            .map(|(place, name)| (name.clone(), Some(place)))
            .collect();
        let mut noted = Vec::new();
        for (key, schema) in self.members(at, "properties")? {
            let id = self.schema(at, Some(schema))?;
            let name: Box<str> = key.into();
            let place = places.remove(&name).flatten();
            noted.push((name, id, place));
        }
        noted.extend(places.into_iter().map(|(name, place)| (name, None, place)));
        Ok(Names::new(noted))
    }

    fn dependencies(&mut self, at: &At<'_>) -> Result<Vec<Dependency>, Error> {
        let mut dependencies = Vec::new();
        let of_names = |draft: Draft| draft >= Draft::TwentyNineteen;
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            if keyword != "dependencies" && !of_names(at.draft) {
                continue;
            }
            for (name, value) in self.members(at, keyword)? {
                let name = name.into_boxed_str();
                dependencies.push(if is_schema(value) && keyword != "dependentRequired" {
                    Dependency {
                        name,
                        required: Vec::new(),
                        schema: self.schema(at, Some(value))?,
                    }
                } else {
                    Dependency {
                        name,
                        required: self.names(at, value)?,
                        schema: None,
                    }
                });
            }
        }
        Ok(dependencies)
    }

    /// Reads a list of names, each once.
    fn names(&self, at: &At<'_>, value: Value<'_>) -> Result<Vec<Box<str>>, Error> {
        let fault = |value: Value<'_>| {
            self.resources
                .error(at.of(value), "must be a list of names")
        };
        if value.kind() != Kind::List {
            return Err(fault(value));
        }
        let mut seen = std::collections::HashSet::new();
        let mut names: Vec<Box<str>> = Vec::new();
        for item in value.items() {
            let name: Box<str> = item.as_str().ok_or_else(|| fault(item))?.into();
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns the members of a keyword's object.
    fn members<'d>(&self, at: &At<'d>, keyword: &str) -> Result<Vec<(String, Value<'d>)>, Error> {
        let Some(value) = at.get(keyword) else {
            return Ok(Vec::new());
        };
        if value.kind() != Kind::Object {
            return Err(self.resources.error(at.of(value), "must be an object"));
        }
        Ok(value
            .members()
            .map(|(key, value)| (key.name().into_owned(), value))
            .collect())
    }
}
