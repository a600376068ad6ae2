//! The compiler: turns the text of a schema into its program.

mod bounds;
mod object;
mod scalar;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::document::{Document, Kind, Value};
use crate::draft::{self, Draft};
use crate::node::{Applicator, Contains, Id, ListRules, Node, Program};
use crate::resources::{Place, Resources, is_schema};
use crate::{Error, MAX_SCHEMA_BYTES, check};

pub(crate) const UNKNOWN_DRAFT: &str = "names no draft that is known here: there are 2020-12, \
                                        2019-09, draft-07, draft-06 and draft-04";

/// Greatest number of schemas in a schema and the ones that it refers to.
const MAX_SCHEMAS: usize = 20_000;

/// Greatest amount of memory for all patterns of a schema, in bytes.
const MAX_PATTERN_MEMORY: usize = 8 * 1024 * 1024;

/// Treatment of the keyword `format`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Formats {
    Asserted,
    Ignored,
}

/// Compiles a schema.
pub(crate) fn compile(text: &str) -> Result<Program, Error> {
    let fault = |message: String| Error {
        pointer: String::new(),
        message,
    };
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(fault(format!(
            "is longer than {} KiB",
            MAX_SCHEMA_BYTES / 1024
        )));
    }
    let document =
        Document::read(text.to_owned()).map_err(|error| fault(format!("is not JSON: {error}")))?;
    let draft = match document.root().member("$schema") {
        None => Draft::DEFAULT,
        Some(uri) => uri
            .as_str()
            .and_then(|uri| Draft::named(&uri))
            .ok_or_else(|| Error {
                pointer: "/$schema".to_owned(),
                message: UNKNOWN_DRAFT.to_owned(),
            })?,
    };
    let resources = Resources::new(document, draft)?;
    let document = resources.document(Place::ROOT);
    // The errors of the compiler are plainer than those of the schema of schemas, so it runs first.
    let program = Compiler::new(resources, Formats::Asserted).program()?;
    check::first_fault(schema_of_schemas(draft), &document)?;
    Ok(program)
}

/// Returns the program of the schema of schemas of a draft.
fn schema_of_schemas(draft: Draft) -> &'static Program {
    static PROGRAMS: LazyLock<HashMap<Draft, Program>> = LazyLock::new(|| {
        let program = |draft: Draft| {
            let text = draft::published(draft.uri()).expect("every draft has its schema");
            let document = Document::read(text.into_owned()).expect("published schemas are JSON");
            let resources =
                Resources::new(document, draft).expect("published schemas have sound identifiers");
            (
                draft,
                Compiler::new(resources, Formats::Ignored)
                    .program()
                    .expect("published schemas compile"),
            )
        };
        Draft::ALL.into_iter().map(program).collect()
    });
    &PROGRAMS[&draft]
}

struct Compiler {
    resources: Resources,
    formats: Formats,
    places: Vec<Place>,
    ids: HashMap<Place, Id>,
    nodes: Vec<Node>,
    pattern_memory: usize,
    has_scope: bool,
}

/// The schema that is being compiled.
struct At<'d> {
    schema: Value<'d>,
    place: Place,
    draft: Draft,
}

impl<'d> At<'d> {
    fn of(&self, value: Value<'_>) -> Place {
        Place {
            index: value.index(),
            ..self.place
        }
    }

    fn get(&self, keyword: &str) -> Option<Value<'d>> {
        self.schema.member(keyword)
    }

    /// Returns a keyword that exists since that draft.
    fn since(&self, draft: Draft, keyword: &str) -> Option<Value<'d>> {
        if self.draft >= draft {
            self.get(keyword)
        } else {
            None
        }
    }
}

impl Compiler {
    fn new(resources: Resources, formats: Formats) -> Self {
        Self {
            resources,
            formats,
            places: Vec::new(),
            ids: HashMap::new(),
            nodes: Vec::new(),
            pattern_memory: 0,
            has_scope: false,
        }
    }

