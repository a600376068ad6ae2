//! Flows, versions and test results in words.

use std::fmt::Write;

use kanat_flow::Diagnostic;

use super::diagnostics;
use crate::output::{Json, table};

pub const COLUMNS: &str = "NAME:name,STATUS:status,VERSION:deployedVersion,DRAFT:draft,ID:id,\
                           UPDATED:updatedAt,POLL ERROR:lastError.message";
pub const VERSION_COLUMNS: &str = "VERSION:version,DEPLOYED:createdAt,BY:createdBy.name,\
                                   SUMMARY:changeSummary";
const FIELDS: &str = "Name:name,Status:status,Version:deployedVersion,Id:id,\
                      Description:description,Webhook:webhookUrl,Created:createdAt,\
                      Updated:updatedAt,Last poll:poll.lastPolledAt,Next poll:poll.nextPollAt,\
                      Failed at:lastError.at,Poll error:lastError.message";

/// Everything about one flow.
pub fn whole(flow: &Json) -> String {
    let title = if is_changed(flow) {
        "Definition (the draft, which does not run)"
    } else {
        "Definition"
    };
    let definition = table::section(title, &flow.text("yamlConfig"));
    let not_yet = match flow.has("webhookUrl") && !flow.has("deployedVersion") {
        true => "the webhook address takes nothing before the flow is deployed\n",
        false => "",
    };
    table::fields(flow, FIELDS)
        + not_yet
        + &pending(flow)
        + &warnings(flow)
        + &refusals(flow)
        + &definition
}

/// Returns whether a deployed flow has a draft that differs from what runs.
pub fn is_changed(flow: &Json) -> bool {
    flow.has("deployedVersion") && flow.text("draft") == "true"
}

/// Returns the note about a draft that differs from what runs.
fn pending(flow: &Json) -> String {
    if !is_changed(flow) {
        return String::new();
    }
    format!(
        "the draft differs from version {}, which runs\n",
        flow.text("deployedVersion")
    )
}

/// How to see what a draft changes, if it does.
pub fn difference(flow: &Json) -> Option<String> {
    is_changed(flow).then(|| {
        format!(
            "see what differs with `kanat flow diff {}`",
            flow.text("name")
        )
    })
}

/// A draft that was created or changed.
pub fn draft(flow: &Json) -> String {
    let name = flow.text("name");
    match flow.text("status").as_str() {
        "draft" => format!("flow {name} is a draft ({})", flow.text("id")),
        status => format!(
            "flow {name} is changed and still {status} as version {}",
            flow.text("version")
        ),
    }
}

/// Returns whether a flow is deployed and has no draft beside what runs.
pub fn runs_definition(flow: &Json) -> bool {
    flow.has("deployedVersion") && !is_changed(flow)
}

/// A flow that was `before` until it was given the definition that runs.
pub fn redrafted(before: &Json, flow: &Json) -> String {
    let [name, status, version] = ["name", "status", "version"].map(|field| flow.text(field));
    let former = before.text("name");
    let done = if is_changed(before) {
        format!("the draft of flow {name} is dropped")
    } else if former != name {
        format!("flow {former} is now {name}")
    } else {
        format!("flow {name} is unchanged")
    };
    format!("{done}: it runs this definition already ({status}, version {version})")
}

/// A flow that has just been deployed, and was `before` until then.
pub fn deployed_after(before: &Json, flow: &Json) -> String {
    if !is_unchanged(before, flow) {
        return deployed(flow);
    }
    let [name, status, version] = ["name", "status", "version"].map(|field| flow.text(field));
    live(
        flow,
        format!("flow {name} is unchanged ({status}, version {version})\n"),
    )
}

/// Returns whether a deploy changed nothing, because the definition ran already.
fn is_unchanged(before: &Json, flow: &Json) -> bool {
    before.has("deployedVersion") && before.text("deployedVersion") == flow.text("deployedVersion")
}

/// A flow that has just become live.
pub fn deployed(flow: &Json) -> String {
    let [name, status, version] = ["name", "status", "version"].map(|field| flow.text(field));
    live(
        flow,
        format!("flow {name} is {status} as version {version}\n"),
    )
}

/// A flow that runs: `out`, which says so, and what else its callers need to know.
fn live(flow: &Json, mut out: String) -> String {
    if flow.has("heldMessages") {
        let held = flow.text("heldMessages");
        let _ = match flow.text("status").as_str() {
            "paused" => writeln!(out, "it stays paused, with {held} messages held"),
            _ => writeln!(
                out,
                "it was paused, and runs again: held messages that go on: {held}"
            ),
        };
    }
    if flow.has("webhookUrl") {
        let _ = writeln!(out, "post to {}", flow.text("webhookUrl"));
    }
    out + &refusals(flow)
}

fn refusals(flow: &Json) -> String {
    let line = |item: &Json| {
        format!(
            "refused by node {}: {}\n",
            item.text("nodeId"),
            item.text("message")
        )
    };
    flow.list("rejected").iter().map(line).collect()
}

/// Ends of warnings of what a deploy changes beside the definition: another connector has the name,
/// or a step has another name.
const EFFECTS_OF_DEPLOY: [&str; 2] = ["a deploy goes over to it", "after a deploy runs it again"];

/// Returns the warnings of what a deploy changes beside the definition.
pub fn effects_of_deploy(flow: &Json) -> Vec<String> {
    let mut effects = diagnostics::faults(flow, "warnings");
    effects.retain(|warning| {
        let mut ends = EFFECTS_OF_DEPLOY.iter();
        ends.any(|end| warning.message.ends_with(end))
    });
    let line = |warning: &Diagnostic| format!("warning: {}", warning.message);
    effects.iter().map(line).collect()
}

/// Returns the names of a definition that do not exist, or have no usable value.
pub fn warnings(flow: &Json) -> String {
    let file = format!("flow {}", flow.text("name"));
    diagnostics::report(
        &file,
        &flow.text("yamlConfig"),
        &diagnostics::faults(flow, "warnings"),
    )
}
