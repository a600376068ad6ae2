//! Sample of a test, which stands in for the request and for the outputs of steps.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use kanat_engine::form;
use kanat_engine::trigger::{self, InboundRequest};
use kanat_mapping::json;
use kanat_model::{Error, Result, Timestamp};
use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{FlowPlan, Verify};

use crate::app::json::check as check_json;

/// A sample as the caller gives it. Each field but `method` is JSON text; a field that is left out
/// is empty.
#[derive(Debug, Default)]
pub struct Sample {
    /// A text under the content type of forms is the form as it comes in. Required.
    pub payload: Option<String>,
    /// An object of texts, or of lists of texts.
    pub headers: Option<String>,
    /// An object of texts, or of lists of texts.
    pub query: Option<String>,
    /// POST when left out.
    pub method: Option<String>,
    /// An object.
    pub path_params: Option<String>,
    /// An object of texts: the members of `trigger.api`.
    pub api: Option<String>,
    /// An object: the output of each step by its name, or `{output, status, headers}`.
    pub step_outputs: Option<String>,
}

/// A sample that has been checked.
#[derive(Debug)]
pub struct CheckedSample {
    pub payload: String,
    /// The form that the payload was made of.
    form: Option<String>,
    /// The document that expressions see as `trigger`.
    pub trigger: Vec<u8>,
    /// True if runs have `trigger.api`, and it is not given.
    pub lacks_api: bool,
    /// Declared type of the body.
    pub content_type: Option<HeaderValue>,
    pub outputs: Vec<StepOutput>,
}

/// The answer that a step is taken to have had.
#[derive(Debug, PartialEq, Eq)]
pub struct StepOutput {
    pub step: String,
    /// JSON.
    pub output: String,
    /// `None` when the output was given without one.
    pub status: Option<u16>,
    /// Headers of the answer; `None` when the output was given without them.
    pub headers: Option<HeaderMap>,
}

/// Status of an output that was given without one.
const DEFAULT_STATUS: u16 = 200;

impl StepOutput {
    /// Returns the status that expressions see.
    pub fn status(&self) -> u16 {
        self.status.unwrap_or(DEFAULT_STATUS)
    }
}

impl Sample {
    /// Errors name the member that is wrong.
    pub fn check(self, plan: &FlowPlan, at: Timestamp) -> Result<CheckedSample> {
        let given = self
            .payload
            .ok_or_else(|| Error::field("sampleData", "is required"))?;
        check_json("sampleData", &given)?;
        let headers = headers("headers", self.headers.as_deref())?;
        let form = form(&headers, &given);
        let payload = match &form {
            None => given,
            Some(form) => {
                let payload = form::payload(form.as_bytes())
                    .map_err(|error| Error::field("sampleData", error.to_string()))?;
                String::from_utf8_lossy(&payload).into_owned()
            }
        };
        let method = self
            .method
            .as_deref()
            .filter(|method| !method.is_empty())
            .unwrap_or("POST");
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| Error::field("method", format!("{method:?} is no HTTP method")))?;
        let path_params = self.path_params.unwrap_or_else(|| "{}".to_owned());
        members("pathParams", &path_params)?;
        let query = texts("query", self.query.as_deref())?;
        let api = api(plan, self.api.as_deref())?;
        let received = InboundRequest {
            method: &method,
            headers: &headers,
            query,
            at,
            verify: verify(plan),
            path_params: path_params.as_bytes(),
            members: api.as_deref().unwrap_or_default().as_bytes(),
        };
        let trigger = trigger::document_with_credentials(&received)
            .unwrap_or_else(|| trigger::document(&received));
        Ok(CheckedSample {
            outputs: outputs(plan, self.step_outputs.as_deref())?,
            content_type: headers.get(header::CONTENT_TYPE).cloned(),
            payload,
            form,
            trigger,
            lacks_api: api.is_none() && is_called(plan),
        })
    }
}

impl CheckedSample {
    /// The body as it would have come in: of a text that is declared to be no JSON, its characters.
    pub fn body(&self) -> String {
        let declared = self
            .content_type
            .as_ref()
            .and_then(|declared| declared.to_str().ok())
            .unwrap_or_default();
        if declared.is_empty() || declared.contains("json") {
            self.payload.clone()
        } else {
            self.text()
        }
    }

