//! Resolution of the references of a schema: to its embedded resources and anchors, and to the
//! published schemas of schemas. Nothing is ever fetched.

mod walk;

use std::collections::HashMap;
use std::sync::Arc;

use url::Url;

use crate::Error;
use crate::budget::Budget;
use crate::document::{Document, Kind, Paths, Value};
use crate::draft::{self, Draft};
use crate::violation;

pub(crate) const TOO_MUCH_WORK: &str =
    "takes too much work to compile: there are too many references and patterns";

/// Steps of comparing the name of one member.
const STEPS_PER_NEIGHBOUR: u64 = 4;

/// URI of a schema without an identifier. No reference can name it.
const NAMELESS: &str = "schema:///";

/// A value of one of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) document: u32,
    pub(crate) index: u32,
}

impl Place {
    /// Root of the schema that is compiled.
    pub(crate) const ROOT: Self = Self {
        document: 0,
        index: 0,
    };
}

/// A schema with a URI of its own.
#[derive(Debug)]
pub(crate) struct Resource {
    uri: Url,
    pub(crate) draft: Draft,
    pub(crate) root: Place,
    /// Its root has `$recursiveAnchor: true`.
    pub(crate) is_recursive: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Anchor {
    pub(crate) place: Place,
    pub(crate) is_dynamic: bool,
}

#[derive(Debug)]
pub(crate) struct Resources {
    /// Budget for compiling the schema.
    pub(crate) budget: Budget,
    documents: Vec<Arc<Document<'static>>>,
    pub(crate) all: Vec<Resource>,
    by_uri: HashMap<String, u32>,
    pub(crate) anchors: HashMap<(u32, String), Anchor>,
    /// Resource of each schema that has been visited.
    owners: HashMap<Place, u32>,
}

/// Target of a reference.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) place: Place,
    /// The name of the dynamic anchor that it names.
    pub(crate) dynamic: Option<String>,
}

impl Resources {
    /// Creates the resources of a document, under the identifiers that it declares.
    pub(crate) fn new(document: Document<'static>, draft: Draft) -> Result<Self, Error> {
        let mut resources = Self {
            budget: Budget::of_schema(),
            documents: Vec::new(),
            all: Vec::new(),
            by_uri: HashMap::new(),
            anchors: HashMap::new(),
            owners: HashMap::new(),
        };
        resources.add(document, NAMELESS, draft)?;
        Ok(resources)
    }

    pub(crate) fn document(&self, place: Place) -> Arc<Document<'static>> {
        Arc::clone(&self.documents[place.document as usize])
    }

    /// Returns the resource that a schema is part of.
    pub(crate) fn owner(&self, place: Place) -> u32 {
        self.owners.get(&place).copied().unwrap_or_default()
    }

    pub(crate) fn error(&self, place: Place, message: impl Into<String>) -> Error {
        let pointer = violation::pointer(
            &Paths::new(&self.documents[place.document as usize]).of(place.index),
        );
        Error {
            pointer,
            message: message.into(),
        }
    }

    /// Resolves `reference`, which stands in the resource `from`. The error is a message.
    pub(crate) fn resolve(&mut self, reference: &str, from: u32) -> Result<Target, String> {
        let (address, fragment) = match reference.split_once('#') {
            Some((address, fragment)) => (address, Some(fragment)),
            None => (reference, None),
        };
        let resource = if address.is_empty() {
            from
        } else {
            self.resource(address, from)?
        };
        let fragment = percent_encoding::percent_decode_str(fragment.unwrap_or_default());
        let fragment = fragment
            .decode_utf8()
            .map_err(|_| "is not UTF-8 after `#`".to_owned())?;
        if fragment.is_empty() {
            return Ok(Target {
                place: self.all[resource as usize].root,
                dynamic: None,
            });
        }
        if fragment.starts_with('/') {
            let place = self.point(resource, &fragment)?;
            return Ok(Target {
                place,
                dynamic: None,
            });
        }
        let anchor = self.anchors.get(&(resource, fragment.to_string()));
        let anchor =
            anchor.ok_or_else(|| "leads to an anchor that is not in the schema".to_owned())?;
        Ok(Target {
            place: anchor.place,
            dynamic: anchor.is_dynamic.then(|| fragment.into_owned()),
        })
    }

    fn resource(&mut self, address: &str, from: u32) -> Result<u32, String> {
        let outside = || "leads out of the schema, and nothing is fetched".to_owned();
        let uri = self.all[from as usize]
            .uri
            .join(address)
            .map_err(|_| outside())?;
        if let Some(resource) = self.by_uri.get(uri.as_str()) {
            return Ok(*resource);
        }
        let text = draft::published(uri.as_str()).ok_or_else(outside)?;
        let document = Document::read(text.into_owned()).map_err(|error| error.to_string())?;
        let draft = document
            .root()
            .member("$schema")
            .and_then(|uri| Draft::named(&uri.as_str()?));
        self.add(document, uri.as_str(), draft.unwrap_or(Draft::DEFAULT))
            .map_err(|error| error.to_string())
    }

    /// Resolves a JSON pointer from the root of a resource.
    fn point(&mut self, resource: u32, pointer: &str) -> Result<Place, String> {
        let absent = || "leads to a place that is not in the schema".to_owned();
        let root = self.all[resource as usize].root;
        let document = self.document(root);
        let mut owner = resource;
        let mut at = document.value(root.index);
        for step in pointer.split('/').skip(1) {
            // The search compares all members.
            if !self.budget.spend(STEPS_PER_NEIGHBOUR * at.size()) {
                return Err(TOO_MUCH_WORK.to_owned());
            }
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match at.kind() {
                Kind::Object => at.member(&step).ok_or_else(absent)?,
                Kind::List => {
                    let is_plain = step == "0" || !step.starts_with(['0', '+']);
                    let index: usize = step.parse().ok().filter(|_| is_plain).ok_or_else(absent)?;
                    at.items().nth(index).ok_or_else(absent)?
                }
                Kind::Null | Kind::Boolean | Kind::Number | Kind::String => return Err(absent()),
            };
            let place = Place {
                document: root.document,
                index: at.index(),
            };
            owner = self.owners.get(&place).copied().unwrap_or(owner);
        }
        let place = Place {
            document: root.document,
            index: at.index(),
        };
        if !self.owners.contains_key(&place) {
            if !is_schema(at) {
                return Err("leads to something that is no schema".to_owned());
            }
            self.walk(&document, place, owner)
                .map_err(|error| error.to_string())?;
        }
        Ok(place)
    }

    /// Adds a document under a URI. Returns its resource.
    fn add(&mut self, document: Document<'static>, uri: &str, draft: Draft) -> Result<u32, Error> {
        let number = self.documents.len() as u32;
        self.documents.push(Arc::new(document));
        let root = Place {
            document: number,
            index: 0,
        };
        let uri = Url::parse(uri).map_err(|error| self.error(root, error.to_string()))?;
        let resource = self.add_resource(Resource {
            uri,
            draft,
            root,
            is_recursive: false,
        });
        let document = self.document(root);
        self.walk(&document, root, resource)?;
        Ok(self.owner(root))
    }

    fn add_resource(&mut self, resource: Resource) -> u32 {
        let number = self.all.len() as u32;
        self.by_uri.insert(resource.uri.as_str().to_owned(), number);
        self.all.push(resource);
        number
    }
}

/// Returns whether a value may be a schema.
pub(crate) fn is_schema(value: Value<'_>) -> bool {
    matches!(value.kind(), Kind::Object | Kind::Boolean)
}
