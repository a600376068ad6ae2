//! A flow as a drawing: what a message passes through, and where it goes when that fails.

mod text;

use crate::definition::{Definition, OnFailure, PollTiming, Schedule, Step, Target, Trigger};
use crate::{duration, literal};

/// A directed graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// In the order in which a message meets them.
    pub nodes: Vec<Node>,
    /// In the same order.
    pub edges: Vec<Edge>,
}

/// A station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Unique in the graph: letters, digits and `_`.
    pub id: String,
    /// `source`, `adapter`, `condition`, `step`, `mapping`, `target` or `dead_letter`.
    pub kind: &'static str,
    /// Text for people.
    pub label: String,
}

/// A way from one station to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The id of a node.
    pub from: String,
    /// The id of a node.
    pub to: String,
    /// Empty on the way that a message takes when all is well.
    pub label: String,
}

/// The graph of a definition.
pub fn of(definition: &Definition) -> Graph {
    let mut graph = Graph {
        nodes: Vec::new(),
        edges: Vec::new(),
    };
    let mut failures: Vec<(String, String)> = Vec::new();
    let retries = match definition.retry.count {
        0 => "on failure".to_owned(),
        1 => "after 1 retry".to_owned(),
        count => format!("after {count} retries"),
    };
    graph.then("source", "source", source(definition));
    if let Some(adapter) = &definition.adapter {
        graph.then("adapter", "adapter", format!("adapter {}", adapter.name));
    }
    if let Some(when) = &definition.when {
        graph.then(
            "condition",
            "condition",
            format!("when {}", when.text().trim()),
        );
    }
    for (index, step) in definition.steps.iter().enumerate() {
        let id = format!("step_{}", index + 1);
        let failure = match step.on_failure {
            OnFailure::Retry => retries.clone(),
            OnFailure::Reject => "rejected at once".to_owned(),
        };
        graph.then(&id, "step", step_label(step));
        failures.push((id, failure));
    }
    if let Some(fields) = &definition.mapping {
        let noun = if fields.len() == 1 { "field" } else { "fields" };
        graph.then(
            "mapping",
            "mapping",
            format!("mapping of {} {noun}", fields.len()),
        );
        failures.push(("mapping".to_owned(), "mapping error".to_owned()));
    }
    if let Some(target) = &definition.target {
        graph.then("target", "target", target_label(target));
        failures.push(("target".to_owned(), retries));
    }
    if !failures.is_empty() {
        graph.nodes.push(Node {
            id: "dead_letter".to_owned(),
            kind: "dead_letter",
            label: "dead letter".to_owned(),
        });
    }
    for (from, label) in failures {
        graph.edges.push(Edge {
            from,
            to: "dead_letter".to_owned(),
            label,
        });
    }
    let mask = literal::mask_of(definition);
    for node in &mut graph.nodes {
        node.label = mask.apply(&node.label).into_owned();
    }
    graph
}

impl Graph {
    /// Adds a node, and the way to it from the last one.
    fn then(&mut self, id: &str, kind: &'static str, label: String) {
        if let Some(last) = self.nodes.last() {
            let edge = Edge {
                from: last.id.clone(),
                to: id.to_owned(),
                label: String::new(),
            };
            self.edges.push(edge);
        }
        self.nodes.push(Node {
            id: id.to_owned(),
            kind,
            label,
        });
    }
}

fn source(definition: &Definition) -> String {
    let due = |schedule: &Schedule| format!("at {} in {}", schedule.cron, schedule.timezone_name);
    let mut label = match &definition.source.trigger {
        Trigger::Webhook {
            verify: Some(verify),
        } => format!("webhook verified by {}", verify.scheme),
        Trigger::Webhook { verify: None } => "webhook".to_owned(),
        Trigger::Schedule(schedule) => format!("schedule {}", due(schedule)),
        Trigger::Poll(poll) => match &poll.timing {
            PollTiming::Interval(interval) => format!("poll every {}", duration::format(*interval)),
            PollTiming::Schedule(schedule) => format!("poll {}", due(schedule)),
        },
        Trigger::Manual => "manual".to_owned(),
        Trigger::Api => "published API".to_owned(),
    };
    if let Some(connector) = &definition.source.connector {
        label.push_str(&format!(", from {}", connector.name));
    }
    label
}

fn step_label(step: &Step) -> String {
    let mut label = format!("{}: {}", step.name, step.action.name);
    if let Some(connector) = &step.connector {
        label.push_str(&format!(" on {}", connector.name));
    }
    if let Some(when) = &step.when {
        label.push_str(&format!(", when {}", when.text().trim()));
    }
    label
}

fn target_label(target: &Target) -> String {
    format!(
        "{} {} on {}",
        target.method,
        literal::shown(&["target", "endpoint"], target.endpoint.text()),
        target.connector.name
    )
}

#[cfg(test)]
mod tests;