    /// A sample that is a string stands for a body of that text where an adapter reads the body.
    pub fn text(&self) -> String {
        if let Some(form) = &self.form {
            return form.clone();
        }
        let text = self.payload.trim();
        if text.starts_with('"') {
            json::decode(text).into_owned()
        } else {
            self.payload.clone()
        }
    }
}

/// Returns the form that a sample is: a text that is declared to be one.
fn form(headers: &HeaderMap, given: &str) -> Option<String> {
    let declared = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let given = given.trim();
    (form::is_declared(declared) && given.starts_with('"'))
        .then(|| json::decode(given).into_owned())
}

fn headers(place: &str, given: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, values) in texts(place, given)? {
        let field = format!("{place}.{name}");
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Error::field(&field, format!("{name:?} is no name of an HTTP header")))?;
        for value in values {
            let value = HeaderValue::from_str(&value)
                .map_err(|_| Error::field(&field, "has a character that no header may have"))?;
            headers.append(key.clone(), value);
        }
    }
    Ok(headers)
}

fn outputs(plan: &FlowPlan, given: Option<&str>) -> Result<Vec<StepOutput>> {
    let given = members("stepOutputs", given.unwrap_or("{}"))?;
    for (name, _) in &given {
        if !plan.steps.iter().any(|step| step.name == *name) {
            return Err(Error::field(
                format!("stepOutputs.{name}"),
                format!("the flow has no step {name:?}"),
            ));
        }
    }
    given.into_iter().map(step_output).collect()
}

/// Reads an output. An object that has `output`, a `status` or `headers`, and nothing else, is the
/// answer of the step; every other value is the output of a step that was answered with 200.
fn step_output((step, value): (String, String)) -> Result<StepOutput> {
    let Some(answer) = StepAnswer::read(&value) else {
        if StepAnswer::is_meant(&value) {
            return Err(Error::field(
                format!("stepOutputs.{step}"),
                "has output, status and headers, and either status is no number from 100 to 999 \
                 or headers is no object",
            ));
        }
        return Ok(StepOutput {
            step,
            output: value,
            status: None,
            headers: None,
        });
    };
    let place = format!("stepOutputs.{step}.headers");
    let headers = answer.headers.map(|given| headers(&place, Some(given)));
    Ok(StepOutput {
        step,
        output: answer.output.to_owned(),
        status: answer.status,
        headers: headers.transpose()?,
    })
}

/// Answer of a step as it is given.
struct StepAnswer<'v> {
    output: &'v str,
    status: Option<u16>,
    /// A JSON object.
    headers: Option<&'v str>,
}

impl<'v> StepAnswer<'v> {
    /// Returns whether an object has the members of an answer and no others.
    fn is_meant(value: &str) -> bool {
        let names = ["output", "status", "headers"];
        value.starts_with('{')
            && names.iter().all(|name| json::member(value, name).is_some())
            && json::members(value).len() == names.len()
    }

    fn read(value: &'v str) -> Option<Self> {
        if !value.starts_with('{') {
            return None;
        }
        let output = json::member(value, "output")?.trim();
        let status = json::member(value, "status")
            .and_then(|status| status.trim().parse().ok())
            .filter(|status| (100..1000).contains(status));
        let headers = json::member(value, "headers")
            .map(str::trim)
            .filter(|headers| headers.starts_with('{'));
        let known = 1 + usize::from(status.is_some()) + usize::from(headers.is_some());
        (known > 1 && json::members(value).len() == known).then_some(Self {
            output,
            status,
            headers,
        })
    }
}

/// Members of `trigger.api`.
const API_MEMBERS: [&str; 3] = ["id", "version", "consumer"];

