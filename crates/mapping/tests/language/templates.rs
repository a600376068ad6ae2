//! Templates: strings with `{{ }}`, endpoints, JSON whose strings are templates.

use kanat_mapping::{Escape, EvaluationError, JsonTemplate, ParseError, Template};

use crate::scope;

#[track_caller]
fn check(template: &str, expected: &str) {
    let parsed =
        Template::parse(template).unwrap_or_else(|errors| panic!("{template}: {errors:?}"));
    let scope = scope();
    let mut out = Vec::new();
    parsed
        .evaluate(&scope)
        .expect("a value")
        .write_json(&mut out);
    assert_eq!(
        String::from_utf8(out).expect("text"),
        expected,
        "{template}"
    );
}

fn endpoint(template: &str) -> Result<String, EvaluationError> {
    Template::parse(template)
        .expect("a template")
        .render_endpoint(&scope())
}

#[test]
fn a_template_that_is_a_whole_string_keeps_its_type() {
    check("{{ source.id }}", "17");
    check("{{source.price}}", "1.10");
    check("{{ source.object }}", r#"{"b": 1, "a": {"c": 2}}"#);
    check("{{ source.nothing }}", "null");
    check(" {{ source.id }}", r#"" 17""#);
    check("{{ source.id }}{{ source.id }}", r#""1717""#);
}

#[test]
fn inside_a_longer_string_values_are_text() {
    check(
        "Order {{ source.id }} of {{ source.country | uppercase }}",
        r#""Order 17 of DE""#,
    );
    check("<{{ source.missing }}{{ source.nothing }}>", r#""<>""#);
    check("list: {{ source.none }}", r#""list: []""#);
    check("{{ '}}' }} and {{ '{{' }}", r#""}} and {{""#);
    check("{{ '2026-01-31' | date(DD.MM.YYYY) }}.", r#""31.01.2026.""#);
    check("no template", r#""no template""#);
    check("", r#""""#);
    check("a } b }} c { d", r#""a } b }} c { d""#);
}

#[test]
fn knows_a_literal() {
    assert_eq!(
        Template::parse("x").expect("a template").is_literal(),
        Some("x")
    );
    assert_eq!(
        Template::parse("").expect("a template").is_literal(),
        Some("")
    );
    assert_eq!(
        Template::parse("{{ 1 }}").expect("a template").is_literal(),
        None
    );
}

#[test]
fn reports_all_errors_with_their_places() {
    let offsets = |text| {
        let errors = Template::parse(text).map(|_| ()).unwrap_err();
        errors
            .iter()
            .map(|error: &ParseError| error.offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        offsets("{{ sorce.id }} and {{ source.id | upcase }} {{ }}"),
        [3, 34, 47]
    );
    assert_eq!(offsets("{{ source.id"), [12]);
    assert_eq!(offsets("{{ source.id } x"), [13]);
}

#[test]
fn values_in_endpoints_stay_in_their_place() {
    assert_eq!(
        endpoint("/orders/{{ source.id }}").as_deref(),
        Ok("/orders/17")
    );
    assert_eq!(
        endpoint("/o/{{ 'a/b ?#ü' }}/x").as_deref(),
        Ok("/o/a%2Fb%20%3F%23%C3%BC/x")
    );
    assert_eq!(
        endpoint("/o?q={{ 'a b&c=d+/ü' }}&r=").as_deref(),
        Ok("/o?q=a%20b%26c%3Dd%2B%2F%C3%BC&r=")
    );
    assert_eq!(
        endpoint("/o?q={{ source.missing }}").as_deref(),
        Ok("/o?q=")
    );
    assert_eq!(endpoint("/o/x{{ source.missing }}").as_deref(), Ok("/o/x"));
    assert_eq!(endpoint("/o/{{ '.' }}json").as_deref(), Ok("/o/.json"));
    assert_eq!(endpoint("//x/").as_deref(), Ok("//x/"));
}

#[test]
fn values_cannot_lead_to_another_endpoint() {
    for template in [
        "/orders/{{ source.missing }}",
        "/orders/{{ source.nothing }}/lines",
        "/o/{{ source.empty }}?x=1",
    ] {
        assert_eq!(
            endpoint(template).unwrap_err().message,
            "a segment of the path is empty",
            "{template}"
        );
    }
    for template in ["/o/{{ '..' }}", "/o/.{{ '.' }}/x", "/o/{{ '.' }}?x"] {
        let error = endpoint(template).unwrap_err();
        assert_eq!(
            error.message, "a segment of the path is a step to another endpoint",
            "{template}"
        );
    }
}

#[test]
fn renders_with_the_escape_that_is_asked_for() {
    let template = Template::parse("/{{ 'a/b' }}").expect("a template");
    let render = |escape| template.render(&scope(), escape).expect("text");
    assert_eq!(render(Escape::None), "/a/b");
    assert_eq!(render(Escape::PathSegment), "/a%2Fb");
    assert_eq!(render(Escape::QueryValue), "/a%2Fb");
}

#[track_caller]
fn check_json(template: &str, expected: &str) {
    let parsed =
        JsonTemplate::parse(template).unwrap_or_else(|errors| panic!("{template}: {errors:?}"));
    let mut out = Vec::new();
    parsed.write(&scope(), &mut out).expect("a document");
    assert_eq!(
        String::from_utf8(out).expect("text"),
        expected,
        "{template}"
    );
}

#[test]
fn fills_in_json() {
    check_json(
        concat!(
            r#" {"contacts": [{"email": "{{ source.country }}", "n": 1.10, "#,
            r#""m": "{{ source.missing }}"}], "a": [ 1 ] } "#
        ),
        r#"{"contacts":[{"email":"de","n":1.10}],"a":[ 1 ]}"#,
    );
    check_json(
        r#"["{{ source.missing }}", "x {{ source.id }}", "\u007b{ source.id }}"]"#,
        r#"["x 17",17]"#,
    );
    check_json(r#""{{ source.object }}""#, r#"{"b": 1, "a": {"c": 2}}"#);
    check_json(r#""{{ source.missing }}""#, "null");
    check_json(
        r#"{"a\n": "{{ 'q\"' }}"}"#.replace("q\\\"", "q").as_str(),
        r#"{"a\n":"q"}"#,
    );
    check_json(r#" {"plain" : [ true ] } "#, r#"{"plain" : [ true ] }"#);
}

#[test]
fn errors_in_json_say_where() {
    let errors = JsonTemplate::parse(r#"{"a": "{{ x }}", "b": ["{{ source. }}"]}"#)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        errors.iter().map(|error| error.offset).collect::<Vec<_>>(),
        [6, 23]
    );
    assert_eq!(
        JsonTemplate::parse("{").map(|_| ()).unwrap_err()[0].offset,
        1
    );
    let template = JsonTemplate::parse(r#"{"a": [1, "{{ source.missing | required }}"]}"#)
        .expect("a template");
    let mut out = b"before".to_vec();
    let error = template.write(&scope(), &mut out).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("a[1]"));
    assert_eq!(out.as_slice(), &b"before"[..]);
}
