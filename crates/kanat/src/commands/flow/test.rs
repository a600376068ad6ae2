//! `kanat flow test`: a run of the draft that sends nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use serde_json::json;

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
    /// JSON file with the payload, or a text: one whose name ends with `.csv`, `.tsv` or `.xml`, or
    /// that a `content-type` header says to be one, a form too; `-` is standard input. A flow with
    /// the trigger schedule needs none.
    #[arg(long)]
    data: Option<String>,
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
    /// A member of `trigger.api`, of a published API: id, version or consumer; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    api: Vec<String>,
    /// JSON file with the outputs of steps, by their names: `{"find": {"id": 7}}`, or with a status
    /// and headers `{"find": {"status": 201, "headers": {"etag": "a"}, "output": {"id": 7}}}`
    /// [default status: 200].
    #[arg(long, value_name = "FILE")]
    steps: Option<String>,
}

impl Test {
    /// Fails when a run would.
    pub async fn run(self, session: &Session) -> Result<()> {
        let body = self.sample()?;
        let client = &session.client;
        let path = client.path(&FLOW, &self.flow).await?;
        let answer = match client.post(&format!("{path}/test"), &body).await {
            Ok(answer) => answer,
            Err(error) => return Err(diagnostics::explain_stored(session, &path, error).await),
        };
        session.print(&answer, output)?;
        session.hint(calls(&answer).trim_end());
        let has_headers = self.headers.is_some() || !self.header.is_empty();
        if has_headers && client.get(&path, &[]).await?.has("config.source.verify") {
            session.hint("a test does not check who sends: source.verify is left out");
        }
        match answer.list("errors").len() {
            0 if lacks_output(&answer) => Err(failure(
                "the test could not make the output: give the outputs of steps with --steps FILE, \
                 or the call with --api NAME=VALUE",
            )),
            0 => Ok(()),
            errors => Err(failure(format!(
                "the test found {}",
                diagnostics::counted(errors)
            ))),
        }
    }

    fn sample(&self) -> Result<Json> {
        let mut headers = match &self.headers {
            None => Json::Object(Vec::new()),
            Some(file) => match input::json(file)? {
                headers @ Json::Object(_) => headers,
                Json::Bare(_) | Json::Text(_) | Json::List(_) => {
                    return Err(usage(format!(
                        "{} is no object of headers",
                        input::name(file)
                    )));
                }
            },
        };
        for (name, values) in grouped("--header", &self.header, ':')? {
            let values: Vec<&str> = values.iter().map(|value| value.trim()).collect();
            if let Json::Object(members) = &mut headers {
                members.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
                members.push((name, json!(values).into()));
            }
        }
        let path_params = pairs("--path-param", &self.path_param, '=')?;
        let api = BTreeMap::from_iter(pairs("--api", &self.api, '=')?);
        let members = json!({
            "query": grouped("--query", &self.query, '=')?,
            "method": self.method,
            "pathParams": BTreeMap::from_iter(path_params),
            "api": (!api.is_empty()).then_some(api),
        });
        let steps = self.steps.as_deref().map(input::json).transpose()?;
        Ok(Json::given(members).with([
            ("sampleData", self.payload(&headers)?),
            ("headers", Some(headers)),
            ("stepOutputs", steps),
        ]))
    }
}

impl Test {
    fn payload(&self, headers: &Json) -> Result<Option<Json>> {
        let Some(data) = &self.data else {
            return Ok(None);
        };
        let mut declared = headers
            .members("")
            .filter(|(name, _)| is_content_type(name));
        let declared = declared.next().and_then(|(_, value)| match value {
            Json::List(values) => values.first()?.as_text(),
            Json::Text(text) => Some(text.as_str()),
            Json::Bare(_) | Json::Object(_) => None,
        });
        input::payload(data, declared).map(Some)
    }
}

fn is_content_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-type")
}

/// Returns the values of each name. Errors name the flag.
fn grouped(flag: &str, texts: &[String], between: char) -> Result<BTreeMap<String, Vec<String>>> {
    let mut grouped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in pairs(flag, texts, between)? {
        grouped.entry(name).or_default().push(value);
    }
    Ok(grouped)
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

/// Returns whether the payload passes the condition, and the output needs what the test does not
/// know.
fn lacks_output(answer: &Json) -> bool {
    answer.text("matched") != "false" && !answer.has("output") && answer.list("errors").is_empty()
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
    if answer.text("matched") == "false" && answer.list("errors").is_empty() {
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
    for (name, value) in entry.members("request.headers") {
        let _ = write!(out, "\n  {name}: {}", value.as_text().unwrap_or_default());
    }
    let body = entry.at("request.body").filter(|_| of != "target");
    if let Some(body) = body.filter(|_| entry.has("request.body")) {
        let _ = write!(out, "\n  {}", body.compact());
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
    fn an_output_that_could_not_be_made_is_no_success() {
        let answer = |text: &str| Json::parse(text).unwrap();
        assert!(lacks_output(&answer(r#"{"matched":true,"errors":[]}"#)));
        let filtered = answer(r#"{"matched":false,"errors":[]}"#);
        assert!(!lacks_output(&filtered), "nothing was to be made");
        let made = answer(r#"{"matched":true,"errors":[],"output":{}}"#);
        assert!(!lacks_output(&made));
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
