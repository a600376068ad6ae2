//! What makes a schema endless or explosive: schemas that speak of the same value, within each
//! other.

use crate::node::{Applied, Id, Node};

/// As many schemas may speak of one value at one place, each counted as often as it is reached.
const MOST_APPLIED: u64 = 10_000;
/// As deep may they stand within each other.
const DEEPEST: u32 = 100;

/// What is known of a node once all that it leads to is known.
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

/// Checks every node; otherwise the node at fault, and what is wrong with it.
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
                    if extent.applied > MOST_APPLIED {
                        return Err((
                            id,
                            format!("makes more than {MOST_APPLIED} schemas speak of one value"),
                        ));
                    }
                    if extent.depth > DEEPEST {
                        return Err((
                            id,
                            format!("leads through more than {DEEPEST} schemas for one value"),
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

/// The nodes that speak of the same value as this one.
fn applied(node: &Node) -> Vec<Id> {
    let mut ids = Vec::new();
    for applied in &node.applied {
        match applied {
            Applied::All(all) | Applied::Any(all) | Applied::One(all) => ids.extend(all),
            Applied::Not(id)
            | Applied::Reference(id)
            | Applied::Dynamic { target: id, .. }
            | Applied::Recursive { target: id } => ids.push(*id),
            Applied::If {
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
