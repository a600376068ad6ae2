//! A step: whether it runs for a message, and the request that it makes of its params.

use std::time::Duration;

use bytes::Bytes;
use http::header;
use kanat_catalog::{Action, Instance};
use kanat_mapping::json;
use kanat_mapping::{EvaluationError, Expression, JsonTemplate, Scope};
use kanat_model::message::{ErrorKind, Failure};

use crate::Request;
use crate::request::{connected, masked};

/// A step, compiled.
pub struct Step {
    pub(crate) name: String,
    /// Id of the connector instance.
    pub(crate) instance: String,
    pub(crate) action: &'static Action,
    /// The path that an action of any path is given, as its flow writes it.
    pub(crate) open_path: Option<String>,
    pub(crate) params: JsonTemplate,
    pub(crate) when: Option<Expression>,
    pub(crate) rejects: bool,
}

/// No step waits longer for its answer.
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
    /// Its name, under which later expressions find its output.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A failure rejects the message at once.
    pub fn rejects(&self) -> bool {
        self.rejects
    }

    /// `steps.<name>`, as failures name it.
    pub fn place(&self) -> String {
        format!("steps.{}", self.name)
    }

    /// Method and path of its action, as the catalog has them. Of an action of any path it is that
    /// of this step, from the root, with the expressions in it in braces:
    /// `GET /api/orders/{source.id}`.
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

    /// What it calls.
    pub fn action(&self) -> &'static Action {
        self.action
    }

    /// Whether it runs for this message.
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
            let place = error
                .field
                .as_deref()
                .map_or_else(|| "params".to_owned(), |inner| format!("params.{inner}"));
            self.failed(&place, error)
        })?;
        // What was written is UTF-8: every part of it came from a `str`.
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
        let call = self.action.call(&params).map_err(|error| {
            let place = if error.param.is_empty() {
                "params".to_owned()
            } else {
                format!("params.{}", error.param)
            };
            self.unfit(&place, &error.message)
        })?;
        // The message would quote what was rendered, which a secret may be part of.
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

    fn failed(&self, place: &str, mut error: EvaluationError) -> Failure {
        error.field = Some(format!("{}.{place}", self.place()));
        error.into()
    }

    /// Params whose values their action does not take.
    fn unfit(&self, place: &str, message: &str) -> Failure {
        let field = format!("{}.{place}", self.place());
        Failure {
            kind: ErrorKind::Mapping,
            message: format!("field {field:?}: {message}"),
            field: Some(field),
            expression: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_as_its_flow_writes_it() {
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
