//! Flows between the wire and the use-cases.

use std::collections::HashMap;

use kanat_flow::diff::Change;
use kanat_flow::graph::Graph;
use kanat_flow::span::Fix;
use kanat_flow::{Diagnostic, Severity};
use kanat_message_log::PollStanding;
use kanat_model::audit::PrincipalType;
use kanat_model::flow::Status as FlowStatus;
use kanat_model::id::FlowId;
use kanat_model::message::Failure;
use kanat_model::{Error, Result, Timestamp, saturated};
use kanat_plan_stream::Kind;
use kanat_proto::v1 as wire;
use kanat_store::flow::{Filter, Flow};
use kanat_store::flow_version::FlowVersion;
use prost::Message;
use sha2::{Digest, Sha256};

use crate::app::flow::{
    self, DefinitionReport, Deployment, Details, Edition, NewFlow, Sample, StartedMessage,
    TestResult, Update,
};
use crate::app::{App, Call, etag, etag_of_view};
use crate::carry::carry;
use crate::grpc::clear;
use crate::grpc::message::trace_entry;

pub fn new(request: wire::CreateFlowRequest) -> NewFlow {
    carry!(
        NewFlow,
        request {
            name,
            description,
            yaml_config
        }
    )
}

pub fn update(mut request: wire::UpdateFlowRequest) -> Result<(FlowId, Update)> {
    clear::texts(&request.clear, [("description", &mut request.description)])?;
    let update = carry!(
        Update,
        request {
            name,
            description,
            yaml_config,
            status,
            change_summary
        }
    );
    Ok((request.id.into(), update))
}

pub fn filter(request: wire::ListFlowsRequest) -> Result<Filter> {
    let status = request.status.map(|text| {
        FlowStatus::parse(&text).ok_or_else(|| {
            Error::field(
                "status",
                format!("{text:?} is no status: draft, active or paused"),
            )
        })
    });
    Ok(Filter {
        status: status.transpose()?,
        search: request.search.unwrap_or_default(),
    })
}

/// A flow as lists show it.
pub fn flow(call: &Call, flow: Flow) -> Result<wire::Flow> {
    Ok(carry!(
        wire::Flow, flow { name, version, description, change_summary, draft }
        text { id, created_at, updated_at, environment_id }
        word { status }
        with {
            webhook_url: flow::webhook_url(call, &flow)?,
            yaml_config: flow::definition_text(&call.app.sealer, &flow)?.into_owned(),
            rejected: rejected(&call.app, &flow.id),
            etag: etag(&flow),
            config: None,
            plan: None,
            warnings: Vec::new(),
            poll: None,
            last_error: None,
            deployed_version: Some(flow.version).filter(|version| *version > 0),
            held_messages: None,
        }
    ))
}

/// A flow of a list, with the failure of its poll.
pub fn listed(
    call: &Call,
    flow: Flow,
    polls: &HashMap<FlowId, PollStanding>,
) -> Result<wire::Flow> {
    let last_error = polls.get(&flow.id).and_then(last_error);
    Ok(wire::Flow {
        last_error,
        ..self::flow(call, flow)?
    })
}

/// Why the last cycle of a poll failed, if it did.
pub fn last_error(standing: &PollStanding) -> Option<wire::LastError> {
    let ended = standing.ended.as_ref()?;
    Some(wire::LastError {
        at: ended.at.to_string(),
        message: ended.error.clone()?,
    })
}

/// How the poll of a flow of this status stands `now`. One of a paused flow is not due, nor one
/// that goes on.
pub fn poll(standing: PollStanding, status: FlowStatus, now: Timestamp) -> wire::FlowPoll {
    let (last_polled_at, last_error) = standing.ended.map_or((None, None), |ended| {
        (Some(ended.at.to_string()), ended.error)
    });
    // A schedule that is never due has no date.
    let is_due = status != FlowStatus::Paused
        && standing.held_until <= now
        && standing.due_at.as_millis() < i64::MAX;
    let next_poll_at = is_due.then(|| standing.due_at.to_string());
    wire::FlowPoll {
        last_polled_at,
        last_error,
        next_poll_at,
    }
}

