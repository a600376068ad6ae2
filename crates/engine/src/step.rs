//! Steps of a flow: their conditions and requests.

use std::time::Duration;

use bytes::Bytes;
use http::header;
use kanat_catalog::{Action, Instance};
use kanat_mapping::json;
use kanat_mapping::{EvaluationError, Expression, JsonTemplate, Scope};
use kanat_model::message::{ErrorKind, Failure};

use crate::Request;
use crate::fault::within;
use crate::request::{connected, masked};

/// A compiled step.
pub struct Step {
    pub(crate) name: String,
    /// Id of the connector instance.
    pub(crate) instance: String,
    pub(crate) action: &'static Action,
    /// Path of an action that takes any path, as the flow writes it.
    pub(crate) open_path: Option<String>,
    pub(crate) params: JsonTemplate,
    pub(crate) when: Option<Expression>,
    /// Condition that a successful answer has to satisfy.
    pub(crate) success_when: Option<Expression>,
    pub(crate) rejects: bool,
}

/// Deadline of a step's call.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The path that params give as `param`, each expression in it in braces of its own. None when they
/// give no text.
pub(crate) fn path_template(params: &str, param: &str) -> Option<String> {
    let value = json::member(params.trim(), param).filter(|value| value.starts_with('"'))?;
    let text = json::decode(value);
    let mut parts = text.split("{{");
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once("}}").unwrap_or((part, ""));
        path.push_str(&format!("{{{}}}{rest}", expression.trim()));
    }
    Some(path)
}

impl Step {
    /// Returns the name of the step, by which later expressions refer to its output.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a failure rejects the message at once.
    pub fn rejects(&self) -> bool {
        self.rejects
    }

    /// Returns `steps.<name>`, the field of failures.
    pub fn place(&self) -> String {
        format!("steps.{}", self.name)
    }

    /// Returns method and path of the action as in the catalog. For an action that takes any path
    /// it is the path of this step from the root, with its expressions in braces: `GET
    /// /api/orders/{source.id}`.
    pub fn endpoint(&self, instance: &Instance) -> String {
        let method = &self.action.method;
        let base = instance.base_path();
        match &self.open_path {
            Some(path) => format!(
                "{method} {}/{}",
                base.trim_end_matches('/'),
                path.trim_start_matches('/')
            ),
            None => format!("{method} {}", self.action.path),
        }
    }

    /// Returns the action that the step calls.
    pub fn action(&self) -> &'static Action {
        self.action
    }

    /// Evaluates the condition of the step.
    pub(crate) fn applies(&self, scope: &Scope) -> Result<bool, Failure> {
        let Some(when) = &self.when else {
            return Ok(true);
        };
        let failed = |error: EvaluationError| self.failed("when", error);
        Ok(when.evaluate(scope).map_err(failed)?.truthy())
    }

    pub(crate) fn request(&self, instance: &Instance, scope: &Scope) -> Result<Request, Failure> {
        connected(instance, scope.now).map_err(|failure| Failure {
            field: Some(self.place()),
            ..failure
        })?;
        let mut params = Vec::new();
        self.params.write(scope, &mut params).map_err(|error| {
            let inner = error.field.clone().unwrap_or_default();
            self.failed(&of_params(&inner), error)
        })?;
        // The output is UTF-8: every part came from a `str`.
        let params = String::from_utf8_lossy(&params);
        if let Some(fault) = self.action.check(&params).into_iter().next() {
            return Err(self.unfit(&fault.field, &fault.message));
        }
        if let (Some(template), Some(param)) = (&self.open_path, self.action.open_path())
            && template.ends_with('}')
            && json::member(&params, param).is_some_and(|path| json::decode(path).ends_with('/'))
        {
            return Err(self.unfit(&format!("params.{param}"), "a segment of the path is empty"));
        }
        let call = self
            .action
            .call(&params)
            .map_err(|error| self.unfit(&of_params(&error.param), &error.message))?;
        // The message would quote rendered text, which may contain a secret.
        let mut url = instance
            .request_url(&call.endpoint, scope.now)
            .map_err(|_| {
                self.unfit("params", "they lead nowhere under the connector's base URL")
            })?;
        let mut headers = call.headers;
        instance.apply_auth(&mut url, &mut headers);
        let body = call.body.map(Bytes::from).unwrap_or_default();
        if body.is_empty() {
            headers.remove(header::CONTENT_TYPE);
        }
        let secrets = self
            .params
            .secret_texts(scope, &|names: &[String]| instance.entry().is_secret(names));
        Ok(Request {
            url,
            method: call.method,
            headers,
            body,
            timeout: TIMEOUT,
            instance: self.instance.clone(),
            secrets: masked(secrets),
        })
    }

    fn failed(&self, place: &str, error: EvaluationError) -> Failure {
        within(&format!("{}.{place}", self.place()), error)
    }

    /// Returns the failure of params that the action does not accept.
    fn unfit(&self, place: &str, message: &str) -> Failure {
        let field = format!("{}.{place}", self.place());
        let message = format!("field {field:?}: {message}");
        Failure {
            field: Some(field),
            ..Failure::new(ErrorKind::Mapping, message)
        }
    }
}

/// Returns the place of a param; that of all where none is named.
fn of_params(param: &str) -> String {
    match param {
        "" => "params".to_owned(),
        param => format!("params.{param}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_as_its_flow_writes_it() {
        for (params, path) in [
            (r#"{"path": "/orders"}"#, Some("/orders")),
            (
                r#"{"path": "orders/{{ source.id }}/lines/{{source.n}}"}"#,
                Some("orders/{source.id}/lines/{source.n}"),
            ),
            (
                r#"{"path": "{{ source[\"a b\"] | string }}"}"#,
                Some(r#"{source["a b"] | string}"#),
            ),
            (r#"{"path": 7}"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(path_template(params, "path").as_deref(), path, "{params}");
        }
    }
}
