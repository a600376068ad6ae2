//! An expression, parsed once and evaluated on many messages.

use std::sync::Arc;

use crate::environment::Environment;
use crate::evaluate::CompiledExpression;
use crate::node::Node;
use crate::{EvaluationError, Lists, NoAdapters, ParseError, References, Scope, Value};
use crate::{mismatch, partial};

/// A parsed expression. Clones share it.
#[derive(Debug, Clone)]
pub struct Expression(Arc<CompiledExpression>);

impl Expression {
    /// Parses a text of at most 64 KiB. Errors are all that could be found, at most 100.
    pub fn parse(text: &str) -> Result<Self, Vec<ParseError>> {
        Self::parse_within(text, &Lists::default())
    }

    /// Parses a text as [`Self::parse`] does. Warnings know what `item` is in these lists.
    pub fn parse_within(text: &str, lists: &Lists) -> Result<Self, Vec<ParseError>> {
        CompiledExpression::parse(text, lists).map(|compiled| Self(Arc::new(compiled)))
    }

    /// Returns the text that it was parsed from.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the text that it gives for every message.
    pub fn constant_text(&self) -> Option<String> {
        self.0.constant_text()
    }

    /// Returns the names that it uses from outside itself.
    pub fn references(&self) -> &References {
        &self.0.references
    }

    /// Returns its value for a message.
    pub fn evaluate<'s>(&'s self, scope: &'s Scope<'s>) -> Result<Value<'s>, EvaluationError> {
        self.0.evaluate(&Environment::new(scope))
    }

    /// Returns whether the condition holds for a message, whatever the headers of the answer are;
    /// `None` where it depends on them.
    ///
    /// # Errors
    /// A part that every evaluation meets cannot be evaluated.
    pub fn holds_without_headers(&self, scope: &Scope) -> Result<Option<bool>, EvaluationError> {
        partial::holds_without_headers(self.node(), &Environment::new(scope))
    }

    /// Returns a sentence on the comparison that is false because of the types of its sides, for a
    /// message for which the condition is false. `None` when there is none. Calls no adapter.
    pub fn mismatch(&self, scope: &Scope) -> Option<String> {
        let scope = Scope {
            adapters: &NoAdapters,
            ..*scope
        };
        mismatch::of(&self.0, &Environment::new(&scope))
    }

    /// Returns a sentence on the first comparison of a text with a number, or the first order of
    /// numeric texts, that an evaluation meets. Calls no adapter.
    pub fn type_mismatch(&self, scope: &Scope) -> Option<String> {
        let scope = Scope {
            adapters: &NoAdapters,
            ..*scope
        };
        mismatch::within(&self.0, &Environment::new(&scope))
    }

    pub(crate) fn node(&self) -> &Node {
        &self.0.node
    }

    pub(crate) fn into_compiled(self) -> CompiledExpression {
        Arc::unwrap_or_clone(self.0)
    }
}