/// A flow as single reads show it.
pub fn details(call: &Call, details: Details) -> Result<wire::Flow> {
    let revision = details.flow.revision;
    let shown = wire::Flow {
        config: Some(wire::Json {
            text: details.config,
        }),
        plan: details.plan.map(|text| wire::Json { text }),
        warnings: details.warnings.into_iter().map(warning).collect(),
        ..flow(call, details.flow)?
    };
    // What is shown changes with its surroundings too: a table that is made ends a warning.
    let digest = Sha256::digest(shown.encode_to_vec());
    let view = digest
        .iter()
        .take(4)
        .fold(0_u32, |view, byte| (view << 8) | u32::from(*byte));
    Ok(wire::Flow {
        etag: etag_of_view(revision, view),
        ..shown
    })
}

/// A flow that was put into service.
pub fn deployed(call: &Call, deployed: Deployment) -> Result<wire::Flow> {
    let held_messages = deployed.held_messages;
    Ok(wire::Flow {
        held_messages: held_messages.map(saturated),
        ..flow(call, deployed.flow)?
    })
}

/// The two definitions that are compared.
pub fn editions(request: &wire::DiffFlowVersionsRequest) -> Result<(Edition, Edition)> {
    let to = request.to.as_deref().unwrap_or("draft");
    Ok((
        Edition::parse("version", &request.version)?,
        Edition::parse("to", to)?,
    ))
}

pub fn diff(from: Edition, to: Edition, changes: Vec<Change>) -> wire::FlowDiff {
    let json = |text: Option<String>| text.map(|text| wire::Json { text });
    let change = |change: Change| wire::FlowChange {
        path: change.path,
        before: json(change.before),
        after: json(change.after),
    };
    wire::FlowDiff {
        from: from.to_string(),
        to: to.to_string(),
        changes: changes.into_iter().map(change).collect(),
    }
}

pub fn validated(yaml: &str, found: DefinitionReport) -> wire::ValidateFlowResponse {
    let spanned = |found: Diagnostic| {
        let (span, fix) = kanat_flow::span::of_diagnostic(yaml, &found);
        let fix = fix.map(|Fix { text, span }| wire::DiagnosticFix {
            text,
            line: span.line,
            column: span.column,
            end_column: span.end_column,
        });
        wire::Diagnostic {
            end_line: Some(span.line),
            end_column: Some(span.end_column),
            fix,
            ..diagnostic(found)
        }
    };
    let warned = |found: Diagnostic| wire::Diagnostic {
        refuses_deploy: refuses_deploy(&found),
        ..spanned(found.into_warning())
    };
    wire::ValidateFlowResponse {
        valid: found.errors.is_empty(),
        errors: found.errors.into_iter().map(spanned).collect(),
        warnings: found.warnings.into_iter().map(warned).collect(),
    }
}

pub fn sample(request: wire::TestFlowRequest) -> Sample {
    let text = |json: Option<wire::Json>| json.map(|json| json.text);
    Sample {
        payload: text(request.sample_data),
        headers: text(request.headers),
        query: text(request.query),
        method: request.method,
        path_params: text(request.path_params),
        api: text(request.api),
        step_outputs: text(request.step_outputs),
    }
}

pub fn tested(tested: TestResult) -> wire::TestFlowResponse {
    wire::TestFlowResponse {
        output: tested.output.map(|text| wire::Json { text }),
        errors: tested.failures.into_iter().map(failure).collect(),
        trace: tested.trace.into_iter().map(trace_entry).collect(),
        matched: tested.matched,
    }
}

pub fn started(started: StartedMessage) -> wire::RunFlowResponse {
    wire::RunFlowResponse {
        message_id: started.message_id.into_string(),
        status: if started.duplicate {
            "duplicate"
        } else {
            "accepted"
        }
        .to_owned(),
    }
}

