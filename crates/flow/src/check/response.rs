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
use crate::response::{Response, ResponseTexts};
use crate::yaml::{Node, Text, Value};

const MAPPING: &str = "responseMapping";
const STATUS: &str = "responseStatus";
const HEADERS: &str = "responseHeaders";

/// The statuses that an answer may have.
const STATUSES: std::ops::RangeInclusive<u32> = 200..=599;

/// Reads the answer of an API whose flow has these steps; `None` when they are not to be compared.
/// Errors are all that is wrong with it by itself.
pub fn parse_response(
    texts: &ResponseTexts,
    steps: Option<Vec<String>>,
) -> Result<Response, Vec<Diagnostic>> {
    // An answer whose steps are not to be compared is one that is stored.
    let stored = steps.is_none();
    let step_names = steps.unwrap_or_default();
    let mut checker = Checker {
        step_names,
        any_step: stored,
        stored,
        ..Checker::default()
    };
    let mut made = plan::ResponseMapping::default();
    let mut body_is_always_string = false;
    if let Some(node) = read(&mut checker, MAPPING, texts.mapping) {
        let cursor = Cursor {
            node: &node,
            path: MAPPING.to_owned(),
        };
        if let Some(read) = body(&mut checker, &cursor) {
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
        )
        .unwrap_or_default();
    }
    if let Some(node) = read(&mut checker, HEADERS, texts.headers) {
        let place = place(&checker, HEADERS);
        let read = target::headers(
            &mut checker,
            &Cursor {
                node: &node,
                path: HEADERS.to_owned(),
            },
            place,
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

fn place(checker: &Checker, name: &'static str) -> Place {
    let steps = if checker.any_step {
        usize::MAX
    } else {
        checker.step_names.len()
    };
    Place {
        source: true,
        steps,
        target: true,
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

fn body(checker: &mut Checker, cursor: &Cursor) -> Option<Body> {
    let place = place(checker, MAPPING);
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
fn status(checker: &mut Checker, cursor: &Cursor) -> Option<String> {
    let place = place(checker, STATUS);
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

    fn parse(mapping: &str) -> Result<Response, Vec<String>> {
        let texts = ResponseTexts {
            mapping: Some(mapping),
            ..ResponseTexts::default()
        };
        parse_response(&texts, Some(vec!["find".to_owned()])).map_err(|faults| {
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
                Some(Vec::new()),
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
            parse_response(&ResponseTexts::default(), None)
                .unwrap()
                .to_plan(),
            None
        );
        let steps = ResponseTexts {
            mapping: Some(r#""steps.gone.output""#),
            ..ResponseTexts::default()
        };
        assert!(
            parse_response(&steps, None).is_ok()
                && parse_response(&steps, Some(Vec::new())).is_err()
        );
        let slip = ResponseTexts {
            mapping: Some(r#""target.respnse.body""#),
            ..ResponseTexts::default()
        };
        assert!(
            parse_response(&slip, None).is_ok(),
            "a stored answer goes on"
        );
    }
}
