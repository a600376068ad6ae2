//! The answer of a published API, read from JSON by the same rules as a definition. Its diagnostics
//! have paths that begin with `responseMapping`, `responseStatus` or `responseHeaders`; lines and
//! columns are not known.

use std::collections::BTreeSet;

use kanat_mapping::Expression;
use kanat_proto::plan::v1::{self as plan, response_mapping};

use super::Checker;
use super::cursor::Cursor;
use super::expression::{Place, unwrapped};
use super::{mapping, target};
use crate::compile::{compiled_mapping, named_texts};
use crate::diagnostic::{Diagnostic, Position};
use crate::response::{Response, ResponseScope, ResponseTexts};
use crate::yaml::{Node, Text, Value};

const MAPPING: &str = "responseMapping";
const STATUS: &str = "responseStatus";
const HEADERS: &str = "responseHeaders";

/// The statuses that an answer may have.
const STATUSES: std::ops::RangeInclusive<u32> = 200..=599;

/// Reads the response mapping of an API for a flow with this scope.
///
/// # Errors
///
/// Everything that is wrong with it by itself, and what it reads that the flow does not have.
pub fn parse_response(
    texts: &ResponseTexts,
    scope: &ResponseScope,
) -> Result<Response, Vec<Diagnostic>> {
    read_all(Checker::default(), texts, Some(scope))
}

/// Reads a response mapping that was checked when it was stored, maybe by a build that knew fewer
/// faults. Without a scope, what it reads of the flow is not checked.
///
/// # Errors
///
/// As of [`parse_response`], without the faults that earlier builds accepted.
pub fn parse_stored_response(
    texts: &ResponseTexts,
    scope: Option<&ResponseScope>,
) -> Result<Response, Vec<Diagnostic>> {
    let checker = Checker {
        stored: true,
        ..Checker::default()
    };
    read_all(checker, texts, scope)
}

fn read_all(
    checker: Checker,
    texts: &ResponseTexts,
    scope: Option<&ResponseScope>,
) -> Result<Response, Vec<Diagnostic>> {
    let mut checker = Checker {
        step_names: scope.map(|scope| scope.steps.clone()).unwrap_or_default(),
        any_step: scope.is_none(),
        ..checker
    };
    let mut made = plan::ResponseMapping::default();
    let mut body_is_always_string = false;
    if let Some(node) = read(&mut checker, MAPPING, texts.mapping) {
        let cursor = Cursor {
            node: &node,
            path: MAPPING.to_owned(),
        };
        if let Some(read) = body(&mut checker, &cursor, place(scope, MAPPING)) {
            body_is_always_string = read.is_always_string;
            made.body = Some(read.plan);
        }
    }
    if let Some(node) = read(&mut checker, STATUS, texts.status) {
        made.status = status(
            &mut checker,
            &Cursor {
                node: &node,
                path: STATUS.to_owned(),
            },
            place(scope, STATUS),
        )
        .unwrap_or_default();
    }
    if let Some(node) = read(&mut checker, HEADERS, texts.headers) {
        let read = target::headers(
            &mut checker,
            &Cursor {
                node: &node,
                path: HEADERS.to_owned(),
            },
            place(scope, HEADERS),
        );
        made.headers = named_texts(&read.unwrap_or_default());
    }
    let diagnostics = checker.diagnostics;
    if diagnostics.is_empty() {
        let mut response = Response {
            plan: made,
            references: checker.references,
            body_is_always_string,
        };
        let variables: BTreeSet<&str> = response.variables().collect();
        response.plan.variables = variables.into_iter().map(str::to_owned).collect();
        return Ok(response);
    }
    Err(diagnostics)
}

fn place(scope: Option<&ResponseScope>, name: &'static str) -> Place {
    Place {
        source: true,
        steps: scope.map_or(usize::MAX, |scope| scope.steps.len()),
        no_target: scope
            .is_some_and(|scope| !scope.has_target)
            .then_some("the flow has no target"),
        response: true,
        ..Place::new(name)
    }
}

