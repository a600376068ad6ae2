//! From the parser's events to a tree, without recursion and within bounds.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle, Tag};

use super::anchors::anchors;
use super::syntax::{QUOTE_THE_TEMPLATE, diagnostic, position};
use super::{
    MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_SCALAR_BYTES, Member, Node, Text, Value, member_path,
    scalar,
};
use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Position};

/// The one document of a text. Diagnostics may come with a tree, when they do not keep it from
/// being read on.
pub(crate) fn read(yaml: &str) -> (Option<Node>, Vec<Diagnostic>) {
    let mut composer = Composer {
        yaml,
        ..Composer::default()
    };
    let tree = composer.compose().unwrap_or_else(|diagnostic| {
        // What the parser trips over may be what has been reported already.
        if !composer
            .diagnostics
            .iter()
            .any(|known| known.message == diagnostic.message)
        {
            composer.diagnostics.push(diagnostic);
        }
        None
    });
    (tree, composer.diagnostics)
}

const START: Position = Position { line: 1, column: 1 };

#[derive(Default)]
struct Composer<'y> {
    yaml: &'y str,
    /// The collections that are open, outermost first.
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchor>,
    /// Size of the tree so far, aliases counted as often as they are used.
    size: Size,
    diagnostics: Vec<Diagnostic>,
}

/// A finished node that aliases may repeat.
struct Anchor {
    node: Node,
    size: Size,
    depth: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

struct Open {
    anchor: usize,
    at: Position,
    before: Size,
    /// How deep its deepest finished member goes below it.
    depth: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        members: Vec<Member>,
        seen: HashMap<String, u32>,
        key: Option<Key>,
        style: StructureStyle,
        unquoted_template: bool,
    },
}

/// A key whose value comes next.
enum Key {
    Name(String, Position),
    /// Reported, by its name where it has one; its value goes nowhere.
    Wrong(Option<String>),
}

impl<'y> Composer<'y> {
    fn compose(&mut self) -> Result<Option<Node>, Diagnostic> {
        if self.yaml.len() > MAX_BYTES {
            let message = format!(
                "found {} bytes, expected at most {MAX_BYTES}",
                self.yaml.len()
            );
            return Err(Diagnostic::error(START, "", message));
        }
        let mut options = granit_parser::options! { emit_unresolved_aliases: true };
        options.set_emit_comments(false);
        let mut documents = 0;
        for next in Parser::new_from_str_with_options(self.yaml, options) {
            let (event, span) =
                next.map_err(|error| diagnostic(self.yaml, &error, &self.path()))?;
            if let Event::DocumentStart(..) = event {
                documents += 1;
                if documents > 1 {
                    let message = "found a second document, expected one";
                    return Err(Diagnostic::error(position(&span.start), "", message));
                }
            }
            self.event(event, &span)?;
            if self.diagnostics.len() >= MAX_DIAGNOSTICS {
                return Ok(None);
            }
        }
        match self.root.take() {
            Some(root) => Ok(Some(root)),
            None => Err(Diagnostic::error(
                START,
                "",
                "found an empty text, expected a flow definition",
            )),
        }
    }

