//! The walk through a schema that finds the schemas in it, their identifiers and their anchors.

use url::Url;

use super::{Anchor, Place, Resource, Resources, TOO_MUCH_WORK, is_schema};
use crate::Error;
use crate::document::{Document, Kind, Value};
use crate::draft::Draft;

/// Steps of visiting one schema, without its members.
const STEPS_PER_SCHEMA: u64 = 20;

impl Resources {
    /// Notes the schema at `place`, part of the resource `owner`, and all schemas in it.
    pub(super) fn walk(
        &mut self,
        document: &Document<'static>,
        place: Place,
        owner: u32,
    ) -> Result<(), Error> {
        let mut open = vec![(place.index, owner)];
        while let Some((index, owner)) = open.pop() {
            let place = Place { index, ..place };
            let schema = document.value(index);
            if !self.budget.spend(STEPS_PER_SCHEMA + schema.size()) {
                return Err(self.error(place, TOO_MUCH_WORK));
            }
            let owner = self.identify(schema, place, owner)?;
            self.owners.insert(place, owner);
            for (key, value) in schema.members() {
                let mut inner = |schema: Value<'_>| {
                    if is_schema(schema) {
                        open.push((schema.index(), owner));
                    }
                };
                match (&*key.name(), value.kind()) {
                    (
                        "additionalProperties"
                        | "additionalItems"
                        | "items"
                        | "contains"
                        | "propertyNames"
                        | "not"
                        | "if"
                        | "then"
                        | "else"
                        | "unevaluatedItems"
                        | "unevaluatedProperties"
                        | "contentSchema",
                        Kind::Object | Kind::Boolean,
                    ) => inner(value),
                    ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Kind::List) => {
                        value.items().for_each(inner);
                    }
                    (
                        "properties" | "patternProperties" | "dependentSchemas" | "dependencies"
                        | "$defs" | "definitions",
                        Kind::Object,
                    ) => value.members().for_each(|(_, schema)| inner(schema)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the resource of a schema in `owner`, a new one when it has an identifier. Notes its
    /// anchors.
    fn identify(&mut self, schema: Value<'_>, place: Place, owner: u32) -> Result<u32, Error> {
        let text = |name: &str| schema.member(name).and_then(Value::as_str);
        let draft = self.all[owner as usize].draft;
        if !draft.has_siblings_of_ref() && schema.member("$ref").is_some() {
            return Ok(owner);
        }
        let id = text(draft.id_keyword());
        let declared = text("$schema").filter(|_| id.is_some() || place.index == 0);
        let draft = match declared.as_deref() {
            Some(uri) => Draft::named(uri).ok_or_else(|| {
                let at = schema.member("$schema").map_or(place, |value| Place {
                    index: value.index(),
                    ..place
                });
                self.error(at, crate::compile::UNKNOWN_DRAFT)
            })?,
            None => draft,
        };
        let id = text(draft.id_keyword());
        let mut owner = owner;
        if let Some(id) = id {
            let (address, fragment) = id.split_once('#').unwrap_or((&id, ""));
            if !address.is_empty() {
                let uri = self.all[owner as usize]
                    .uri
                    .join(address)
                    .or_else(|_| Url::parse(address));
                let uri = uri.map_err(|_| {
                    self.error(
                        place,
                        format!("has an `{}` that is no URI", draft.id_keyword()),
                    )
                })?;
                if self
                    .by_uri
                    .get(uri.as_str())
                    .is_some_and(|known| self.all[*known as usize].root != place)
                {
                    return Err(self.error(place, "has the identifier of another schema"));
                }
                owner = self.add_resource(Resource {
                    uri,
                    draft,
                    root: place,
                    is_recursive: false,
                });
            }
            if !fragment.is_empty() && draft <= Draft::Seven {
                self.anchor(owner, fragment, place, AnchorKind::Plain)?;
            }
        }
        if draft >= Draft::TwentyNineteen {
            if let Some(name) = text("$anchor") {
                self.anchor(owner, &name, place, AnchorKind::Plain)?;
            }
            if let Some(name) = text("$dynamicAnchor").filter(|_| draft >= Draft::TwentyTwenty) {
                self.anchor(owner, &name, place, AnchorKind::Dynamic)?;
            }
        }
        if draft == Draft::TwentyNineteen && self.all[owner as usize].root == place {
            let is_recursive = schema.member("$recursiveAnchor").and_then(Value::as_bool);
            self.all[owner as usize].is_recursive = is_recursive.unwrap_or_default();
        }
        Ok(owner)
    }

    fn anchor(
        &mut self,
        owner: u32,
        name: &str,
        place: Place,
        kind: AnchorKind,
    ) -> Result<(), Error> {
        let is_dynamic = matches!(kind, AnchorKind::Dynamic);
        let former = self
            .anchors
            .insert((owner, name.to_owned()), Anchor { place, is_dynamic });
        match former {
            Some(former) if former.place != place => {
                Err(self.error(place, "has the anchor of another schema"))
            }
            _ => Ok(()),
        }
    }
}

/// Kind of an anchor.
enum AnchorKind {
    Plain,
    Dynamic,
}
