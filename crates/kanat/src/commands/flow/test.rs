//! `kanat flow test`: a run of the draft that sends nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::diagnostics;
use crate::client::flag;
use crate::client::name::FLOW;
use crate::commands::{Session, input};
use crate::exit::{failure, usage};
use crate::output::Json;

/// Arguments of `kanat flow test`.
#[derive(clap::Args)]
pub struct Test {
    flow: String,
    /// JSON file with the payload; `-` is standard input.
    #[arg(long)]
    data: String,
    /// A header that came with the payload; may be repeated.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    header: Vec<String>,
    /// JSON file with headers: an object of texts.
    #[arg(long, value_name = "FILE")]
    headers: Option<String>,
    /// A parameter of the query; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    query: Vec<String>,
    /// Method of the request [default: POST].
    #[arg(long)]
    method: Option<String>,
    /// A parameter of the path, of a published API; may be repeated.
    #[arg(long = "path-param", value_name = "NAME=VALUE")]
    path_param: Vec<String>,
    /// JSON file with the outputs of steps, by their names: `{"find": {"id": 7}}`, or with a status
    /// `{"find": {"status": 201, "output": {"id": 7}}}` [default status: 200].
    #[arg(long, value_name = "FILE")]
    steps: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    sample_data: Box<RawValue>,
    headers: BTreeMap<String, Box<RawValue>>,
    query: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    path_params: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_outputs: Option<Box<RawValue>>,
}

impl Test {
    /// Fails when a run would.
    pub async fn run(self, session: &Session) -> Result<()> {
        let body = self.sample()?;
        let path = session.client.path(&FLOW, &self.flow).await?;
        let answer = match session.client.post(&format!("{path}/test"), &body).await {
            Ok(answer) => answer,
            Err(error) => return Err(diagnostics::explain_stored(session, &path, error).await),
        };
        session.print(&answer, output)?;
        session.hint(calls(&answer).trim_end());
        let has_headers = self.headers.is_some() || !self.header.is_empty();
        if has_headers
            && session
                .client
                .get(&path, &[])
                .await?
                .has("config.source.verify")
        {
            session.hint("a test does not check who sends: source.verify is left out");
        }
        match answer.list("errors").len() {
            0 => Ok(()),
            1 => Err(failure("the test found 1 error")),
            errors => Err(failure(format!("the test found {errors} errors"))),
        }
    }

    fn sample(&self) -> Result<Sample> {
        let mut headers: BTreeMap<String, Box<RawValue>> = match &self.headers {
            None => BTreeMap::new(),
            Some(file) => serde_json::from_str(input::json(file)?.get()).map_err(|error| {
                usage(format!(
                    "{} is no object of headers: {error}",
                    input::name(file)
                ))
            })?,
        };
        let mut given: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in pairs("--header", &self.header, ':')? {
            given.entry(name).or_default().push(value.trim().to_owned());
        }
        for (name, values) in given {
            headers.retain(|other, _| !other.eq_ignore_ascii_case(&name));
            headers.insert(name, to_raw_value(&values)?);
        }
        let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in pairs("--query", &self.query, '=')? {
            query.entry(name).or_default().push(value);
        }
        Ok(Sample {
            sample_data: input::json(&self.data)?,
            headers,
            query,
            method: self.method.clone(),
            path_params: pairs("--path-param", &self.path_param, '=')?
                .into_iter()
                .collect(),
            step_outputs: self.steps.as_deref().map(input::json).transpose()?,
        })
    }
}

/// Errors name the flag.
fn pairs(flag: &str, texts: &[String], between: char) -> Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        let (name, value) = text
            .split_once(between)
            .ok_or_else(|| usage(format!("{flag} {text:?} lacks a {between:?}")))?;
        Ok((name.trim().to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}

/// The output, which is all that a file or another program is given.
fn output(answer: &Json) -> String {
    answer
        .at("output")
        .map(|output| output.pretty() + "\n")
        .unwrap_or_default()
}

/// Findings beside the output: the errors, and the calls that a run would make.
fn calls(answer: &Json) -> String {
    let mut out = String::new();
    for error in answer.list("errors") {
        let _ = writeln!(out, "{}: {}", error.text("kind"), error.text("message"));
    }
    if answer.text("matched") == "false" {
        out.push_str("filtered: the flow's condition is false for this payload\n");
    }
    for entry in answer.list("trace") {
        if matches!(entry.text("stage").as_str(), "step" | "delivery") && entry.has("request") {
            let _ = writeln!(out, "{}", call(entry));
        } else if entry.text("status") != "failed" && entry.has("error") {
            let _ = writeln!(
                out,
                "{} {}: {}",
                entry.text("stage"),
                entry.text("name"),
                entry.text("error")
            );
        }
    }
    if let Some(flag) = flag::hint(&out, []) {
        let _ = writeln!(out, "{flag}");
    }
    out
}

/// A call in the words of a request: its line, its headers, its body when it is not the output
/// above.
fn call(entry: &Json) -> String {
    let of = match entry.text("stage").as_str() {
        "step" => format!("step {}", entry.text("name")),
        _ => "target".to_owned(),
    };
    let mut out = format!(
        "\n{of}: {} {}",
        entry.text("request.method"),
        entry.text("request.url")
    );
    if let Some(Json::Object(headers)) = entry.at("request.headers") {
        for (name, value) in headers {
            let _ = write!(out, "\n  {name}: {}", value.as_text().unwrap_or_default());
        }
    }
    if of != "target" && entry.has("request.body") {
        let _ = write!(
            out,
            "\n  {}",
            entry
                .at("request.body")
                .map(Json::compact)
                .unwrap_or_default()
        );
    }
    if entry.has("error") {
        let _ = write!(out, "\n  note: {}", entry.text("error"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_calls_that_a_run_would_make() {
        let answer = r#"{"output":{"id":1},"matched":true,"errors":[],"trace":[
            {"stage":"received","name":"test","status":"ok"},
            {"stage":"step","name":"open","status":"skipped","request":
                {"method":"PUT","url":"http://desk/t","headers":{"x":"1"},"body":{"a":1.10}}},
            {"stage":"delivery","name":"target","status":"skipped","request":
                {"method":"POST","url":"http://erp/in","headers":{}},
                "error":"the output of step \"open\" is not known"}]}"#;
        let answer = Json::parse(answer).unwrap();
        assert_eq!(output(&answer), "{\n  \"id\": 1\n}\n");
        let shown = calls(&answer);
        assert!(
            shown.contains("step open: PUT http://desk/t\n  x: 1\n  {\"a\":1.10}"),
            "{shown}"
        );
        assert!(
            shown.contains("target: POST http://erp/in\n  note: the output of step \"open\""),
            "{shown}"
        );
    }

    #[test]
    fn a_header_without_a_colon_is_a_usage_error() {
        assert_eq!(
            pairs("--header", &["A: b:c".to_owned()], ':').unwrap(),
            [("A".to_owned(), " b:c".to_owned())]
        );
        assert!(pairs("--header", &["A".to_owned()], ':').is_err());
    }
}
