//! Expressions and templates in their places: what they may name there.

use kanat_mapping::{
    Expression, InstanceValue, ItemReference, ParseError, References, Root, Template, ValueForm,
};

use super::Checker;
use super::cursor::Cursor;
use crate::definition::{LocatedName, ReferenceKind};
use crate::duration::quoted;
use crate::fields::{Exposure, FieldUse, InstanceOf};
use crate::nearest;
use crate::yaml::{Text, Value};

/// Context of an expression, which decides what it can see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// As an error names it.
    pub(super) name: &'static str,
    /// The payload and what came with it.
    pub(super) source: bool,
    /// How many steps have run before.
    pub(super) steps: usize,
    /// A connector instance whose config is `instance`.
    pub(super) instance: Option<InstanceOf>,
    /// Why the target's answer is not visible; `None` where it is.
    pub(super) no_target: Option<&'static str>,
    /// The answer of a call, as `response`.
    pub(super) response: bool,
    /// A poll's memory.
    pub(super) state: bool,
    /// Lookup tables and adapters: only a message's run has them.
    pub(super) calls: bool,
    /// Secrets of the instance.
    pub(super) secrets: Secrets,
}

/// Part of a text in which secrets of the instance may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrets {
    Nowhere,
    /// Everywhere, whole: the text goes to the instance's own origin, or senders have to know it.
    Whole,
    /// Whole, from this byte of the text on, where the query of a URL begins.
    WholeAfter(usize),
}

impl Place {
    /// A place that sees nothing.
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            source: false,
            steps: 0,
            instance: None,
            no_target: Some("the target's answer comes after delivery, in a response mapping"),
            response: false,
            state: false,
            calls: true,
            secrets: Secrets::Nowhere,
        }
    }

    /// Why `root` cannot be seen from here.
    fn hides(self, root: Root) -> Option<String> {
        let (seen, why) = match root {
            Root::Source | Root::Trigger => (self.source, "there is no payload yet"),
            Root::Steps => (self.steps > 0, "no step has run before"),
            Root::Target => (self.no_target.is_none(), self.no_target.unwrap_or_default()),
            Root::Instance => (self.instance.is_some(), "no connector is named for it"),
            Root::Response => (
                self.response,
                "it is known only in a response mapping and in success_when",
            ),
            // Each use of these is checked by itself.
            Root::Item | Root::Index | Root::Env => return None,
            Root::State => (self.state, "it is known only in source.poll"),
        };
        (!seen).then(|| {
            format!(
                "found {} in {}, where it is not known: {why}",
                root.as_str(),
                self.name
            )
        })
    }
}

impl Place {
    /// Why a value of the instance may be no secret here.
    fn exposure(self, value: &InstanceValue) -> Option<Exposure> {
        let is_before_query =
            matches!(self.secrets, Secrets::WholeAfter(query) if value.offset < query);
        match (self.secrets, value.form) {
            // A signature does not show the key that makes it.
            (_, ValueForm::Signing) => None,
            (Secrets::Nowhere, _) => Some(Exposure::Place(self.name)),
            (Secrets::WholeAfter(_), _) if is_before_query => Some(Exposure::Path(self.name)),
            (Secrets::Whole | Secrets::WholeAfter(_), ValueForm::Whole) => None,
            (Secrets::Whole | Secrets::WholeAfter(_), ValueForm::Computed) => {
                Some(Exposure::Computed)
            }
        }
    }
}

/// Returns the byte at which the query of a URL begins, outside of its expressions; the end when
/// there is none.
fn query_offset(url: &str) -> usize {
    let mut in_expression = false;
    for (at, letter) in url.char_indices() {
        match letter {
            '{' if url[at..].starts_with("{{") => in_expression = true,
            '}' if url[at..].starts_with("}}") => in_expression = false,
            '?' if !in_expression => return at,
            _ => {}
        }
    }
    url.len()
}

impl Checker {
    /// An expression; also one that stands in `{{ }}` as a whole.
    pub(super) fn expression(&mut self, cursor: &Cursor, place: Place) -> Option<Expression> {
        if self.is_full() {
            return None;
        }
        let text = self.expression_text(cursor)?;
        let (inner, skipped) = unwrapped(text);
        if inner.contains("{{") {
            let message = format!(
                "found {}, expected an expression without {{{{ }}}}, in which concat joins parts",
                quoted(text)
            );
            self.error(cursor, message);
            return None;
        }
        match Expression::parse_within(inner, &self.lists) {
            Ok(expression) => {
                self.references(cursor, expression.references(), skipped, place);
                Some(expression)
            }
            Err(errors) => {
                self.parse_errors(cursor, &errors, skipped);
                None
            }
        }
    }