/// Returns the member `api` of the trigger document; none where it is not given.
fn api(plan: &FlowPlan, given: Option<&str>) -> Result<Option<String>> {
    let Some(given) = given.filter(|given| given.trim() != "null") else {
        return Ok(None);
    };
    let given = members("api", given)?;
    if !is_called(plan) {
        let message = "is of calls of a published API, and the flow has another trigger than api";
        return Err(Error::field("api", message));
    }
    let mut shown = Vec::with_capacity(given.len());
    for (name, value) in given.iter().filter(|(_, value)| value != "null") {
        let field = format!("api.{name}");
        if !API_MEMBERS.contains(&name.as_str()) {
            let message = "is not known: there are id, version and consumer";
            return Err(Error::field(field, message));
        }
        if !value.starts_with('"') {
            return Err(Error::field(field, "must be a text"));
        }
        shown.push(format!("\"{name}\":{value}"));
    }
    Ok(Some(format!("\"api\":{{{}}}", shown.join(","))))
}

/// Returns whether published APIs call the flow.
fn is_called(plan: &FlowPlan) -> bool {
    let kind = plan
        .trigger
        .as_ref()
        .and_then(|trigger| trigger.kind.as_ref());
    matches!(kind, Some(Kind::Api(_)))
}

fn verify(plan: &FlowPlan) -> Option<&Verify> {
    match plan.trigger.as_ref()?.kind.as_ref()? {
        Kind::Webhook(webhook) => webhook.verify.as_ref(),
        Kind::Schedule(_) | Kind::Manual(_) | Kind::Poll(_) | Kind::Api(_) => None,
    }
}

/// The members of an object; none when it is left out or null.
fn members(field: &str, text: &str) -> Result<Vec<(String, String)>> {
    check_json(field, text)?;
    match text.trim() {
        "null" => Ok(Vec::new()),
        object if object.starts_with('{') => {
            let members = json::members(object).into_iter();
            Ok(members
                .map(|(name, value)| (json::decode(name).into_owned(), value.trim().to_owned()))
                .collect())
        }
        _ => Err(Error::field(field, "must be an object")),
    }
}

fn texts(field: &str, given: Option<&str>) -> Result<Vec<(String, Vec<String>)>> {
    let mut texts = Vec::new();
    for (name, value) in members(field, given.unwrap_or("{}"))? {
        let items: Vec<&str> = if value.starts_with('[') {
            json::items(&value).collect()
        } else {
            vec![value.as_str()]
        };
        let text = |item: &str| {
            item.trim()
                .starts_with('"')
                .then(|| json::decode(item.trim()).into_owned())
        };
        let values: Option<Vec<String>> = items.into_iter().map(text).collect();
        let wrong = || {
            Error::field(
                format!("{field}.{name}"),
                "must be a text or a list of texts",
            )
        };
        texts.push((name.clone(), values.ok_or_else(wrong)?));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_may_have_a_status_and_headers() {
        let read = |value: &str| {
            let given = step_output(("slot".into(), value.into())).unwrap();
            let status = given.status();
            (given.output, status)
        };
        assert_eq!(
            read(r#"{"status": 201, "output": {"id": 1.10}}"#),
            (r#"{"id": 1.10}"#.to_owned(), 201)
        );
        for body in [
            r#"{"output": 1}"#,
            r#"{"status": "new", "output": 1}"#,
            r#"{"status": 7, "output": 1}"#,
            r#"{"status": 201, "output": 1, "id": 2}"#,
            r#"{"headers": ["x"], "output": 1}"#,
            "[1]",
            "null",
        ] {
            assert_eq!(read(body), (body.to_owned(), 200));
        }
        let given = |headers: &str| {
            let value = format!(r#"{{"output": 1, "headers": {headers}}}"#);
            step_output(("slot".into(), value))
        };
        let found = given(r#"{"X-Queue": ["a", "b"]}"#).unwrap();
        assert_eq!(found.output, "1");
        assert_eq!(found.headers.unwrap().get_all("x-queue").iter().count(), 2);
        let wrong = r#"{"output": 1, "status": "201", "headers": {}}"#;
        assert!(step_output(("slot".into(), wrong.into())).is_err());
        let refused = given(r#"{"X-Queue": 7}"#).unwrap_err().to_string();
        assert!(
            refused.contains("stepOutputs.slot.headers.X-Queue"),
            "{refused}"
        );
    }
}
