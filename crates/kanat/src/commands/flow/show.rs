//! Flows, versions and test results in words.

use std::fmt::Write;

use super::diagnostics;
use crate::output::Json;
use crate::output::table::{self, Column};

pub const COLUMNS: [Column; 6] = [
    ("NAME", "name"),
    ("STATUS", "status"),
    ("VERSION", "version"),
    ("ID", "id"),
    ("UPDATED", "updatedAt"),
    ("POLL ERROR", "lastError.message"),
];
pub const VERSION_COLUMNS: [Column; 4] =
    [("VERSION", "version"), ("DEPLOYED", "createdAt"), ("BY", "createdBy"), ("SUMMARY", "changeSummary")];
const FIELDS: [Column; 12] = [
    ("Name", "name"),
    ("Status", "status"),
    ("Version", "version"),
    ("Id", "id"),
    ("Description", "description"),
    ("Webhook", "webhookUrl"),
    ("Created", "createdAt"),
    ("Updated", "updatedAt"),
    ("Last poll", "poll.lastPolledAt"),
    ("Next poll", "poll.nextPollAt"),
    ("Failed at", "lastError.at"),
    ("Poll error", "lastError.message"),
];

/// Everything about one flow.
pub fn whole(flow: &Json) -> String {
    let definition = table::section("Definition", &flow.text("yamlConfig"));
    table::fields(flow, &FIELDS) + &warnings(flow) + &refusals(flow) + &definition
}

/// A draft that was created or changed.
pub fn draft(flow: &Json) -> String {
    let name = flow.text("name");
    match flow.text("status").as_str() {
        "draft" => format!("flow {name} is a draft ({})", flow.text("id")),
        status => format!("flow {name} is changed and still {status} as version {}", flow.text("version")),
    }
}

/// A flow that has just become live.
pub fn deployed(flow: &Json) -> String {
    let (name, status, version) = (flow.text("name"), flow.text("status"), flow.text("version"));
    let mut out = format!("flow {name} is {status} as version {version}\n");
    if flow.has("webhookUrl") {
        let _ = writeln!(out, "post to {}", flow.text("webhookUrl"));
    }
    out + &refusals(flow)
}

fn refusals(flow: &Json) -> String {
    let line = |item: &Json| format!("refused by node {}: {}\n", item.text("nodeId"), item.text("message"));
    flow.list("rejected").iter().map(line).collect()
}

/// What a definition names that does not exist yet.
fn warnings(flow: &Json) -> String {
    let file = format!("flow {}", flow.text("name"));
    diagnostics::report(&file, &flow.text("yamlConfig"), &diagnostics::faults(flow, "warnings"))
}

/// What a test found.
pub fn test(answer: &Json) -> String {
    let errors = answer.list("errors");
    if !errors.is_empty() {
        let lines = errors.iter().map(|error| format!("{}: {}\n", error.text("kind"), error.text("message")));
        return lines.collect();
    }
    if answer.text("matched") == "false" {
        return "filtered: the flow's condition is false for this payload".to_owned();
    }
    answer.at("output").map_or_else(String::new, Json::pretty)
}