    /// An expression that is no template even in `{{ }}`.
    pub(super) fn condition(&mut self, cursor: &Cursor, place: Place) -> Option<Expression> {
        let text = self.expression_text(cursor)?;
        if text.contains("{{") {
            let message = format!(
                "found {}, expected a condition without {{{{ }}}}, such as item.qty > 0",
                quoted(text)
            );
            self.error(cursor, message);
            return None;
        }
        self.expression(cursor, place)
    }

    /// An expression whose value may well be meant to be the text itself. The error of a plain text
    /// ends with how that is written.
    pub(super) fn field_expression(&mut self, cursor: &Cursor, place: Place) -> Option<Expression> {
        let before = self.diagnostics.len();
        let expression = self.expression(cursor, place);
        if let [diagnostic] = self.diagnostics.get_mut(before..).unwrap_or_default()
            && expression.is_none()
            && let Some(literal) = literal_of_plain_text(cursor)
            && !diagnostic.message.contains("did you mean")
        {
            // One of its words alone is not what is meant.
            for hint in ["; for the text itself", "; a text stands in quotes"] {
                let end = diagnostic.message.find(hint);
                diagnostic
                    .message
                    .truncate(end.unwrap_or(diagnostic.message.len()));
            }
            diagnostic
                .message
                .push_str(&format!("; for the text itself write {literal}"));
        }
        expression
    }

    /// A text that may have `{{ }}` in it.
    pub(super) fn template(
        &mut self,
        cursor: &Cursor,
        expected: &str,
        place: Place,
    ) -> Option<Template> {
        let text = self.text(cursor, expected)?;
        self.template_of(cursor, text, place)
    }

    /// The template of a URL: in its query, secrets of the instance go to the instance's own
    /// origin.
    pub(super) fn url_template(
        &mut self,
        cursor: &Cursor,
        expected: &str,
        place: Place,
    ) -> Option<Template> {
        let text = self.text(cursor, expected)?;
        self.template_of(
            cursor,
            text,
            Place {
                secrets: Secrets::WholeAfter(query_offset(text)),
                ..place
            },
        )
    }

    /// Parses a template that may be empty.
    pub(super) fn template_of(
        &mut self,
        cursor: &Cursor,
        text: &str,
        place: Place,
    ) -> Option<Template> {
        if self.is_full() {
            return None;
        }
        match Template::parse_within(text, &self.lists) {
            Ok(template) => {
                self.references(cursor, template.references(), 0, place);
                Some(template)
            }
            Err(errors) => {
                self.parse_errors(cursor, &errors, 0);
                None
            }
        }
    }

    /// The text of an expression: constants need no quotes.
    pub(super) fn expression_text<'n>(&mut self, cursor: &Cursor<'n>) -> Option<&'n str> {
        match &cursor.node.value {
            Value::Text(Text { text, .. }) if !text.trim().is_empty() => Some(text),
            Value::Number(number) => Some(number.json.as_ref().unwrap_or(&number.text)),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            _ => {
                self.type_error(cursor, "an expression such as source.id | required");
                None
            }
        }
    }

    fn parse_errors(&mut self, cursor: &Cursor, errors: &[ParseError], skipped: usize) {
        for error in errors {
            self.report(
                cursor.at_offset(skipped + error.offset),
                &cursor.path,
                error.message.clone(),
            );
        }
    }

    fn references(
        &mut self,
        cursor: &Cursor,
        references: &References,
        skipped: usize,
        place: Place,
    ) {
        for root in &references.roots {
            if let Some(message) = place.hides(*root) {
                self.report(
                    cursor.at_offset(root_offset(cursor, *root)),
                    &cursor.path,
                    message,
                );
            }
        }
        if !self.stored {
            self.parse_errors(cursor, &references.definition_faults, skipped);
        }
        let compared = self.compared.as_ref();
        if compared.is_some_and(|names| references.trigger_values.iter().any(|read| read == names))
        {
            let message = "source.verify compares this secret: a run reads ******** in its place";
            self.warn(cursor.node.at, &cursor.path, message);
        }
        for warning in &references.warnings {
            self.warn(
                cursor.at_offset(skipped + warning.offset),
                &cursor.path,
                &warning.message,
            );
        }
        for item in &references.items {
            if item.lists > self.lists.depth() {
                self.report(
                    cursor.at_offset(skipped + item.offset),
                    &cursor.path,
                    unknown_item(*item, place),
                );
            }
        }
        if place.steps > 0 && !self.any_step {
            for step in &references.steps {
                if let Some(message) = self.step_fault(&step.name, place) {
                    self.report(
                        cursor.at_offset(skipped + step.offset),
                        &cursor.path,
                        message,
                    );
                }
            }
        }
        let tables = references
            .tables
            .iter()
            .map(|table| (ReferenceKind::Table, table));
        let adapters = references
            .adapters
            .iter()
            .map(|adapter| (ReferenceKind::Adapter, adapter));
        let variables = references
            .variables
            .iter()
            .map(|variable| (ReferenceKind::Variable, variable));
        for (kind, reference) in tables.chain(adapters).chain(variables) {
            let at = cursor.at_offset(skipped + reference.offset);
            let transform = match kind {
                ReferenceKind::Table => Some("lookup"),
                ReferenceKind::Adapter => Some("adapter"),
                ReferenceKind::Variable => None,
            };
            if let Some(transform) = transform.filter(|_| !place.calls) {
                let message = format!(
                    "found the transform {transform} in {}, expected none: lookup tables and \
                     adapters are known only where a message runs",
                    place.name
                );
                self.report(at, &cursor.path, message);
                continue;
            }
            self.references.push((
                kind,
                LocatedName {
                    name: reference.name.clone(),
                    path: cursor.path.clone(),
                    at,
                },
            ));
        }
        if let Some(of) = place.instance {
            let used = references.instance_values.iter().map(|value| {
                let at = cursor.at_offset(skipped + value.offset);
                let named = LocatedName {
                    name: value.names.join("."),
                    path: cursor.path.clone(),
                    at,
                };
                FieldUse {
                    names: value.names.clone(),
                    place: named,
                    of,
                    exposure: place.exposure(value),
                }
            });
            self.fields.extend(used);
        }
    }

    fn step_fault(&self, name: &str, place: Place) -> Option<String> {
        let earlier = &self.step_names[..place.steps.min(self.step_names.len())];
        if earlier.iter().any(|step| step == name) {
            return None;
        }
        if self.step_names.iter().any(|step| step == name) {
            return Some(format!(
                "found the step {}, which has not run yet at {}",
                quoted(name),
                place.name
            ));
        }
        let near = nearest::suggestion(name, earlier.iter().map(String::as_str));
        // Two steps of one name are a fault of their own.
        let mut known: Vec<&str> = Vec::with_capacity(earlier.len());
        for step in earlier {
            if !known.contains(&step.as_str()) {
                known.push(step);
            }
        }
        Some(format!(
            "found the unknown step {}, expected one of {}{near}",
            quoted(name),
            known.join(", ")
        ))
    }
}

