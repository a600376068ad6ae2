//! Runs a program on a document. The first pass is quick and gives a yes or no; a document that
//! does not fit is checked once more, and all its violations are noted. Both passes have a budget
//! of work, so that no schema makes a request take long.

mod combine;
mod evaluated;
mod list;
mod object;
mod scalar;

use crate::budget::Budget;
use crate::document::{Document, Kind, Paths, Value};
use crate::node::{Id, Node, Program};
use crate::violation::{self, Violation};
use crate::{Error, MAX_VIOLATIONS};
use evaluated::EvaluatedSet;

/// Greatest depth to which schemas run within each other, which is bounded by the stack.
const MAX_DEPTH: u32 = 600;

/// Verdict on a value. Failures are noted elsewhere.
type Fits = bool;

/// Continues a rule after a failure only while failures are noted.
macro_rules! need {
    ($run:expr, $valid:ident, $fits:expr) => {
        if !$fits {
            $valid = false;
            if !$run.is_noting {
                return false;
            }
        }
    };
}
pub(crate) use need;

/// Checks a document. Errors are all its violations.
pub(crate) fn check(program: &Program, document: &Document<'_>) -> Result<(), Vec<Violation>> {
    let failures = match run(program, document) {
        Ok(()) => return Ok(()),
        Err(failures) => failures,
    };
    let mut paths = Paths::new(document);
    let mut violations = Vec::with_capacity(failures.len());
    for failure in failures {
        let field = violation::field(&paths.of(failure.index), failure.member.as_deref());
        violations.push(Violation {
            field,
            message: failure.message,
        });
    }
    Err(violations)
}

/// Checks a schema by the schema of schemas. The error is the first violation.
pub(crate) fn first_fault(program: &Program, schema: &Document<'_>) -> Result<(), Error> {
    let Err(failures) = run(program, schema) else {
        return Ok(());
    };
    let failure = failures.into_iter().next();
    let (index, message) = failure
        .map(|failure| (failure.index, failure.message))
        .unwrap_or_default();
    Err(Error {
        pointer: violation::pointer(&Paths::new(schema).of(index)),
        message,
    })
}

fn run(program: &Program, document: &Document<'_>) -> Result<(), Vec<Failure>> {
    let mut run = Run::new(program, document.len());
    if run.visit(program.root, document.root(), None) && run.trouble.is_none() {
        return Ok(());
    }
    if run.trouble.is_none() {
        run = Run {
            is_noting: true,
            ..Run::new(program, document.len())
        };
        run.visit(program.root, document.root(), None);
    }
    let trouble = run.trouble.map(|message| Failure {
        index: 0,
        member: None,
        message: message.to_owned(),
    });
    if run.failures.is_empty() {
        run.failures.extend(trouble);
    }
    run.failures.sort_by_key(|failure| failure.index);
    Err(run.failures)
}

/// Value that does not fit.
struct Failure {
    /// The value, or the key of the value.
    index: u32,
    /// Member of the value that is missing.
    member: Option<Box<str>>,
    message: String,
}

struct Run<'p> {
    program: &'p Program,
    budget: Budget,
    /// Message of a run that could not finish.
    trouble: Option<&'static str>,
    depth: u32,
    /// Resources in scope, the outermost first. Empty when no reference needs them.
    scope: Vec<u32>,
    is_noting: bool,
    /// The value is the name of a member.
    is_name: bool,
    failures: Vec<Failure>,
}

impl<'p> Run<'p> {
    fn new(program: &'p Program, length: usize) -> Self {
        let budget = Budget::of_document(length);
        let scope = Vec::new();
        let failures = Vec::new();
        Self {
            program,
            budget,
            trouble: None,
            depth: 0,
            scope,
            is_noting: false,
            is_name: false,
            failures,
        }
    }