    fn program(mut self) -> Result<Program, Error> {
        let root = self.id(Place::ROOT);
        let mut dynamic = HashMap::new();
        let mut recursive = HashMap::new();
        // Compiling a node may lead to further nodes, and to further documents with anchors.
        while self.nodes.len() < self.places.len() || dynamic.len() < self.dynamic_anchors().count()
        {
            while self.nodes.len() < self.places.len() {
                if self.nodes.len() == MAX_SCHEMAS {
                    let message = format!("is one of more than {MAX_SCHEMAS} schemas");
                    return Err(self.resources.error(self.places[self.nodes.len()], message));
                }
                let node = self.node(self.places[self.nodes.len()])?;
                self.nodes.push(node);
            }
            for (key, place) in self.dynamic_anchors().collect::<Vec<_>>() {
                dynamic.insert(key, self.id(place));
            }
        }
        for resource in 0..self.resources.all.len() {
            if self.resources.all[resource].is_recursive
                && let Some(id) = self.ids.get(&self.resources.all[resource].root)
            {
                recursive.insert(resource as u32, *id);
            }
        }
        bounds::check(&self.nodes)
            .map_err(|(id, message)| self.resources.error(self.places[id as usize], message))?;
        Ok(Program {
            nodes: self.nodes,
            root,
            dynamic,
            recursive,
            has_scope: self.has_scope,
        })
    }

    fn dynamic_anchors(&self) -> impl Iterator<Item = ((u32, String), Place)> {
        let dynamic = self
            .resources
            .anchors
            .iter()
            .filter(|(_, anchor)| anchor.is_dynamic);
        dynamic.map(|(key, anchor)| (key.clone(), anchor.place))
    }

    /// Returns the node of the schema at a place, which is compiled later.
    fn id(&mut self, place: Place) -> Id {
        let places = &mut self.places;
        *self.ids.entry(place).or_insert_with(|| {
            places.push(place);
            places.len() as Id - 1
        })
    }

    fn node(&mut self, place: Place) -> Result<Node, Error> {
        let document: Arc<Document<'static>> = self.resources.document(place);
        let schema = document.value(place.index);
        let resource = self.resources.owner(place);
        let at = At {
            schema,
            place,
            draft: self.resources.all[resource as usize].draft,
        };
        let mut node = Node {
            resource,
            ..Node::default()
        };
        match schema.kind() {
            Kind::Boolean => node.verdict = schema.as_bool(),
            Kind::Object => {
                if !at.draft.has_siblings_of_ref() && at.get("$ref").is_some() {
                    self.references(&at, &mut node)?;
                    return Ok(node);
                }
                node.types = self.types(&at)?;
                node.options = self.options(&at)?;
                node.number = self.number_rules(&at)?;
                node.string = self.string_rules(&at)?;
                node.list = self.list_rules(&at)?;
                node.object = self.object_rules(&at)?;
                self.references(&at, &mut node)?;
                self.combinations(&at, &mut node)?;
                node.unevaluated_items =
                    self.schema(&at, at.since(Draft::TwentyNineteen, "unevaluatedItems"))?;
                node.unevaluated_members = self.schema(
                    &at,
                    at.since(Draft::TwentyNineteen, "unevaluatedProperties"),
                )?;
            }
            Kind::Null | Kind::Number | Kind::String | Kind::List => {
                return Err(self
                    .resources
                    .error(place, "is no schema: neither an object nor a boolean"));
            }
        }
        Ok(node)
    }

    fn references(&mut self, at: &At<'_>, node: &mut Node) -> Result<(), Error> {
        if let Some(reference) = at.get("$ref") {
            let target = self.target(at, reference)?;
            node.applied
                .push(Applicator::Reference(self.id(target.place)));
        }
        if let Some(reference) = at.since(Draft::TwentyTwenty, "$dynamicRef") {
            let target = self.target(at, reference)?;
            let id = self.id(target.place);
            node.applied.push(match target.dynamic {
                Some(name) => {
                    self.has_scope = true;
                    Applicator::Dynamic { target: id, name }
                }
                None => Applicator::Reference(id),
            });
        }
        if at.draft == Draft::TwentyNineteen
            && let Some(reference) = at.get("$recursiveRef")
        {
            let target = self.target(at, reference)?;
            let id = self.id(target.place);
            let owner = self.resources.owner(target.place);
            let is_recursive = self.resources.all[owner as usize].is_recursive;
            self.has_scope |= is_recursive;
            node.applied.push(if is_recursive {
                Applicator::Recursive { target: id }
            } else {
                Applicator::Reference(id)
            });
        }
        Ok(())
    }

