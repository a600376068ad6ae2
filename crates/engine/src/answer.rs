//! Response of a synchronous published API, built from the result of a run.

use http::{HeaderMap, HeaderName, StatusCode};
use kanat_mapping::{
    EvaluationError, Expression, Mapping, References, Root, Scope, Template, Value,
};
use kanat_model::message::Failure;
use kanat_proto::plan::v1;
use kanat_proto::plan::v1::response_mapping::Body as Plan;

use crate::compile::{self, CompileError};
use crate::fault::{header_value, within, wrong};
use crate::{Input, Program, Resources};

/// Field of the failures of a response: its key in the definition of an API.
const PLACE: &str = "responseMapping";

/// Compiled response mapping.
#[derive(Debug)]
pub struct Answer {
    body: Option<Body>,
    status: Option<Expression>,
    headers: Vec<(HeaderName, Template)>,
}

#[derive(Debug)]
enum Body {
    Expression(Expression),
    Template(Template),
    Mapping(Box<Mapping>),
}

/// The target's answer as expressions see it; each document is empty when there was none.
#[derive(Debug, Clone, Copy, Default)]
pub struct TargetAnswer<'a> {
    /// Value of `target`: an object with `response`.
    pub target: &'a [u8],
    /// Value of `response`, as [`crate::response_document`] writes it. May be empty where
    /// [`Answer::reads_response`] is false.
    pub response: &'a [u8],
}

/// Response that a mapping has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseParts {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// JSON; `None` when the flow's own output is the body.
    pub body: Option<Vec<u8>>,
}

