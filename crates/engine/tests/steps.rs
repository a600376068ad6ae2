//! Steps of plans on messages: when they run, what they ask for, what is wrong with their params.

use std::collections::HashMap;

use kanat_catalog::Instance;
use kanat_engine::{Input, Mask, Program, Resources};
use kanat_mapping::{Effort, Lookup, Tables};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_proto::plan::v1::{FlowPlan, Step};

const ORDER: &str =
    r#"{"id": 9007199254740993, "email": "ann@shop.example", "vip": false, "token": "a/b"}"#;

struct Environment(HashMap<String, Instance>);

impl Tables for Environment {
    fn lookup<'t>(&'t self, _table: &str, _key: &str) -> Lookup<'t> {
        Lookup::NoTable
    }
}

impl Resources for Environment {
    fn instance(&self, id: &str) -> Option<&Instance> {
        self.0.get(id)
    }

    fn variables(&self) -> &[u8] {
        br#"{"REGION":"eu-1"}"#
    }
}

fn environment() -> Environment {
    let desk = r#"{"subdomain": "shop", "email": "agent@shop.example", "api_token": "s3cret"}"#;
    let desk = Instance::new("ci_desk", "desk", "support-ticketing", desk).expect("a valid config");
    let mail = Instance::new(
        "ci_mail",
        "mail",
        "email-delivery",
        r#"{"api_key": "SG.s3cret"}"#,
    )
    .expect("a valid config");
    let http = Instance::new(
        "ci_http",
        "http",
        "http",
        r#"{"base_url": "http://shop.example"}"#,
    )
    .expect("a valid config");
    Environment(
        [desk, mail, http]
            .into_iter()
            .map(|instance| (instance.id().to_owned(), instance))
            .collect(),
    )
}

fn step(action: &str, params: &str) -> Step {
    let (entry, action) = action.split_once('.').expect("entry and slug");
    let instance = match entry {
        "email-delivery" => "ci_mail",
        "http" => "ci_http",
        _ => "ci_desk",
    };
    Step {
        name: "first".to_owned(),
        entry: entry.to_owned(),
        action: action.to_owned(),
        instance: instance.to_owned(),
        params: params.to_owned(),
        ..Step::default()
    }
}

/// `METHOD URL body`, `skipped`, or the failure.
fn request(step: Step, steps: &str) -> Result<String, Failure> {
    let program = Program::compile(FlowPlan {
        steps: vec![step],
        ..FlowPlan::default()
    })
    .expect("a valid plan");
    let now = Timestamp::from_millis(1_769_847_300_123);
    let effort = Effort::default();
    let input = Input {
        payload: ORDER.as_bytes(),
        trigger: b"{}",
        steps: steps.as_bytes(),
        now,
        mask: Mask::none(),
        effort: &effort,
    };
    let found = program.step_request(&program.steps()[0], &input, &environment())?;
    let Some(request) = found else {
        return Ok("skipped".to_owned());
    };
    let body = String::from_utf8_lossy(&request.body);
    Ok(format!("{} {} {body}", request.method, request.url)
        .trim_end()
        .to_owned())
}

#[test]
fn params_are_templates_over_the_message_and_earlier_steps() {
    let contacts = step(
        "email-delivery.add-contacts",
        concat!(
            r#"{"contacts": [{"email": "{{ source.email }}", "#,
            r#""external_id": "{{ source.id }}-{{ source.missing }}"}]}"#
        ),
    );
    assert_eq!(
        request(contacts, "").as_deref(),
        Ok(concat!(
            "PUT https://api.sendgrid.com/v3/marketing/contacts ",
            r#"{"contacts":[{"email":"ann@shop.example","external_id":"9007199254740993-"}]}"#
        ))
    );
    let ticket = step(
        "support-ticketing.get-ticket",
        r#"{"ticketId": "{{ steps.made.output.ticket.id }}"}"#,
    );
    let steps = r#"{"made": {"output": {"ticket": {"id": 35436}}, "status": 201}}"#;
    assert_eq!(
        request(ticket, steps).as_deref(),
        Ok("GET https://shop.zendesk.com/api/v2/tickets/35436")
    );
}

#[test]
fn a_step_whose_condition_is_false_makes_no_request() {
    let when = |when: &str| Step {
        when: when.to_owned(),
        ..step("support-ticketing.list-users", "{}")
    };
    assert_eq!(request(when("source.vip"), "").as_deref(), Ok("skipped"));
    assert_eq!(
        request(when("not source.vip"), "").as_deref(),
        Ok("GET https://shop.zendesk.com/api/v2/users")
    );
    let failure = request(when("source.email | number"), "").unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Mapping);
    assert_eq!(failure.field.as_deref(), Some("steps.first.when"));
}