/// Returns the error of an item whose list is not around.
fn unknown_item(item: ItemReference, place: Place) -> String {
    let (outer, known) = if item.lists == 1 {
        (
            "",
            "inside the map of an each and the argument of a list transform",
        )
    } else {
        ("outer.", "where another list is around that of the item")
    };
    format!(
        "found {outer}{} in {}, where it is not known: it is known only {known}",
        item.root.as_str(),
        place.name
    )
}

/// The expression in a text that is one `{{ }}` as a whole, and how many bytes stand before it.
pub(super) fn unwrapped(text: &str) -> (&str, usize) {
    let trimmed = text.trim();
    let inner = trimmed
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"));
    match inner {
        Some(inner) if !inner.contains("{{") && !inner.contains("}}") => {
            let before = text.len() - text.trim_start().len() + 2;
            (inner, before)
        }
        Some(_) | None => (text, 0),
    }
}

/// Returns the text in quotes twice, as an expression in YAML and JSON alike, when it is words that
/// nothing marks as an expression.
fn literal_of_plain_text(cursor: &Cursor) -> Option<String> {
    const MAX_LENGTH: usize = 100;
    const SIGNS_OF_EXPRESSIONS: [char; 12] =
        ['|', '(', ')', '[', ']', '{', '}', '<', '>', '=', '!', '&'];
    let Value::Text(Text { text, .. }) = &cursor.node.value else {
        return None;
    };
    let text = text.trim();
    let begins_with_a_word = text.starts_with(char::is_alphanumeric);
    let has_signs = text.contains(SIGNS_OF_EXPRESSIONS) || text.contains(char::is_control);
    // As in `customer.id`; a sentence has its stops before a space or at its end.
    let is_path = text
        .split('.')
        .skip(1)
        .any(|part| part.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
    let first = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default();
    let begins_with_a_root = Root::ALL.iter().any(|root| root.as_str() == first);
    if text.len() > MAX_LENGTH || !begins_with_a_word || has_signs || is_path || begins_with_a_root
    {
        return None;
    }
    let expression = format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    serde_json::to_string(&expression).ok()
}

/// Returns the offset of the word that names `root` in the text, as far as it can be found without
/// parsing the text again.
fn root_offset(cursor: &Cursor, root: Root) -> usize {
    let Value::Text(Text { text, .. }) = &cursor.node.value else {
        return 0;
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\'');
    let mut found = text.match_indices(root.as_str()).map(|(offset, _)| offset);
    found
        .find(|offset| {
            let before = text[..*offset].chars().next_back();
            let after = text[offset + root.as_str().len()..].chars().next();
            !before.is_some_and(is_name) && after.is_none_or(|c| !is_name(c) || c == '.')
        })
        .unwrap_or(0)
}