    fn target(
        &mut self,
        at: &At<'_>,
        reference: Value<'_>,
    ) -> Result<crate::resources::Target, Error> {
        let owner = self.resources.owner(at.place);
        let text = reference
            .as_str()
            .ok_or_else(|| self.resources.error(at.of(reference), "must be a string"))?;
        self.resources
            .resolve(&text, owner)
            .map_err(|message| self.resources.error(at.of(reference), message))
    }

    fn combinations(&mut self, at: &At<'_>, node: &mut Node) -> Result<(), Error> {
        for (keyword, applied) in [
            ("allOf", Applicator::All as fn(Vec<Id>) -> Applicator),
            ("anyOf", Applicator::Any),
            ("oneOf", Applicator::One),
        ] {
            if let Some(list) = at.get(keyword) {
                node.applied.push(applied(self.schemas(at, list)?));
            }
        }
        if let Some(id) = self.schema(at, at.get("not"))? {
            node.applied.push(Applicator::Not(id));
        }
        if let Some(test) = self.schema(at, at.since(Draft::Seven, "if"))? {
            let then = self.schema(at, at.get("then"))?;
            let otherwise = self.schema(at, at.get("else"))?;
            node.applied.push(Applicator::If {
                test,
                then,
                otherwise,
            });
        }
        Ok(())
    }

    fn list_rules(&mut self, at: &At<'_>) -> Result<Option<Box<ListRules>>, Error> {
        let mut rules = ListRules {
            min: self.count(at, "minItems")?,
            max: self.count(at, "maxItems")?,
            is_unique: at
                .get("uniqueItems")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            ..ListRules::default()
        };
        let items = at.get("items");
        match items.filter(|items| items.kind() == Kind::List && at.draft < Draft::TwentyTwenty) {
            Some(first) => {
                rules.first = self.schemas(at, first)?;
                rules.rest = self.schema(at, at.get("additionalItems"))?;
            }
            None => {
                rules.rest = self.schema(at, items)?;
                if let Some(first) = at.since(Draft::TwentyTwenty, "prefixItems") {
                    rules.first = self.schemas(at, first)?;
                }
            }
        }
        if let Some(schema) = self.schema(at, at.since(Draft::Six, "contains"))? {
            let has_counts = at.draft >= Draft::TwentyNineteen;
            rules.contains = Some(Contains {
                schema,
                min: if has_counts {
                    self.count(at, "minContains")?.unwrap_or(1)
                } else {
                    1
                },
                max: if has_counts {
                    self.count(at, "maxContains")?
                } else {
                    None
                },
                evaluates: at.draft >= Draft::TwentyTwenty,
            });
        }
        let asks = !rules.first.is_empty()
            || rules.rest.is_some()
            || rules.contains.is_some()
            || rules.min.is_some()
            || rules.max.is_some()
            || rules.is_unique;
        Ok(asks.then(|| Box::new(rules)))
    }

    /// Returns the node of a keyword's schema.
    fn schema(&mut self, at: &At<'_>, value: Option<Value<'_>>) -> Result<Option<Id>, Error> {
        let Some(value) = value else { return Ok(None) };
        if !is_schema(value) {
            return Err(self.resources.error(
                at.of(value),
                "is no schema: neither an object nor a boolean",
            ));
        }
        Ok(Some(self.id(at.of(value))))
    }

    fn schemas(&mut self, at: &At<'_>, list: Value<'_>) -> Result<Vec<Id>, Error> {
        if list.kind() != Kind::List {
            return Err(self
                .resources
                .error(at.of(list), "must be a list of schemas"));
        }
        list.items()
            .filter_map(|item| self.schema(at, Some(item)).transpose())
            .collect()
    }
}
