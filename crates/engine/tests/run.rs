//! Plans run on messages: what is filtered, what is mapped, what is sent, what fails and how it
//! says so.

use std::collections::HashMap;

use bytes::Bytes;
use kanat_catalog::Instance;
use kanat_engine::{
    CompileError, Input, Keys, Mask, Outcome, Program, Resources, render_instance_template,
    response_document,
};
use kanat_mapping::{Effort, Lookup, Tables};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_proto::plan::v1::{Each, Field, FlowPlan, Mapping, NamedText, Step, Target, field};

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);
static UNBOUNDED: Effort = Effort::new(u64::MAX);
const ORDER: &str = concat!(
    r#"{"id": 4711, "total": 149.5, "country": "de", "lines": [{"sku": "a", "qty": 2}], "#,
    r#""note": null}"#
);
const ERP: &str = r#"{
    "base_url": "https://erp.example/api", "auth": "bearer", "token": "s3cret",
    "headers": {"X-Tenant": "north"}
}"#;

struct Environment {
    tables: HashMap<String, HashMap<String, String>>,
    instances: Vec<Instance>,
}

impl Tables for Environment {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        self.tables.lookup(table, key)
    }
}

impl Resources for Environment {
    fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.iter().find(|instance| instance.id() == id)
    }

    fn variables(&self) -> &[u8] {
        br#"{"REGION":"eu-1"}"#
    }
}

fn environment() -> Environment {
    let countries = HashMap::from([("DE".to_owned(), "Germany".to_owned())]);
    Environment {
        tables: HashMap::from([("countries".to_owned(), countries)]),
        instances: vec![Instance::new("ci_erp", "erp", "http", ERP).expect("a valid config")],
    }
}

fn input(payload: &str) -> Input<'_> {
    let trigger = br#"{"headers": {"x-shop": "north"}, "query": {}, "method": "POST"}"#;
    Input {
        payload: payload.as_bytes(),
        trigger,
        steps: b"",
        now: NOW,
        mask: Mask::none(),
        effort: &UNBOUNDED,
    }
}

fn mapping(fields: &[(&str, &str)]) -> Mapping {
    let field = |(name, text): &(&str, &str)| {
        let text = (*text).to_owned();
        let value = if text.contains("{{") {
            field::Value::Template(text)
        } else {
            field::Value::Expression(text)
        };
        Field {
            name: (*name).to_owned(),
            value: Some(value),
        }
    };
    Mapping {
        fields: fields.iter().map(field).collect(),
    }
}

fn to_erp(endpoint: &str) -> FlowPlan {
    let target = Target {
        instance: "ci_erp".to_owned(),
        endpoint: endpoint.to_owned(),
        ..Target::default()
    };
    FlowPlan {
        target: Some(target),
        ..FlowPlan::default()
    }
}

#[track_caller]
fn program(plan: FlowPlan) -> Program {
    Program::compile(plan).unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: FlowPlan, payload: &str) -> Result<String, Failure> {
    match program(plan).run(&input(payload), &environment())? {
        Outcome::Filtered => Ok("filtered".to_owned()),
        Outcome::Mapped(body) => Ok(String::from_utf8(body.to_vec()).expect("text")),
    }
}

fn headers(plan: FlowPlan, payload: &str) -> Result<Vec<String>, Failure> {
    let request = program(plan)
        .request(&input(payload), Bytes::new(), &environment())?
        .expect("a target");
    let mut headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    headers.sort();
    Ok(headers)
}

fn url(endpoint: &str, payload: &str) -> Result<String, Failure> {
    let request =
        program(to_erp(endpoint)).request(&input(payload), Bytes::new(), &environment())?;
    Ok(request.expect("a target").url.to_string())
}

#[test]
fn maps_an_order() {
    let mut fields = mapping(&[
        ("order_id", "source.id | required"),
        ("total", "source.total | decimal(2)"),
        (
            "country",
            "source.country | uppercase | lookup(countries, ZZ)",
        ),
        ("shop", "Shop {{ trigger.headers.x-shop }}"),
        ("at", "'' | now"),
    ]);
    let each = Each {
        list: "source.lines".to_owned(),
        r#where: String::new(),
        map: Some(mapping(&[("sku", "item.sku | uppercase")])),
    };
    fields.fields.push(Field {
        name: "lines".to_owned(),
        value: Some(field::Value::Each(each)),
    });
    let plan = FlowPlan {
        mapping: Some(fields),
        ..to_erp("/orders")
    };
    let expected = concat!(
        r#"{"order_id":4711,"total":"149.50","country":"Germany","shop":"Shop north","#,
        r#""at":"2026-01-31T08:15:00.123Z","lines":[{"sku":"A"}]}"#
    );
    assert_eq!(run(plan, ORDER).as_deref(), Ok(expected));
}

