//! Messages and their traces in words.

use std::fmt::Write;

use crate::output::Json;
use crate::output::table::{self, Column};

pub const COLUMNS: [Column; 6] = [
    ("ID", "id"),
    ("STATUS", "status"),
    ("ATTEMPTS", "attempts"),
    ("RECEIVED", "receivedAt"),
    ("MS", "durationMs"),
    ("ERROR", "error.message"),
];
const FIELDS: [Column; 12] = [
    ("Id", "id"),
    ("Status", "status"),
    ("Flow", "flowName"),
    ("Version", "flowVersion"),
    ("Trigger", "trigger"),
    ("Attempts", "attempts"),
    ("Next attempt", "nextAttemptAt"),
    ("Received", "receivedAt"),
    ("Completed", "completedAt"),
    ("Duration (ms)", "durationMs"),
    ("Ordering key", "orderingKey"),
    ("Replay of", "replayOf"),
];

/// Everything about one message.
pub fn whole(message: &Json) -> String {
    let mut out = table::fields(message, &FIELDS);
    if message.has("error") {
        out.push_str(&table::section("Error", &error(message)));
    }
    for (title, path) in [("Payload", "payload"), ("Output", "output")] {
        if let Some(body) = message.at(path).filter(|_| message.has(path)) {
            out.push_str(&table::section(title, &body.pretty()));
        }
    }
    out.push_str(&table::section("Trace", &trace(message.list("trace"))));
    out
}

/// The error of a message in one line.
pub fn error(message: &Json) -> String {
    format!("{}: {}", message.text("error.kind"), message.text("error.message"))
}

/// A line for each thing that happened.
pub fn trace(entries: &[Json]) -> String {
    let mut out = String::new();
    let mut said = String::new();
    for entry in entries {
        let attempt = match entry.text("attempt").as_str() {
            "" | "0" => String::new(),
            attempt => format!(" #{attempt}"),
        };
        let at = entry.text("at");
        let time = at.split_once('T').map_or(at.as_str(), |(_, time)| time);
        let what = format!("{}{attempt}", entry.text("stage"));
        let _ = write!(out, "{time}  {what:<18} {:<7} {}", entry.text("status"), entry.text("name"));
        if entry.text("durationMs") != "0" {
            let _ = write!(out, " ({} ms)", entry.text("durationMs"));
        }
        if let Some(status) = entry.at("response.status") {
            let _ = write!(out, " -> {}", status.compact());
        }
        // What follows from a failure repeats its text.
        let error = entry.text("error");
        if !error.is_empty() && error != said {
            let _ = write!(out, "\n    {error}");
        }
        said = error;
        out.push('\n');
    }
    out
}