    /// Returns whether a value fits a schema. Notes in `track` the parts that the schema evaluates.
    fn visit(&mut self, id: Id, value: Value<'_>, track: Option<&mut EvaluatedSet>) -> Fits {
        let node = &self.program.nodes[id as usize];
        if !self.spend(1) {
            return false;
        }
        if let Some(verdict) = node.verdict {
            return verdict || self.fail(value, || "is not allowed here".to_owned());
        }
        if self.depth == MAX_DEPTH {
            self.trouble = Some("is nested too deeply for its schema");
            self.is_noting = false;
            return false;
        }
        self.depth += 1;
        let scope = self.scope.len();
        if self.program.has_scope && self.scope.last() != Some(&node.resource) {
            self.scope.push(node.resource);
        }
        let unevaluated = match value.kind() {
            Kind::List => node.unevaluated_items,
            Kind::Object => node.unevaluated_members,
            Kind::Null | Kind::Boolean | Kind::Number | Kind::String => None,
        };
        let fits = match unevaluated {
            None => self.rules(node, value, track),
            Some(rest) => self.rules_and_rest(node, rest, value, track),
        };
        self.scope.truncate(scope);
        self.depth -= 1;
        fits
    }

    fn rules(
        &mut self,
        node: &Node,
        value: Value<'_>,
        mut track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut valid = true;
        if let Some(types) = node.types
            && !types.fit(value)
        {
            return self.fail(value, || scalar::wrong_type(types, value));
        }
        for options in &node.options {
            need!(self, valid, self.option(options, value));
        }
        match value.kind() {
            Kind::Null | Kind::Boolean => {}
            Kind::Number => {
                if let Some(rules) = &node.number {
                    need!(self, valid, self.number(rules, value));
                }
            }
            Kind::String => {
                if let Some(rules) = &node.string {
                    need!(self, valid, self.string(rules, value));
                }
            }
            Kind::List => {
                if let Some(rules) = &node.list {
                    need!(self, valid, self.list(rules, value, track.as_deref_mut()));
                }
            }
            Kind::Object => {
                if let Some(rules) = &node.object {
                    need!(self, valid, self.object(rules, value, track.as_deref_mut()));
                }
            }
        }
        for applied in &node.applied {
            need!(
                self,
                valid,
                self.applied(applied, value, track.as_deref_mut())
            );
        }
        valid
    }

    /// Runs the rules, and `rest` for the parts that none of them has evaluated.
    fn rules_and_rest(
        &mut self,
        node: &Node,
        rest: Id,
        value: Value<'_>,
        track: Option<&mut EvaluatedSet>,
    ) -> Fits {
        let mut valid = true;
        let mut evaluated = EvaluatedSet::default();
        need!(self, valid, self.rules(node, value, Some(&mut evaluated)));
        if !evaluated.all {
            for (place, item) in value.items().enumerate() {
                if !evaluated.has(place) {
                    need!(self, valid, self.visit(rest, item, None));
                }
            }
            for (place, (_, member)) in value.members().enumerate() {
                if !evaluated.has(place) {
                    need!(self, valid, self.unexpected(rest, member));
                }
            }
        }
        if let Some(track) = track {
            track.all = true;
        }
        valid
    }

    /// Runs without noting failures.
    fn quietly<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let was_noting = std::mem::replace(&mut self.is_noting, false);
        let result = run(self);
        self.is_noting = was_noting && self.trouble.is_none();
        result
    }

    /// Takes steps from the budget. Returns `false` when none are left.
    fn spend(&mut self, steps: u64) -> bool {
        if self.budget.spend(steps) {
            return true;
        }
        self.trouble = Some("takes too much work to check against its schema");
        self.is_noting = false;
        false
    }

    fn fail(&mut self, value: Value<'_>, message: impl FnOnce() -> String) -> Fits {
        self.note(value, None, message)
    }

    /// Notes a violation of a value, or of a member that it lacks. Returns `false`.
    fn note(
        &mut self,
        value: Value<'_>,
        member: Option<&str>,
        message: impl FnOnce() -> String,
    ) -> Fits {
        if self.is_noting {
            let message = if self.is_name {
                format!("has a name that {}", message())
            } else {
                message()
            };
            self.failures.push(Failure {
                index: value.index(),
                member: member.map(Into::into),
                message,
            });
            self.is_noting = self.failures.len() < MAX_VIOLATIONS;
        }
        false
    }
}