#[test]
fn without_a_mapping_the_payload_goes_out_byte_for_byte() {
    let payload = " {\"n\": 1.10 ,\"n\":1e400}\n";
    assert_eq!(run(to_erp("/x"), payload).as_deref(), Ok(payload));
}

#[test]
fn filters_by_the_condition() {
    let plan = |when: &str| FlowPlan {
        when: when.to_owned(),
        ..to_erp("/x")
    };
    assert_eq!(
        run(plan("source.total > 1000"), ORDER).as_deref(),
        Ok("filtered")
    );
    assert_eq!(run(plan("source.note"), ORDER).as_deref(), Ok("filtered"));
    assert_eq!(run(plan("source.total > 100"), ORDER).as_deref(), Ok(ORDER));
}

#[test]
fn a_failure_names_field_expression_and_value() {
    let plan = FlowPlan {
        mapping: Some(mapping(&[("sum.total", "source.country | decimal(2)")])),
        ..to_erp("/x")
    };
    let failure = run(plan, ORDER).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Mapping);
    assert_eq!(failure.field.as_deref(), Some("sum.total"));
    assert_eq!(
        failure.expression.as_deref(),
        Some("source.country | decimal(2)")
    );
    assert!(failure.message.contains("\"de\""), "{}", failure.message);
}

#[test]
fn a_table_that_is_gone_is_a_fault_of_the_configuration() {
    let plan = FlowPlan {
        mapping: Some(mapping(&[("x", "source.id | lookup(planets)")])),
        ..to_erp("/x")
    };
    assert_eq!(run(plan, ORDER).unwrap_err().kind, ErrorKind::Configuration);
}

#[test]
fn all_parts_of_an_attempt_take_of_the_same_work() {
    let program = program(FlowPlan {
        when: "source.total > 0".to_owned(),
        mapping: Some(mapping(&[("id", "source.id")])),
        ..to_erp("/orders/{{ source.id }}")
    });
    let environment = environment();
    let effort = Effort::default();
    let input = Input {
        effort: &effort,
        ..input(ORDER)
    };
    let admit = || program.admit(&input, &environment).err();
    let map = || program.map(&input, &environment).err();
    let request = || {
        let body = Bytes::new();
        program.request(&input, body, &environment).err()
    };
    let parts: [&dyn Fn() -> Option<Failure>; 3] = [&admit, &map, &request];
    for part in parts {
        let before = effort.left();
        assert_eq!(part(), None);
        assert!(effort.left() < before);
    }
    effort.spend(Effort::MAX);
    let fields = parts.map(|part| part().and_then(|failure| failure.field));
    let fields: Vec<_> = fields.iter().map(Option::as_deref).collect();
    assert_eq!(fields, [Some("when"), Some("id"), Some("target.endpoint")]);
}

#[test]
fn keys_are_texts_and_a_failing_one_is_reported_by_the_run() {
    let plan = |key: &str| FlowPlan {
        ordering_key: key.to_owned(),
        idempotency_key: "source.id".to_owned(),
        ..to_erp("/x")
    };
    let keys = |key: &str| program(plan(key)).keys(&input(ORDER), &environment());
    let with = |ordering: Option<&str>| Keys {
        ordering: ordering.map(str::to_owned),
        idempotency: Some("4711".to_owned()),
    };
    assert_eq!(
        keys("source.country | uppercase | lookup(countries)"),
        with(Some("Germany"))
    );
    assert_eq!(keys("source.missing"), with(None));
    assert_eq!(keys("source.note"), with(None));
    assert_eq!(keys("source.country | number"), with(None));
    let failure = run(plan("source.country | number"), ORDER).unwrap_err();
    assert_eq!(failure.field.as_deref(), Some("ordering_key"));
}

