//! Conditions of which a part is not known, as in a test of a flow: what they give whatever that
//! part is.

use crate::Root;
use crate::environment::Environment;
use crate::node::Node;

/// Returns whether a condition holds, whatever the headers of the answer are; `None` where it
/// depends on them, or cannot be evaluated.
pub(crate) fn holds_without_headers<'s>(
    node: &'s Node,
    environment: &Environment<'s>,
) -> Option<bool> {
    let decide = |node| holds_without_headers(node, environment);
    match node {
        Node::And(nodes) => join(nodes.iter().map(decide), false),
        Node::Or(nodes) => join(nodes.iter().map(decide), true),
        Node::Not(inner) => decide(inner).map(|holds| !holds),
        other if reads_headers(other) => None,
        other => {
            let value = other.evaluate(environment).ok()?;
            Some(environment.holds(&value))
        }
    }
}

/// Joins what the operands give: one that is `decisive` decides, else all have to be known.
fn join(operands: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut is_known = true;
    for operand in operands {
        if operand == Some(decisive) {
            return operand;
        }
        is_known &= operand.is_some();
    }
    is_known.then_some(!decisive)
}

fn reads_headers(node: &Node) -> bool {
    let mut found = false;
    node.clone().paths(&mut |path| {
        let is_headers = path.names().next().is_none_or(|name| name == "headers");
        found |= path.root == Root::Response && is_headers;
    });
    found
}