fn read(checker: &mut Checker, name: &str, text: Option<&str>) -> Option<Node> {
    match serde_json::from_str::<serde_json::Value>(text?) {
        Ok(value) => Some(Node::from_json(value)),
        Err(error) => {
            checker.report(Position::UNKNOWN, name, format!("is not JSON: {error}"));
            None
        }
    }
}

/// Body of a response.
struct Body {
    plan: response_mapping::Body,
    /// True if it is a string for every call.
    is_always_string: bool,
}

fn body(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<Body> {
    match &cursor.node.value {
        Value::Map(_) => {
            let fields = mapping::block(checker, cursor, place)?;
            Some(Body {
                plan: response_mapping::Body::Mapping(compiled_mapping(&fields)),
                is_always_string: false,
            })
        }
        Value::Text(Text { text, .. }) if unwrapped(text).0.contains("{{") => {
            let template = checker.template_of(cursor, text, place)?;
            Some(Body {
                plan: response_mapping::Body::Template(template.text().to_owned()),
                is_always_string: template.always_gives_string(),
            })
        }
        _ => {
            let expression = checker.field_expression(cursor, place)?;
            let text = expression.text().trim().to_owned();
            Some(Body {
                plan: response_mapping::Body::Expression(text),
                is_always_string: expression.constant_text().is_some(),
            })
        }
    }
}

/// The text of the expression.
fn status(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<String> {
    let expression: Expression = checker.expression(cursor, place)?;
    let text = expression.text().trim().to_owned();
    let number: Option<f64> = text.parse().ok();
    let whole: Option<u32> = text.parse().ok();
    if number.is_some() && !whole.is_some_and(|status| STATUSES.contains(&status)) {
        checker.type_error(
            cursor,
            "a status from 200 to 599, or an expression that gives one",
        );
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mapping: &str) -> ResponseTexts<'_> {
        ResponseTexts {
            mapping: Some(mapping),
            ..ResponseTexts::default()
        }
    }

    fn scope(steps: &[&str], has_target: bool) -> ResponseScope {
        ResponseScope {
            steps: steps.iter().map(|&step| step.to_owned()).collect(),
            has_target,
        }
    }

    fn parse(mapping: &str) -> Result<Response, Vec<String>> {
        parse_response(&of(mapping), &scope(&["find"], true)).map_err(|faults| {
            faults
                .into_iter()
                .map(|fault| format!("{}: {}", fault.path, fault.message))
                .collect()
        })
    }

    #[test]
    fn a_body_is_a_block_an_expression_or_a_template() {
        let body = |text: &str| parse(text).unwrap().to_plan().unwrap().body.unwrap();
        let expression = |text: &str| response_mapping::Body::Expression(text.to_owned());
        assert_eq!(
            body(r#""steps.find.output""#),
            expression("steps.find.output")
        );
        assert_eq!(
            body(r#""{{ target.response.body }}""#),
            expression("target.response.body")
        );
        assert_eq!(body("true"), expression("true"));
        assert_eq!(
            body(r#""order {{ source.id }}""#),
            response_mapping::Body::Template("order {{ source.id }}".to_owned())
        );
        let response_mapping::Body::Mapping(block) = body(
            r#"{"id": "source.id", "lines": {"each": "source.items", "map": {"sku": "item.sku"}}}"#,
        ) else {
            panic!("a block is a mapping")
        };
        assert_eq!(
            block
                .fields
                .iter()
                .map(|field| field.name.as_str())
                .collect::<Vec<_>>(),
            ["id", "lines"]
        );
    }

    #[test]
    fn what_is_wrong_has_the_path_of_the_field() {
        for (text, expect) in [
            (r#"{"id": "source.id |"}"#, "responseMapping.id: "),
            (r#"{"id": "steps.fnid.output"}"#, "did you mean \"find\""),
            (r#""target.respnse.body""#, "did you mean `response`"),
            (
                r#"{"id": "instance.key"}"#,
                "responseMapping.id: found instance in responseMapping",
            ),
            (
                r#"{"a": {"b": "source.c"}}"#,
                "responseMapping.a: found a map",
            ),
            ("{}", "responseMapping: found a map"),
            ("[1]", "responseMapping: found a list"),
            (r#""""#, "responseMapping: found"),
            (
                r#"{"kind": "parcel"}"#,
                r#"; for the text itself write "'parcel'""#,
            ),
            (
                r#""hello world""#,
                r#"; for the text itself write "'hello world'""#,
            ),
        ] {
            let said = parse(text).unwrap_err().join("\n");
            assert!(said.contains(expect), "{text}: {said}");
        }
    }

    #[test]
    fn a_body_that_is_always_a_string_is_known() {
        for (mapping, expected) in [
            (r#""order {{ source.id }}""#, true),
            (r#""{{ source.id }}{{ source.n }}""#, true),
            (r#""{\"id\": \"{{ source.id }}\"}""#, true),
            (r#""'parcel'""#, true),
            (r#""{{ 'parcel' }}""#, true),
            (r#""{{ source.id }}""#, false),
            (r#""{{ coalesce(source.id, '}}') }}""#, false),
            (r#""source.id | uppercase""#, false),
            (r#"{"id": "'parcel'"}"#, false),
            ("5", false),
            ("true", false),
        ] {
            let response = parse(mapping).unwrap();
            assert_eq!(response.body_is_always_string(), expected, "{mapping}");
        }
    }

    #[test]
    fn status_and_headers_are_expressions_and_templates() {
        let read = |status: &str, headers: &str| {
            parse_response(
                &ResponseTexts {
                    mapping: None,
                    status: Some(status),
                    headers: Some(headers),
                },
                &scope(&[], true),
            )
        };
        let made = read("201", r#"{"Location": "/orders/{{ source.id }}"}"#)
            .unwrap()
            .to_plan()
            .unwrap();
        assert_eq!(made.status.as_str(), "201");
        assert_eq!(made.headers[0].name.as_str(), "Location");
        assert_eq!(
            read(r#""target.response.status""#, "{}")
                .unwrap()
                .to_plan()
                .unwrap()
                .status,
            "target.response.status"
        );
        assert!(read("\"{{ 202 }}\"", "{}").is_ok());
        for (status, headers, path) in [
            ("199", "{}", "responseStatus"),
            ("600", "{}", "responseStatus"),
            ("200.5", "{}", "responseStatus"),
            ("null", "{}", "responseStatus"),
            (
                "200",
                r#"{"Content-Length": "1"}"#,
                "responseHeaders.Content-Length",
            ),
            ("200", r#"{"X-A": 1}"#, "responseHeaders.X-A"),
            ("200", "[]", "responseHeaders"),
        ] {
            assert_eq!(
                read(status, headers).unwrap_err()[0].path,
                path,
                "{status} {headers}"
            );
        }
    }

    #[test]
    fn collects_the_names_that_it_uses() {
        let made =
            parse(r#"{"c": "source.c | lookup(countries)", "d": "source.d | adapter(tidy)"}"#)
                .unwrap();
        assert_eq!(made.tables().collect::<Vec<_>>(), ["countries"]);
        assert_eq!(made.adapters().collect::<Vec<_>>(), ["tidy"]);
        assert_eq!(
            parse_stored_response(&ResponseTexts::default(), None)
                .unwrap()
                .to_plan(),
            None
        );
    }

    #[test]
    fn what_the_flow_does_not_have_is_a_fault() {
        let step = of(r#""steps.gone.output""#);
        let target = of(r#"{"number": "target.response.body.number"}"#);
        for (texts, steps, has_target, message) in [
            (step, &["find"][..], true, "the unknown step \"gone\""),
            (step, &[], true, "no step has run before"),
            (target, &["find"], false, "the flow has no target"),
        ] {
            let scope = scope(steps, has_target);
            let new = parse_response(&texts, &scope).unwrap_err();
            assert!(new[0].message.contains(message), "{new:?}");
            let stored = parse_stored_response(&texts, Some(&scope)).unwrap_err();
            assert_eq!(stored, new);
            assert!(parse_stored_response(&texts, None).is_ok());
        }
    }

    #[test]
    fn a_stored_response_goes_on_with_faults_that_earlier_builds_accepted() {
        let slip = of(r#""target.respnse.body""#);
        let scope = scope(&[], true);
        assert!(parse_response(&slip, &scope).is_err());
        assert!(parse_stored_response(&slip, Some(&scope)).is_ok());
    }
}