#[test]
fn params_that_do_not_fit_the_action_are_named() {
    let field = |action: &str, params: &str| {
        let failure = request(step(action, params), "").unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Mapping, "{}", failure.message);
        failure.field.unwrap_or_default()
    };
    assert_eq!(
        field(
            "email-delivery.add-contacts",
            r#"{"contacts": [{"email": "{{ source.vip }}"}]}"#
        ),
        "steps.first.params.contacts[0].email"
    );
    assert_eq!(
        field(
            "email-delivery.add-contacts",
            r#"{"contacts": [{"email": "{{ source.email | decimal(2) }}"}]}"#
        ),
        "steps.first.params.contacts[0].email"
    );
    assert_eq!(
        field(
            "support-ticketing.get-ticket",
            r#"{"ticketId": "{{ source.missing }}"}"#
        ),
        "steps.first.params.ticketId"
    );
}

#[test]
fn no_value_leads_to_another_endpoint_and_no_failure_shows_a_secret() {
    let ticket = |params: &str| request(step("support-ticketing.get-ticket", params), "");
    assert_eq!(
        ticket(r#"{"ticketId": "{{ source.token }}"}"#).as_deref(),
        Ok("GET https://shop.zendesk.com/api/v2/tickets/a%2Fb")
    );
    let price = |path: &str| request(step("http.get", &format!(r#"{{"path": "{path}"}}"#)), "");
    assert_eq!(
        price("/prices/{{ source.token }}").as_deref(),
        Ok("GET http://shop.example/prices/a/b")
    );
    assert_eq!(
        price("/prices/").as_deref(),
        Ok("GET http://shop.example/prices/")
    );
    let failure = price("/prices/{{ source.missing }}").unwrap_err();
    assert!(
        failure
            .message
            .ends_with("a segment of the path is empty, in `/prices/{{ source.missing }}`"),
        "{}",
        failure.message
    );
    assert_eq!(
        failure.expression.as_deref(),
        Some("/prices/{{ source.missing }}")
    );
    let failure = ticket(r#"{"ticketId": "{{ source.missing }}"}"#).unwrap_err();
    assert_eq!(
        failure.expression.as_deref(),
        Some("{{ source.missing }}"),
        "{}",
        failure.message
    );
    let failure = ticket(r#"{"ticketId": "{{ instance.api_token | number }}"}"#).unwrap_err();
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
}

#[test]
fn a_step_whose_instance_is_gone_is_a_fault_of_the_configuration() {
    let gone = Step {
        instance: "ci_gone".to_owned(),
        ..step("support-ticketing.list-users", "{}")
    };
    assert_eq!(
        request(gone, "").unwrap_err().kind,
        ErrorKind::Configuration
    );
}

#[test]
fn what_stands_for_a_missing_secret_is_none() {
    let token = "tok-s3cret";
    let config =
        format!(r#"{{"base_url": "http://shop.example", "auth": "bearer", "token": "{token}"}}"#);
    let http = Instance::new("ci_http", "http", "http", &config).expect("a valid config");
    let environment = Environment([("ci_http".to_owned(), http)].into());
    let params = r#"{"path": "/x", "body": {
        "chosen": "{{ source.email | default(instance.token) }}",
        "late": "{{ instance.token | default(source.email) }}",
        "missing": "{{ source.nothing | default(instance.token) | concat('-1') }}",
        "made": "{{ source.email | concat(instance.token) | base64 }}"
    }}"#;
    let program = Program::compile(FlowPlan {
        steps: vec![step("http.post", params)],
        ..FlowPlan::default()
    })
    .expect("a valid plan");
    let effort = Effort::default();
    let input = Input {
        payload: ORDER.as_bytes(),
        trigger: b"{}",
        steps: b"{}",
        now: Timestamp::from_millis(0),
        mask: Mask::none(),
        effort: &effort,
    };
    let request = program.step_request(&program.steps()[0], &input, &environment);
    let request = request.expect("it can be made").expect("it is not skipped");
    let made = "YW5uQHNob3AuZXhhbXBsZXRvay1zM2NyZXQ=";
    assert_eq!(request.secrets, [token, "tok-s3cret-1", made]);
}