pub fn version(app: &App, version: FlowVersion) -> Result<wire::FlowVersion> {
    // Builds that noted no types knew API keys alone.
    let maker = version.created_by_type.unwrap_or(PrincipalType::ApiKey);
    Ok(carry!(
        wire::FlowVersion, version { version, change_summary }
        text { flow_id, created_at }
        with {
            created_by: Some(wire::Creator {
                r#type: maker.as_str().to_owned(),
                id: version.created_by_id.clone(),
                name: version.created_by_name.clone(),
            }),
            yaml_config: flow::definition_text(&app.sealer, &version)?.into_owned(),
            warnings: Vec::new(),
        }
    ))
}

/// One version, with the warnings of a rollback to it.
pub fn version_alone(
    app: &App,
    (found, warnings): (FlowVersion, Vec<Diagnostic>),
) -> Result<wire::FlowVersion> {
    Ok(wire::FlowVersion {
        warnings: warnings.into_iter().map(diagnostic).collect(),
        ..version(app, found)?
    })
}

/// The graph, or its drawing where `format` asks for one.
pub fn graph(
    graph: Graph,
    variables: Vec<(String, String)>,
    format: Option<&str>,
) -> Result<wire::FlowGraph> {
    let text = match format {
        None | Some("" | "json") => None,
        Some("mermaid") => Some(graph.to_mermaid()),
        Some("dot") => Some(graph.to_dot()),
        Some(other) => {
            return Err(Error::field(
                "format",
                format!("{other:?} is no format: json, mermaid or dot"),
            ));
        }
    };
    let node = |node: kanat_flow::graph::Node| wire::GraphNode {
        id: node.id,
        kind: node.kind.to_owned(),
        label: node.label,
    };
    let edge = |edge: kanat_flow::graph::Edge| wire::GraphEdge {
        from: edge.from,
        to: edge.to,
        label: edge.label,
    };
    Ok(wire::FlowGraph {
        nodes: graph.nodes.into_iter().map(node).collect(),
        edges: graph.edges.into_iter().map(edge).collect(),
        variables: variables
            .into_iter()
            .map(|(name, value)| wire::Variable { name, value })
            .collect(),
        text,
    })
}

fn rejected(app: &App, id: &FlowId) -> Vec<wire::Rejection> {
    let rejections = app.hub.rejections(&Kind::Flow.resource_id(id)).into_iter();
    rejections
        .map(|(node, message)| wire::Rejection {
            node_id: node.into_string(),
            message,
        })
        .collect()
}

/// A warning. An error is one for which a deploy is refused.
fn warning(found: Diagnostic) -> wire::Diagnostic {
    wire::Diagnostic {
        refuses_deploy: refuses_deploy(&found),
        ..diagnostic(found.into_warning())
    }
}

fn refuses_deploy(found: &Diagnostic) -> Option<bool> {
    (found.severity == Severity::Error).then_some(true)
}

fn diagnostic(diagnostic: Diagnostic) -> wire::Diagnostic {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    carry!(
        wire::Diagnostic, diagnostic { message, path, line, column }
        with {
            severity: severity.to_owned(),
        }
        over wire::Diagnostic::default()
    )
}

fn failure(failure: Failure) -> wire::TestError {
    carry!(
        wire::TestError, failure { message, field, expression }
        word { kind }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_due_next_where_it_neither_goes_on_nor_is_paused() {
        let now = Timestamp::from_millis(10_000);
        let next = |status, held_until| {
            let standing = PollStanding {
                due_at: Timestamp::from_millis(12_000),
                held_until: Timestamp::from_millis(held_until),
                ended: None,
            };
            poll(standing, status, now).next_poll_at
        };
        let due = Some("1970-01-01T00:00:12.000Z".to_owned());
        assert_eq!(next(FlowStatus::Active, 0), due);
        assert_eq!(next(FlowStatus::Active, 40_000), None);
        assert_eq!(next(FlowStatus::Paused, 0), None);
    }
}