impl Answer {
    /// Compiles a plan.
    ///
    /// # Errors
    /// The first part of the plan that cannot run.
    pub fn compile(plan: &v1::ResponseMapping) -> Result<Self, CompileError> {
        let body = match &plan.body {
            None => None,
            Some(Plan::Expression(text)) => {
                Some(Body::Expression(compile::expression(PLACE, text)?))
            }
            Some(Plan::Template(text)) => Some(Body::Template(compile::template(PLACE, text)?)),
            Some(Plan::Mapping(fields)) => {
                Some(Body::Mapping(Box::new(compile::mapping(PLACE, fields)?)))
            }
        };
        Ok(Self {
            body,
            status: compile::optional_expression("responseMapping.status", &plan.status)?,
            headers: plan
                .headers
                .iter()
                .map(|header| compile::header(PLACE, header))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns whether an expression calls an adapter.
    pub fn calls_adapters(&self) -> bool {
        self.references()
            .any(|references| !references.adapters.is_empty())
    }

    /// Returns whether an expression reads the target's answer as `target`.
    pub fn reads_target(&self) -> bool {
        self.references()
            .any(|references| references.roots.contains(&Root::Target))
    }

    /// Returns whether an expression reads the target's answer as `response`.
    pub fn reads_response(&self) -> bool {
        self.references()
            .any(|references| references.roots.contains(&Root::Response))
    }

    fn references(&self) -> impl Iterator<Item = &References> {
        let body = match &self.body {
            None => None,
            Some(Body::Expression(expression)) => Some(expression.references()),
            Some(Body::Template(template)) => Some(template.references()),
            Some(Body::Mapping(mapping)) => Some(mapping.references()),
        };
        let headers = self
            .headers
            .iter()
            .map(|(_, template)| template.references());
        body.into_iter()
            .chain(self.status.iter().map(Expression::references))
            .chain(headers)
    }

    fn write(&self, scope: &Scope, out: &mut Vec<u8>) -> Result<bool, EvaluationError> {
        match &self.body {
            None => return Ok(false),
            Some(Body::Expression(expression)) => expression.evaluate(scope)?.write_json(out),
            Some(Body::Template(template)) => template.evaluate(scope)?.write_json(out),
            Some(Body::Mapping(mapping)) => mapping.write(scope, out)?,
        }
        Ok(true)
    }
}

impl Program {
    /// Builds a response from the target's answer, if there was one.
    pub fn answer(
        &self,
        answer: &Answer,
        input: &Input,
        answered: TargetAnswer<'_>,
        resources: &dyn Resources,
    ) -> Result<ResponseParts, Failure> {
        let scope = Scope {
            trigger: input.trigger,
            steps: input.steps,
            target: answered.target,
            response: answered.response,
            variables: resources.variables(),
            tables: resources,
            adapters: resources.adapters(),
            mask: input.mask,
            ..Scope::new(input.payload, input.now, input.effort)
        };
        let mut body = Vec::with_capacity(input.payload.len());
        let has_body = answer.write(&scope, &mut body).map_err(|error| {
            let inner = error.field.as_ref().map(|inner| format!(".{inner}"));
            within(&format!("{PLACE}{}", inner.unwrap_or_default()), error)
        })?;
        let status = match &answer.status {
            None => StatusCode::OK,
            Some(expression) => {
                let value = expression
                    .evaluate(&scope)
                    .map_err(|error| within("responseMapping.status", error))?;
                status(&value).ok_or_else(|| {
                    let message = "the status of an answer is a number from 200 to 599";
                    wrong("responseMapping.status", expression.text(), message)
                })?
            }
        };
        let mut headers = HeaderMap::new();
        for (name, template) in &answer.headers {
            if let Some(value) = header_value(PLACE, name, template, &scope)? {
                headers.append(name.clone(), value);
            }
        }
        Ok(ResponseParts {
            status,
            headers,
            body: has_body.then_some(body),
        })
    }
}

/// Returns the status that a value stands for; `None` where it is neither a number from 200 to 599
/// nor a text that is one.
fn status(value: &Value) -> Option<StatusCode> {
    let number: u16 = value.text()?.parse().ok()?;
    StatusCode::from_u16(number)
        .ok()
        .filter(|_| (200..600).contains(&number))
}

#[cfg(test)]
mod tests {
    use kanat_mapping::Effort;
    use kanat_model::Timestamp;
    use kanat_proto::plan::v1::{Field, FlowPlan, NamedText, field};

    use super::*;
    use crate::{Mask, NoResources};

    fn built(plan: &v1::ResponseMapping) -> Result<ResponseParts, Failure> {
        let program = Program::compile(FlowPlan::default()).unwrap();
        let effort = Effort::default();
        let input = Input {
            payload: br#"{"id":"a","n":1.10,"code":201}"#,
            trigger: br#"{"path_params":{"shop":"eu"}}"#,
            steps: br#"{"open":{"output":{"id":7},"status":200}}"#,
            now: Timestamp::from_millis(0),
            mask: Mask::none(),
            effort: &effort,
        };
        let target = br#"{"response":{"body":{"ok":true},"status":202}}"#;
        program.answer(
            &Answer::compile(plan).unwrap(),
            &input,
            TargetAnswer {
                target,
                response: br#"{"status":202,"headers":{"x-a":"1"},"body":{"ok":true}}"#,
            },
            &NoResources,
        )
    }

    fn body(plan: Plan) -> String {
        let built = built(&v1::ResponseMapping {
            body: Some(plan),
            ..Default::default()
        })
        .unwrap();
        String::from_utf8(built.body.unwrap()).unwrap()
    }

    #[test]
    fn a_body_is_an_expression_a_template_or_a_block() {
        assert_eq!(
            body(Plan::Expression("steps.open.output".into())),
            r#"{"id":7}"#
        );
        assert_eq!(
            body(Plan::Expression("target.response.body.ok".into())),
            "true"
        );
        assert_eq!(body(Plan::Expression("source.none".into())), "null");
        assert_eq!(
            body(Plan::Template(
                "{{ trigger.path_params.shop }}-{{ source.id }}".into()
            )),
            r#""eu-a""#
        );
        let field = |name: &str, text: &str| Field {
            name: name.to_owned(),
            value: Some(field::Value::Expression(text.to_owned())),
        };
        let fields = vec![
            field("total", "source.n"),
            field("state.code", "target.response.status"),
        ];
        assert_eq!(
            body(Plan::Mapping(v1::Mapping { fields })),
            r#"{"total":1.10,"state":{"code":202}}"#
        );
    }

    #[test]
    fn status_and_headers_may_be_set() {
        let header = |name: &str, text: &str| NamedText {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let plan = v1::ResponseMapping {
            body: None,
            status: "source.code".to_owned(),
            headers: vec![
                header("Location", "/orders/{{ source.id }}"),
                header("X-None", "{{ source.none }}"),
            ],
            variables: Vec::new(),
        };
        let answer = built(&plan).unwrap();
        assert_eq!(answer.status, StatusCode::CREATED);
        assert_eq!(answer.body, None);
        assert_eq!(answer.headers.len(), 1);
        assert_eq!(answer.headers["location"], "/orders/a");
        let text = v1::ResponseMapping {
            status: "'404'".to_owned(),
            ..Default::default()
        };
        assert_eq!(built(&text).unwrap().status, StatusCode::NOT_FOUND);
        for wrong in ["source.id", "source.n", "source.none", "null", "100", "600"] {
            let failure = built(&v1::ResponseMapping {
                status: wrong.to_owned(),
                ..Default::default()
            })
            .unwrap_err();
            assert_eq!(
                failure.field.as_deref(),
                Some("responseMapping.status"),
                "{wrong}"
            );
        }
        let plan = v1::ResponseMapping {
            headers: vec![header("Connection", "close")],
            ..Default::default()
        };
        assert!(Answer::compile(&plan).is_err());
    }
}
