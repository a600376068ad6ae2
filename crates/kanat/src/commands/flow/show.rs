//! Flows, versions and test results in words.

use std::fmt::Write;

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
pub fn warnings(flow: &Json) -> String {
    diagnostics("", flow.list("warnings"))
}

/// A line for each, with its place in the file as compilers print it.
pub fn diagnostics(file: &str, items: &[Json]) -> String {
    let mut out = String::new();
    for item in items {
        let path = item.text("path");
        let path = if path.is_empty() { path } else { format!(" ({path})") };
        let place = [file.to_owned(), item.text("line"), item.text("column")];
        let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
        let _ = writeln!(out, "{}: {}: {}{path}", place.join(":"), item.text("severity"), item.text("message"));
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_reads_as_compilers_print_it() {
        let text = r#"[{"severity":"error","message":"unknown key","path":"mapping.a","line":3,"column":5}]"#;
        let Json::List(items) = Json::parse(text).unwrap() else { panic!("a list") };
        assert_eq!(diagnostics("a.yaml", &items), "a.yaml:3:5: error: unknown key (mapping.a)\n");
    }
}