#[test]
fn a_request_goes_to_the_endpoint_with_the_connector_s_credentials() {
    let plan = to_erp(
        "/orders/{{ source.country }}%20{{ source.id }}?note={{ source.note }}&to={{ 'a b' }}",
    );
    let body = Bytes::from_static(b"{}");
    let request = program(plan)
        .request(&input(ORDER), body, &environment())
        .expect("a request")
        .expect("a target");
    assert_eq!(
        request.url.as_str(),
        "https://erp.example/api/orders/de%204711?note=&to=a%20b"
    );
    assert_eq!(request.method.as_str(), "POST");
    assert_eq!(&request.body[..], &b"{}"[..]);
    assert_eq!(request.timeout.as_secs(), 30);
    assert_eq!(request.instance.as_str(), "ci_erp");
    assert_eq!(
        headers(to_erp("/x"), ORDER),
        Ok(vec![
            "authorization: Bearer s3cret".to_owned(),
            "content-type: application/json".to_owned(),
            "x-tenant: north".to_owned(),
        ])
    );
}

#[test]
fn headers_of_the_flow_are_templates_and_those_of_the_connector_win() {
    let header = |name: &str, text: &str| NamedText {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let plan = |named: Vec<NamedText>| {
        let mut plan = to_erp("/x");
        plan.target.as_mut().expect("a target").headers = named;
        plan
    };
    let named = vec![
        header("X-Country", "{{ source.country | uppercase }}"),
        header("X-Note", "{{ source.note }}"),
        header("Authorization", "Bearer of the flow"),
        header("Content-Type", "application/vnd.order+json"),
    ];
    assert_eq!(
        headers(plan(named), ORDER),
        Ok(vec![
            "authorization: Bearer s3cret".to_owned(),
            "content-type: application/vnd.order+json".to_owned(),
            "x-country: DE".to_owned(),
            "x-tenant: north".to_owned(),
        ])
    );
    let failure = headers(
        plan(vec![header("X-Name", "{{ source.name }}")]),
        r#"{"name": "a\r\nHost: b"}"#,
    )
    .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Mapping);
    assert_eq!(failure.field.as_deref(), Some("target.headers.x-name"));
}

#[test]
fn a_get_has_no_body() {
    let mut plan = to_erp("/x");
    plan.target.as_mut().expect("a target").method = "GET".to_owned();
    let request = program(plan).request(&input(ORDER), Bytes::from_static(b"{}"), &environment());
    let request = request.expect("a request").expect("a target");
    assert!(request.body.is_empty() && !request.headers.contains_key("content-type"));
}

#[test]
fn no_value_changes_which_endpoint_it_is() {
    assert_eq!(
        url("/o/{{ source.id }}", r#"{"id": "../admin?x#y"}"#).as_deref(),
        Ok("https://erp.example/api/o/..%2Fadmin%3Fx%23y")
    );
    for payload in [r#"{"id": ".."}"#, r#"{"id": ""}"#, "{}"] {
        let failure = url("/o/{{ source.id }}", payload).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Mapping);
        assert_eq!(failure.field.as_deref(), Some("target.endpoint"));
    }
    assert!(url("/o/../x", ORDER).is_err());
}

#[test]
fn no_failure_shows_a_secret() {
    let failure = url("/../{{ instance.token }}", ORDER).unwrap_err();
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
    let plan = FlowPlan {
        mapping: Some(mapping(&[("x", "instance.token | number")])),
        ..to_erp("/x")
    };
    let failure = run(plan, ORDER).unwrap_err();
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
}

#[test]
fn a_target_whose_instance_is_gone_fails_and_a_flow_without_one_has_no_request() {
    let mut plan = to_erp("/x");
    plan.target.as_mut().expect("a target").instance = "ci_gone".to_owned();
    let failure = program(plan)
        .request(&input(ORDER), Bytes::new(), &environment())
        .map(|_| ())
        .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Configuration);
    let none = program(FlowPlan::default()).request(&input(ORDER), Bytes::new(), &environment());
    assert!(none.expect("no failure").is_none());
}

#[test]
fn instance_templates_render_secrets_and_never_nothing() {
    let environment = environment();
    let instance = environment.instance("ci_erp");
    let render = |text| render_instance_template(text, instance, environment.variables(), NOW);
    assert_eq!(render("{{ instance.token }}").as_deref(), Ok("s3cret"));
    assert_eq!(render("plain").as_deref(), Ok("plain"));
    assert_eq!(render("{{ env.REGION }}").as_deref(), Ok("eu-1"));
    assert!(render("{{ env.NONE }}").is_err());
    assert_eq!(
        render("{{ instance.webhook_secret }}").unwrap_err().kind,
        ErrorKind::Configuration
    );
    assert_eq!(
        render("pre-{{ instance.token }}").as_deref(),
        Ok("pre-s3cret")
    );
    for part in [
        "pre-{{ instance.webhook_secret }}",
        "{{ instance.token }}{{ '' }}",
        "{{ 'pre-' | concat(instance.webhook_secret) }}",
        "{{ instance.webhook_secret | default('pre') }}",
    ] {
        assert_eq!(
            render(part).unwrap_err().kind,
            ErrorKind::Configuration,
            "{part}"
        );
    }
    assert_eq!(
        render("{{ instance").unwrap_err().kind,
        ErrorKind::Configuration
    );
    assert!(render_instance_template("{{ instance.token }}", None, b"", NOW).is_err());
}

