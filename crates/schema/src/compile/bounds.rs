//! Bounds on the schemas that apply to one value, within each other: they may not be endless, nor
//! too many, nor too deep.

use crate::node::{Applicator, Id, Node};

/// Greatest number of schemas that apply to one value, each counted as often as it is reached.
const MAX_APPLIED: u64 = 10_000;
/// Greatest depth of these schemas within each other.
const MAX_DEPTH: u32 = 100;

/// Number and depth of the schemas that a node applies to its value, itself included.
#[derive(Clone, Copy, Default)]
struct Extent {
    applied: u64,
    depth: u32,
}

#[derive(Clone, Copy)]
enum State {
    Unknown,
    Open,
    Known(Extent),
}

/// Checks every node. The error is the node at fault, with a message.
pub(super) fn check(nodes: &[Node]) -> Result<(), (Id, String)> {
    let mut states = vec![State::Unknown; nodes.len()];
    for root in 0..nodes.len() as Id {
        let mut open = vec![root];
        while let Some(id) = open.last().copied() {
            match states[id as usize] {
                State::Known(_) => {
                    open.pop();
                }
                State::Unknown => {
                    states[id as usize] = State::Open;
                    for next in applied(&nodes[id as usize]) {
                        match states[next as usize] {
                            State::Unknown => open.push(next),
                            State::Open => {
                                return Err((next, "refers to itself without an end".to_owned()));
                            }
                            State::Known(_) => {}
                        }
                    }
                }
                State::Open => {
                    let mut extent = Extent {
                        applied: 1,
                        depth: 1,
                    };
                    for next in applied(&nodes[id as usize]) {
                        if let State::Known(inner) = states[next as usize] {
                            extent.applied = extent.applied.saturating_add(inner.applied);
                            extent.depth = extent.depth.max(inner.depth + 1);
                        }
                    }
                    if extent.applied > MAX_APPLIED {
                        return Err((
                            id,
                            format!("makes more than {MAX_APPLIED} schemas speak of one value"),
                        ));
                    }
                    if extent.depth > MAX_DEPTH {
                        return Err((
                            id,
                            format!("leads through more than {MAX_DEPTH} schemas for one value"),
                        ));
                    }
                    states[id as usize] = State::Known(extent);
                    open.pop();
                }
            }
        }
    }
    Ok(())
}

/// Returns the nodes that apply to the same value as this one.
fn applied(node: &Node) -> Vec<Id> {
    let mut ids = Vec::new();
    for applied in &node.applied {
        match applied {
            Applicator::All(all) | Applicator::Any(all) | Applicator::One(all) => ids.extend(all),
            Applicator::Not(id)
            | Applicator::Reference(id)
            | Applicator::Dynamic { target: id, .. }
            | Applicator::Recursive { target: id } => ids.push(*id),
            Applicator::If {
                test,
                then,
                otherwise,
            } => ids.extend([Some(*test), *then, *otherwise].into_iter().flatten()),
        }
    }
    if let Some(object) = &node.object {
        ids.extend(
            object
                .dependencies
                .iter()
                .filter_map(|dependency| dependency.schema),
        );
    }
    ids
}
