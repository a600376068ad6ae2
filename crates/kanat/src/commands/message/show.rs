//! Messages and their traces in words.

use std::fmt::Write;

use crate::output::{Json, table};

/// Columns of a list of one flow's messages.
const COLUMNS: &str = "ID:id,STATUS:status,ATTEMPTS:attempts,RECEIVED:receivedAt,MS:durationMs,\
                       ERROR:error.message";
const FIELDS: &str = "Id:id,Status:status,Flow:flowName,Version:flowVersion,Trigger:trigger,\
                      Attempts:attempts,Next attempt:nextAttemptAt,Received:receivedAt,\
                      Completed:completedAt,Duration (ms):durationMs,Ordering key:orderingKey,\
                      Waits for:waitsFor,\
                      Replay of:replayOf";

/// Characters of a body that a line of the trace shows.
const BODY_CHARS: usize = 300;

/// A page of messages, with their flows where it is of several.
pub fn list(answer: &Json, of_several: bool) -> String {
    if of_several {
        table::list(answer, &format!("FLOW:flowName,{COLUMNS}"))
    } else {
        table::list(answer, COLUMNS)
    }
}

/// How to see what a page of messages left out, if it did.
pub fn more(answer: &Json) -> Option<String> {
    let cursor = answer
        .has("pagination.nextCursor")
        .then(|| answer.text("pagination.nextCursor"))?;
    let more = if answer.text("pagination.totalIsLeast") == "true" {
        "more than "
    } else {
        ""
    };
    let shown = answer.list("data").len();
    let total = answer.text("pagination.total");
    Some(format!(
        "{shown} of {more}{total}; --cursor {cursor} goes on"
    ))
}

/// Everything about one message.
pub fn whole(message: &Json) -> String {
    let mut out = table::fields(message, FIELDS);
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
    format!(
        "{}: {}",
        message.text("error.kind"),
        message.text("error.message")
    )
}

/// Returns a call and its answer. A failure that names both is not repeated.
fn exchange(entry: &Json) -> String {
    let mut out = String::new();
    if entry.has("response.status") {
        let _ = write!(out, " -> {}", entry.text("response.status"));
    }
    let call = format!(
        "{} {}",
        entry.text("request.method"),
        entry.text("request.url")
    );
    if !entry.has("request.url") || entry.text("error").starts_with(&call) {
        return out;
    }
    let _ = write!(out, "\n    {call}");
    if let Some(body) = entry
        .at("response.body")
        .filter(|_| entry.has("response.body"))
    {
        let text = body.as_text().map_or_else(|| body.compact(), str::to_owned);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut = if line.chars().count() > BODY_CHARS {
            "…"
        } else {
            ""
        };
        let _ = write!(
            out,
            "\n    {}{cut}",
            line.chars().take(BODY_CHARS).collect::<String>()
        );
    }
    out
}

/// A line for each thing that happened.
pub fn trace(entries: &[Json]) -> String {
    let mut out = String::new();
    let mut said = (String::new(), String::new());
    for entry in entries {
        let attempt = match entry.text("attempt").as_str() {
            "" | "0" => String::new(),
            attempt => format!(" #{attempt}"),
        };
        let at = entry.text("at");
        let time = at.split_once('T').map_or(at.as_str(), |(_, time)| time);
        let what = format!("{}{attempt}", entry.text("stage"));
        let _ = write!(
            out,
            "{time}  {what:<18} {:<7} {}",
            entry.text("status"),
            entry.text("name")
        );
        if entry.text("durationMs") != "0" {
            let _ = write!(out, " ({} ms)", entry.text("durationMs"));
        }
        out.push_str(&exchange(entry));
        for line in entry.texts("response.logs") {
            let _ = write!(out, "\n    logged: {}", line.trim_end());
        }
        // What follows from a failure repeats its text, within one attempt.
        let error = (entry.text("attempt"), entry.text("error"));
        if !error.1.is_empty() && error != said {
            let _ = write!(out, "\n    {}", error.1);
        }
        said = error;
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_shows_calls_and_their_answers() {
        let shown = |error: &str| {
            let entry = format!(
                r#"[{{"at":"2026-01-31T12:00:00.000Z","stage":"delivery","name":"erp",
                "status":"failed","durationMs":7,"attempt":1,"error":"{error}",
                "request":{{"method":"POST","url":"http://erp/in"}},
                "response":{{"status":500,"headers":{{}},"body":{{"error": "E42"}}}}}}]"#
            );
            let Json::List(entries) = Json::parse(&entry).unwrap() else {
                panic!("a list")
            };
            trace(&entries)
        };
        let short = shown("the target refused it");
        assert!(
            short.ends_with(
                " -> 500\n    POST http://erp/in\n    {\"error\":\"E42\"}\n    the \
                             target refused it\n"
            ),
            "{short}"
        );
        let whole = shown("POST http://erp/in answered 500: E42");
        assert!(
            whole.ends_with(" -> 500\n    POST http://erp/in answered 500: E42\n"),
            "{whole}"
        );
    }

    #[test]
    fn each_attempt_shows_its_error_once() {
        let entry = |attempt: u32, stage: &str| {
            format!(
                r#"{{"at":"2026-01-31T12:00:00.000Z","stage":"{stage}","name":"erp",
                "status":"failed","durationMs":0,
                "attempt":{attempt},"error":"the target refused it"}}"#
            )
        };
        let entries = [
            (1, "delivery"),
            (1, "retry_scheduled"),
            (2, "delivery"),
            (2, "dead_lettered"),
        ];
        let entries = entries.map(|(attempt, stage)| Json::parse(&entry(attempt, stage)).unwrap());
        let told = trace(&entries);
        let lines: Vec<&str> = told.lines().map(str::trim).collect();
        assert_eq!(lines[1], "the target refused it", "{told}");
        assert_eq!(lines[4], "the target refused it", "{told}");
        assert_eq!(lines.len(), 6, "{told}");
    }

    #[test]
    fn a_list_over_all_flows_names_them_and_goes_on_by_its_cursor() {
        let answer = r#"{"data":[{"id":"msg_1","flowName":"orders"}],
            "pagination":{"total":10000,"totalIsLeast":true,"limit":1,"nextCursor":"0-7"}}"#;
        let answer = Json::parse(answer).unwrap();
        let told = list(&answer, true);
        assert!(told.contains("orders"), "{told}");
        assert_eq!(
            more(&answer).as_deref(),
            Some("1 of more than 10000; --cursor 0-7 goes on")
        );
        assert!(!list(&answer, false).contains("orders"));
    }
}