#[test]
fn a_plan_that_cannot_run_says_where() {
    let error = |plan| Program::compile(plan).map(|_| ()).unwrap_err().to_string();
    let plan = FlowPlan {
        mapping: Some(mapping(&[("a.b", "source.x | nope")])),
        ..FlowPlan::default()
    };
    assert_eq!(
        error(plan),
        "mapping.a.b: byte 11: there is no transform `nope`"
    );
    let plan = FlowPlan {
        mapping: Some(mapping(&[("a", "1"), ("a", "2")])),
        ..FlowPlan::default()
    };
    assert_eq!(error(plan), "mapping.a: the field \"a\" is there twice");
    let mut plan = to_erp("/x");
    plan.target.as_mut().expect("a target").method = "GE T".to_owned();
    assert_eq!(error(plan), "target.method: \"GE T\" is no HTTP method");
    let mut plan = to_erp("/x");
    let host = NamedText {
        name: "Host".to_owned(),
        text: "x".to_owned(),
    };
    plan.target.as_mut().expect("a target").headers = vec![host];
    assert_eq!(
        error(plan),
        "target.headers.Host: the header host belongs to the connection"
    );
}

#[test]
fn what_this_build_lacks_differs_from_what_is_wrong() {
    let step = Step {
        entry: "crm".to_owned(),
        action: "add-lead".to_owned(),
        ..Step::default()
    };
    let plan = FlowPlan {
        steps: vec![step],
        ..FlowPlan::default()
    };
    let steps = Program::compile(plan).map(|_| ()).unwrap_err();
    assert_eq!(
        steps,
        CompileError::Unsupported("the action crm.add-lead".to_owned())
    );
}

#[test]
fn keys_call_no_adapters() {
    let plan = FlowPlan {
        ordering_key: "source.id | adapter(x)".to_owned(),
        ..FlowPlan::default()
    };
    let error = Program::compile(plan).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ordering_key: a key cannot call adapters"
    );
}

#[test]
fn an_answer_is_judged_by_the_target_s_condition() {
    let judged = |condition: &str, body: &str| {
        let mut plan = to_erp("/orders");
        plan.target.as_mut().expect("a target").success_when = condition.to_owned();
        let program = program(plan);
        let headers = http::HeaderMap::from_iter([(
            http::HeaderName::from_static("x-kind"),
            http::HeaderValue::from_static("receipt"),
        )]);
        let response = response_document(200, &headers, Some(body.as_bytes()));
        program.succeeds(None, &input(ORDER), &response, &environment())
    };
    assert_eq!(judged("", "{}"), Ok(true));
    assert_eq!(judged("response.body.ok", r#"{"ok": 1}"#), Ok(true));
    assert_eq!(judged("response.body.ok", "{}"), Ok(false));
    assert_eq!(
        judged("response.body.id == source.id", r#"{"id": 4711.0}"#),
        Ok(true)
    );
    assert_eq!(
        judged("response.headers.X-Kind == 'receipt'", "{}"),
        Ok(true)
    );
    assert_eq!(judged("instance.auth == 'bearer'", "{}"), Ok(true));
    let failure = judged("response.body.n | number > 1", r#"{"n": "x"}"#).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Condition);
    assert_eq!(failure.field.as_deref(), Some("target.success_when"));
    assert!(
        failure.message.contains("given \"x\""),
        "{}",
        failure.message
    );
}

#[test]
fn a_refusal_names_the_call_and_the_condition() {
    let mut plan = to_erp("/orders");
    plan.target.as_mut().expect("a target").success_when = " response.body.ok ".to_owned();
    let failure = program(plan).refusal(None, "POST https://erp.example/api/orders", 201);
    assert_eq!(failure.kind, ErrorKind::TargetRefused);
    let expected = "POST https://erp.example/api/orders answered 201, but success_when does not \
                    hold: response.body.ok";
    assert_eq!(failure.message, expected);
    assert_eq!(failure.expression.as_deref(), Some("response.body.ok"));
}
