//! Conditions of which a part is not known, as in a test of a flow: what they give whatever that
//! part is.

use crate::environment::Environment;
use crate::node::Node;
use crate::{EvaluationError, Root};

/// Returns whether a condition holds, whatever the headers of the answer are; `None` where it
/// depends on them.
///
/// # Errors
/// A part that every evaluation meets cannot be evaluated.
pub(crate) fn holds_without_headers<'s>(
    node: &'s Node,
    environment: &Environment<'s>,
) -> Result<Option<bool>, EvaluationError> {
    let decide = |node| holds_without_headers(node, environment);
    match node {
        Node::And(nodes) => join(nodes.iter().map(decide), false),
        Node::Or(nodes) => join(nodes.iter().map(decide), true),
        Node::Not(inner) => Ok(decide(inner)?.map(|holds| !holds)),
        other if reads_headers(other) => Ok(None),
        other => {
            let value = other.evaluate(environment)?;
            Ok(Some(environment.holds(&value)))
        }
    }
}

/// Joins what the operands give: one that is `decisive` decides, else all have to be known. Behind
/// one that is not known, another may not be evaluated, so that its error is none.
fn join(
    operands: impl Iterator<Item = Result<Option<bool>, EvaluationError>>,
    decisive: bool,
) -> Result<Option<bool>, EvaluationError> {
    let mut is_known = true;
    for operand in operands {
        match operand {
            Ok(Some(holds)) if holds == decisive => return Ok(Some(decisive)),
            Ok(Some(_)) => {}
            Ok(None) => is_known = false,
            Err(error) if is_known => return Err(error),
            Err(_) => {}
        }
    }
    Ok(is_known.then_some(!decisive))
}

fn reads_headers(node: &Node) -> bool {
    let mut found = false;
    node.clone().paths(&mut |path| {
        let is_headers = path.names().next().is_none_or(|name| name == "headers");
        found |= path.root == Root::Response && is_headers;
    });
    found
}