    fn event(&mut self, event: Event<'y>, span: &Span) -> Result<(), Diagnostic> {
        let at = position(&span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(text.into_owned(), style, tag.as_deref(), span);
                self.leaf(Node { value, at }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at);
                self.open(anchor, at, Content::List(Vec::new()))
            }
            Event::MappingStart(style, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at);
                let members = Vec::new();
                let seen = HashMap::new();
                let content = Content::Map {
                    members,
                    seen,
                    key: None,
                    style,
                    unquoted_template: false,
                };
                self.notice_unquoted_template(style);
                self.open(anchor, at, content)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close();
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::UnresolvedAlias(name) => {
                self.report(
                    at,
                    format!("found *{name}, which no anchor before it defines"),
                );
                self.leaf(
                    Node {
                        value: Value::Invalid,
                        at,
                    },
                    0,
                )
            }
            // Streams, documents, comments and anchor names carry no nodes.
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Value {
        let written = span.slice(self.yaml).unwrap_or_default();
        let at = position(&span.start);
        let anchors = anchors(&text, written, style, at);
        let is_text =
            tag.is_some_and(|tag| tag.handle() == "tag:yaml.org,2002:" && tag.suffix() == "str");
        if !is_text {
            self.refuse_tag(tag, at);
        }
        let range = span.byte_range().filter(|_| !written.is_empty());
        match style {
            ScalarStyle::Plain if !is_text => scalar::plain(text, anchors, range),
            _ => Value::Text(Text {
                text,
                anchors,
                written: range,
            }),
        }
    }

    fn leaf(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        let before = self.size;
        let bytes = match &node.value {
            Value::Text(text) => text.text.len(),
            Value::Number(number) => number.text.len(),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) | Value::Invalid => 0,
        };
        self.grow(Size { nodes: 1, bytes }, node.at)?;
        self.finish(node, anchor, before, 0);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Diagnostic> {
        let Some(Anchor { size, depth, .. }) = self.anchors.get(&anchor) else {
            self.report(at, "found an alias of a value that contains it".to_owned());
            return self.leaf(
                Node {
                    value: Value::Invalid,
                    at,
                },
                0,
            );
        };
        let size = *size;
        let depth = *depth;
        if self.open.len() + depth > MAX_DEPTH {
            return Err(self.too_deep(at));
        }
        let before = self.size;
        self.grow(size, at)?;
        if let Some(Anchor { node, .. }) = self.anchors.get(&anchor) {
            let node = node.clone();
            self.finish(node, 0, before, depth);
        }
        Ok(())
    }

    fn open(&mut self, anchor: usize, at: Position, content: Content) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(at));
        }
        let before = self.size;
        self.grow(Size { nodes: 1, bytes: 0 }, at)?;
        self.open.push(Open {
            anchor,
            at,
            before,
            depth: 0,
            content,
        });
        Ok(())
    }

    fn close(&mut self) {
        let Some(Open {
            anchor,
            at,
            before,
            depth,
            content,
        }) = self.open.pop()
        else {
            return;
        };
        let value = match content {
            Content::List(items) => Value::List(items),
            Content::Map {
                unquoted_template: true,
                ..
            } => {
                self.report(at, QUOTE_THE_TEMPLATE.to_owned());
                Value::Invalid
            }
            Content::Map { members, .. } => Value::Map(members),
        };
        self.finish(Node { value, at }, anchor, before, depth + 1);
    }

    /// A node is whole: remembers it for aliases and hands it to what is open around it.
    fn finish(&mut self, node: Node, anchor: usize, before: Size, depth: usize) {
        if anchor != 0 {
            let size = Size {
                nodes: self.size.nodes - before.nodes,
                bytes: self.size.bytes - before.bytes,
            };
            self.anchors.insert(
                anchor,
                Anchor {
                    node: node.clone(),
                    size,
                    depth,
                },
            );
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        parent.depth = parent.depth.max(depth);
        let fault = match &mut parent.content {
            Content::List(items) => {
                items.push(node);
                None
            }
            Content::Map {
                members,
                seen,
                key,
                unquoted_template,
                ..
            } => match key.take() {
                Some(Key::Name(name, at)) => {
                    members.push(Member {
                        name,
                        at,
                        value: node,
                    });
                    None
                }
                Some(Key::Wrong(_)) => None,
                None => {
                    let (next, fault) = key_of(node, seen, *unquoted_template);
                    *key = Some(next);
                    fault
                }
            },
        };
        if let Some((at, message)) = fault {
            self.report(at, message);
        }
    }

    /// `{` as the key of a `{` is how YAML reads `{{`.
    fn notice_unquoted_template(&mut self, inner: StructureStyle) {
        if inner == StructureStyle::Flow
            && let Some(Open {
                content:
                    Content::Map {
                        key: None,
                        style,
                        unquoted_template,
                        ..
                    },
                ..
            }) = self.open.last_mut()
            && *style == StructureStyle::Flow
        {
            *unquoted_template = true;
        }
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, at: Position) {
        if let Some(tag) = tag {
            self.report(
                at,
                format!(
                    "found the tag {}{}, expected a value without one",
                    tag.handle(),
                    tag.suffix()
                ),
            );
        }
    }

    fn grow(&mut self, by: Size, at: Position) -> Result<(), Diagnostic> {
        self.size.nodes += by.nodes;
        self.size.bytes += by.bytes;
        if self.size.nodes > MAX_NODES {
            let message = format!(
                "found more than {MAX_NODES} values, aliases counted as often as they are used"
            );
            return Err(Diagnostic::error(at, self.path(), message));
        }
        if self.size.bytes > MAX_SCALAR_BYTES {
            let message = format!(
                "found more than {MAX_SCALAR_BYTES} bytes, aliases counted as often as they are \
                 used"
            );
            return Err(Diagnostic::error(at, self.path(), message));
        }
        Ok(())
    }

    fn too_deep(&self, at: Position) -> Diagnostic {
        Diagnostic::error(
            at,
            "",
            format!("found values nested more than {MAX_DEPTH} deep"),
        )
    }

    fn report(&mut self, at: Position, message: String) {
        self.diagnostics
            .push(Diagnostic::error(at, self.path(), message));
    }

    /// Returns the path of the next value.
    fn path(&self) -> String {
        self.open
            .iter()
            .fold(String::new(), |path, open| match &open.content {
                Content::List(items) => format!("{path}[{}]", items.len()),
                Content::Map {
                    key: Some(Key::Name(name, _) | Key::Wrong(Some(name))),
                    ..
                } => member_path(&path, name),
                Content::Map { .. } => path,
            })
    }
}

/// Returns the meaning of a node as a key, and its fault; `seen` are the keys before it and their
/// lines.
fn key_of(
    node: Node,
    seen: &mut HashMap<String, u32>,
    unquoted_template: bool,
) -> (Key, Option<(Position, String)>) {
    let at = node.at;
    let described = node.described();
    let name = match node.value {
        Value::Text(text) => text.text,
        Value::Number(number) => number.text,
        Value::Bool(value) => value.to_string(),
        Value::Invalid => return (Key::Wrong(None), None),
        Value::Null | Value::List(_) | Value::Map(_) => {
            let fault = (!unquoted_template)
                .then(|| (at, format!("found {described} as a key, expected a name")));
            return (Key::Wrong(None), fault);
        }
    };
    if name == "<<" {
        return (
            Key::Wrong(None),
            Some((
                at,
                "found the merge key <<, expected keys of its own".to_owned(),
            )),
        );
    }
    if let Some(line) = seen.get(&name) {
        let message = format!("found the key {described} twice; it stands on line {line} already");
        return (Key::Wrong(Some(name)), Some((at, message)));
    }
    seen.insert(name.clone(), at.line);
    (Key::Name(name, at), None)
}
