//! JSON whose strings may be templates, such as a step's parameters.

use crate::environment::Environment;
use crate::template::Parts;
use crate::transform::{MAX_BYTES, too_large};
use crate::{
    Effort, EvaluationError, NoAdapters, ParseError, References, Scope, Template, Value, json,
};

/// Parsed document. Parts without a template are written as they stand.
#[derive(Debug, Clone)]
pub struct JsonTemplate {
    root: Node,
    references: References,
}

#[derive(Debug, Clone)]
enum Node {
    /// JSON as it stands.
    Literal(String),
    Template(Box<Parts>),
    List(Vec<Node>),
    /// Keys stand with their quotes.
    Object(Vec<(String, Node)>),
}

impl JsonTemplate {
    /// Parses JSON text. Offsets of errors are those of the strings in it, offsets of references
    /// are in each string.
    pub fn parse(text: &str) -> Result<Self, Vec<ParseError>> {
        json::check_text(text, json::MAX_DEPTH)
            .map_err(|fault| vec![ParseError::new(fault.offset, fault.message)])?;
        let mut parser = Parser {
            text,
            references: References::default(),
            errors: Vec::new(),
        };
        let root = parser.node(text.trim());
        if parser.errors.is_empty() {
            Ok(Self {
                root,
                references: parser.references,
            })
        } else {
            Err(parser.errors)
        }
    }

    /// Returns the names that its templates use from outside themselves.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Returns the texts that its expressions make of secret values of the instance. `is_secret`
    /// decides by the names that lead to a value. An expression that fails gives none.
    pub fn secret_texts(
        &self,
        scope: &Scope,
        is_secret: &dyn Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let mut texts = Vec::new();
        if self
            .references
            .instance_values
            .iter()
            .any(|value| is_secret(&value.names))
        {
            // As in `Template::secret_texts`.
            let effort = Effort::default();
            let scope = Scope {
                effort: &effort,
                ..*scope
            };
            self.root
                .secret_texts(&Environment::new(&scope), is_secret, &mut texts);
        }
        texts
    }

    /// Returns the places of templates with a part that renders to nothing, each with a sentence on
    /// the first such part. Calls no adapter.
    pub fn missing_parts(&self, scope: &Scope) -> Vec<(String, String)> {
        let scope = Scope {
            adapters: &NoAdapters,
            ..*scope
        };
        let mut found = Vec::new();
        self.root
            .missing_parts("", &Environment::new(&scope), &mut found);
        found
    }

    /// Appends the document. Members and items whose template gives undefined are left out.
    pub fn write(&self, scope: &Scope, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
        let start = out.len();
        let environment = Environment::new(scope);
        match self.root.write(&environment, out, start + MAX_BYTES) {
            Ok(true) => Ok(()),
            Ok(false) => {
                out.extend_from_slice(b"null");
                Ok(())
            }
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    references: References,
    errors: Vec<ParseError>,
}

impl Parser<'_> {
    /// Parses a node. Recurses as deep as the document, which has been checked.
    fn node(&mut self, json: &str) -> Node {
        let literal = || Node::Literal(json.to_owned());
        match json.as_bytes().first() {
            Some(b'"') if json.contains('{') || json.contains('\\') => self.string(json),
            Some(b'[') => {
                let items: Vec<_> = json::items(json).map(|item| self.node(item)).collect();
                if items.iter().all(Node::is_literal) {
                    literal()
                } else {
                    Node::List(items)
                }
            }
            Some(b'{') => {
                let members: Vec<_> = json::occurrences(json)
                    .map(|(key, value)| (key.to_owned(), self.node(value)))
                    .collect();
                if members.iter().all(|(_, member)| member.is_literal()) {
                    literal()
                } else {
                    Node::Object(members)
                }
            }
            Some(_) | None => literal(),
        }
    }

    fn string(&mut self, json: &str) -> Node {
        match Template::parse(&json::decode(json)) {
            Ok(template) if template.is_literal().is_some() => {}
            Ok(template) => {
                self.references.extend(template.references());
                return Node::Template(Box::new(template.into_parts()));
            }
            Err(errors) => {
                let offset = (json.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
                self.errors.extend(
                    errors
                        .into_iter()
                        .map(|error| ParseError { offset, ..error }),
                );
            }
        }
        Node::Literal(json.to_owned())
    }
}

impl Node {
    fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    fn secret_texts<'s>(
        &'s self,
        environment: &Environment<'s>,
        is_secret: &dyn Fn(&[String]) -> bool,
        texts: &mut Vec<String>,
    ) {
        match self {
            Self::Literal(_) => {}
            Self::Template(template) => template.secret_texts(environment, is_secret, texts),
            Self::List(items) => items
                .iter()
                .for_each(|item| item.secret_texts(environment, is_secret, texts)),
            Self::Object(members) => {
                members
                    .iter()
                    .for_each(|(_, member)| member.secret_texts(environment, is_secret, texts));
            }
        }
    }

    fn missing_parts<'s>(
        &'s self,
        place: &str,
        environment: &Environment<'s>,
        found: &mut Vec<(String, String)>,
    ) {
        match self {
            Self::Literal(_) => {}
            Self::Template(template) => {
                let sentence = template.missing_part(environment);
                found.extend(sentence.map(|sentence| (place.to_owned(), sentence)));
            }
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.missing_parts(&format!("{place}[{index}]"), environment, found);
                }
            }
            Self::Object(members) => {
                for (key, member) in members {
                    let name = json::decode(key);
                    let place = match place {
                        "" => name.into_owned(),
                        place => format!("{place}.{name}"),
                    };
                    member.missing_parts(&place, environment, found);
                }
            }
        }
    }

    /// Writes the node and returns true, unless its value is undefined.
    fn write<'s>(
        &'s self,
        environment: &Environment<'s>,
        out: &mut Vec<u8>,
        end: usize,
    ) -> Result<bool, EvaluationError> {
        match self {
            Self::Literal(json) => out.extend_from_slice(json.as_bytes()),
            Self::Template(template) => match template.evaluate(environment)? {
                Value::Undefined => return Ok(false),
                value => value.write_json(out),
            },
            Self::List(items) => {
                out.push(b'[');
                let mut any = false;
                for (index, item) in items.iter().enumerate() {
                    let before = out.len();
                    if any {
                        out.push(b',');
                    }
                    let written = item.write(environment, out, end);
                    if written.map_err(|error| error.within(&format!("[{index}]")))? {
                        any = true;
                    } else {
                        out.truncate(before);
                    }
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                let mut any = false;
                for (key, member) in members {
                    let before = out.len();
                    if any {
                        out.push(b',');
                    }
                    out.extend_from_slice(key.as_bytes());
                    out.push(b':');
                    let written = member.write(environment, out, end);
                    if written.map_err(|error| error.within(&json::decode(key)))? {
                        any = true;
                    } else {
                        out.truncate(before);
                    }
                }
                out.push(b'}');
            }
        }
        if out.len() > end {
            Err(too_large())
        } else {
            Ok(true)
        }
    }
}
