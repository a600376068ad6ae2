//! Plans of whole definitions, and what keeps one from being made.

use kanat_mapping::{Expression, FieldValue, JsonTemplate, Mapping, Template};
use kanat_proto::plan::v1 as plan;
use prost::Message;

use crate::check::tests::FULL;
use crate::fields::unset_fields;
use crate::names::{InstanceRef, Names};
use crate::{Definition, Identity, Severity, WebhookToken, check_names, compile, parse, plan_json};

/// An environment with a shop, an ERP, a newsletter and a help desk.
struct Environment;

impl Names for Environment {
    fn instance(&self, name: &str) -> Option<InstanceRef> {
        let entry = match name {
            "shop" | "erp" => "http",
            "newsletter" => "email-delivery",
            "desk" => "support-ticketing",
            _ => return None,
        };
        Some(InstanceRef {
            id: format!("ci_{name}"),
            entry: entry.to_owned(),
        })
    }

    fn instances_of(&self, entry: &str) -> Vec<InstanceRef> {
        let all = self
            .instance_names()
            .into_iter()
            .filter_map(|name| self.instance(&name));
        all.filter(|instance| instance.entry == entry).collect()
    }

    fn table(&self, name: &str) -> bool {
        name == "country_codes"
    }

    fn adapter(&self, name: &str) -> Option<String> {
        (name == "normalise-order").then(|| "adp_1".to_owned())
    }

    fn instance_names(&self) -> Vec<String> {
        ["shop", "erp", "newsletter", "desk"]
            .map(str::to_owned)
            .to_vec()
    }

    fn table_names(&self) -> Vec<String> {
        vec!["country_codes".to_owned()]
    }

    fn adapter_names(&self) -> Vec<String> {
        vec!["normalise-order".to_owned()]
    }

    fn variable(&self, name: &str) -> bool {
        name == "REGION"
    }

    fn variable_names(&self) -> Vec<String> {
        vec!["REGION".to_owned()]
    }
}

/// An environment in which every name exists.
struct Everything;

impl Names for Everything {
    fn instance(&self, name: &str) -> Option<InstanceRef> {
        let entry = if name == "newsletter" {
            "email-delivery"
        } else {
            "http"
        };
        Some(InstanceRef {
            id: name.to_owned(),
            entry: entry.to_owned(),
        })
    }

    fn instances_of(&self, entry: &str) -> Vec<InstanceRef> {
        vec![InstanceRef {
            id: "only".to_owned(),
            entry: entry.to_owned(),
        }]
    }

    fn table(&self, _: &str) -> bool {
        true
    }

    fn adapter(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn instance_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn adapter_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn variable(&self, _: &str) -> bool {
        true
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }
}

fn identity() -> Identity {
    Identity {
        flow_id: "flw_1".to_owned(),
        flow_name: "order-sync".to_owned(),
        account_id: "acc_1".to_owned(),
        environment_id: "env_1".to_owned(),
        version: 7,
        webhook_tokens: vec![WebhookToken {
            sha256: [7; 32],
            expires_at: None,
        }],
        paused: false,
    }
}

/// Returns whether each text of the plan compiles again, as on nodes. A definition that names
/// unknown actions has no plan.
pub(crate) fn compiles(definition: &Definition) -> bool {
    let Ok(plan) = compile(definition, &Everything, identity()) else {
        return !check_names(definition, &Everything).is_empty();
    };
    let expressions = [&plan.when, &plan.ordering_key, &plan.idempotency_key];
    let step_conditions = plan.steps.iter().map(|step| &step.when);
    let good_expressions = expressions
        .into_iter()
        .chain(step_conditions)
        .all(|text| text.is_empty() || Expression::parse(text).is_ok());
    let good_steps = plan
        .steps
        .iter()
        .all(|step| JsonTemplate::parse(&step.params).is_ok());
    let good_target = plan.target.iter().all(|target| {
        Template::parse(&target.endpoint).is_ok()
            && target
                .headers
                .iter()
                .all(|h| Template::parse(&h.text).is_ok())
    });
    good_expressions
        && good_steps
        && good_target
        && plan.mapping.iter().all(|m| mapping(m).is_some())
}

fn mapping(fields: &plan::Mapping) -> Option<Mapping> {
    let value = |field: &plan::Field| match field.value.as_ref()? {
        plan::field::Value::Expression(text) => {
            Expression::parse(text).ok().map(FieldValue::Expression)
        }
        plan::field::Value::Template(text) => Template::parse(text).ok().map(FieldValue::Template),
        plan::field::Value::Each(each) => {
            let list = Expression::parse(&each.list).ok()?;
            Some(FieldValue::Each {
                list,
                filter: None,
                map: Box::new(mapping(each.map.as_ref()?)?),
            })
        }
    };
    let fields: Option<Vec<_>> = fields
        .fields
        .iter()
        .map(|field| Some((field.name.clone(), value(field)?)))
        .collect();
    Mapping::new(fields?).ok()
}

fn flow(rest: &str) -> Definition {
    parse(&format!("flow: f\nsource: {{trigger: webhook}}\n{rest}")).unwrap()
}

fn warnings(rest: &str) -> Vec<String> {
    check_names(&flow(rest), &Environment)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn compiles_a_definition_with_nearly_every_key() {
    let definition = parse(FULL).unwrap();
    assert!(compiles(&definition));
    let plan = compile(&definition, &Environment, identity()).unwrap();
    insta::assert_snapshot!("plan", format!("{plan:#?}"));
    assert_eq!(
        plan::FlowPlan::decode(plan.encode_to_vec().as_slice()).as_ref(),
        Ok(&plan)
    );
}

#[test]
fn shows_a_plan_without_hashes_and_secrets() {
    let plan = compile(&parse(FULL).unwrap(), &Environment, identity()).unwrap();
    let text = plan_json(&plan);
    assert!(
        text.contains(r#""total":1.10,"count":9007199254740993"#),
        "{text}"
    );
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    insta::assert_snapshot!("plan_json", format!("{shown:#}"));
    let secret = parse(
        "flow: f\nsource: {trigger: webhook, verify: {scheme: token, secret: [hush-hush, \"{{ \
         source.x }}\"]}}\ntarget: {connector: erp, endpoint: /x, headers: {Authorization: \
         hush-hush}}\n",
    );
    assert!(secret.is_err(), "a secret cannot come from the payload");
    let yaml = "flow: f\nsource: {trigger: webhook, verify: {scheme: token, secret: \
                hush-hush}}\ntarget: {connector: erp, endpoint: /x, headers: {Authorization: \
                hush-hush}}\n";
    let shown = plan_json(&compile(&parse(yaml).unwrap(), &Environment, identity()).unwrap());
    assert!(
        !shown.contains("hush-hush") && !shown.contains("0707"),
        "{shown}"
    );
}

#[test]
fn every_other_trigger_has_its_plan() {
    for (source, expect) in [
        ("{trigger: manual}", "Manual"),
        ("{trigger: api}", "Api"),
        (
            "{trigger: schedule, connector: shop, schedule: \"0  6 * * *\"}",
            "cron: \"0 6 * * *\"",
        ),
        (
            "{trigger: poll, connector: shop, poll: {url: \"https://a.example\"}}",
            "interval_ms: 300000",
        ),
        (
            "{trigger: poll, connector: shop, schedule: \"* * * * *\", timezone: Europe/Berlin, \
             poll: {url: \"https://a.example\"}}",
            "timezone: \"Europe/Berlin\"",
        ),
    ] {
        let yaml = format!("flow: f\nsource: {source}\ntarget: {{connector: erp, endpoint: /x}}\n");
        let plan = compile(&parse(&yaml).unwrap(), &Environment, identity()).unwrap();
        assert!(format!("{plan:?}").contains(expect), "{plan:?}");
    }
}

#[test]
fn warns_of_names_that_do_not_exist() {
    let rest = "adapter: normalize-order\ntarget: {connector: erb, endpoint: /x}\nmapping:\n  a: \
                source.a | lookup(country_code)\n  b: source.b | adapter(x)\n";
    assert_eq!(
        warnings(rest),
        [
            "line 3, column 10, adapter: the adapter \"normalize-order\" does not exist; did you \
             mean \"normalise-order\"",
            "line 4, column 21, target.connector: the connector instance \"erb\" does not exist; \
             did you mean \"erp\"",
            "line 6, column 24, mapping.a: the lookup table \"country_code\" does not exist; did \
             you mean \"country_codes\"",
            "line 7, column 25, mapping.b: the adapter \"x\" does not exist",
        ]
    );
    assert!(
        check_names(&flow(rest), &Environment)
            .iter()
            .all(|d| d.severity == Severity::Warning)
    );
    let errors = compile(&flow(rest), &Environment, identity()).unwrap_err();
    assert!(errors.len() == 4 && errors.iter().all(|d| d.severity == Severity::Error));
}

#[test]
fn warns_of_a_query_in_the_path_of_a_step() {
    let of_path = |path: &str| {
        let params = format!("{{path: \"{path}\"}}");
        warnings(&format!(
            "steps:\n  - {{name: n, connector: shop, action: http.get, params: {params}}}\n"
        ))
    };
    for (path, found) in [
        ("/orders?status=open", "'?'"),
        ("/orders/{{ source.id }}?status=open", "'?'"),
        ("/orders?status={{ source.status }}", "'?'"),
        ("/orders#{{ source.id }}", "'#'"),
    ] {
        let warnings = of_path(path);
        assert_eq!(warnings.len(), 1, "{path}: {warnings:?}");
        assert!(
            warnings[0].contains("steps[0].params.path: "),
            "{warnings:?}"
        );
        let found = format!("found the character {found}");
        assert!(warnings[0].contains(&found), "{warnings:?}");
        assert!(warnings[0].contains("into params.query"), "{warnings:?}");
    }
    for path in [
        "/orders/{{ source.id }}",
        "/a b",
        "/orders{{ '?' }}",
        "/a%23",
    ] {
        assert_eq!(of_path(path), [""; 0], "{path}");
    }
    let file = "steps:\n  - {name: n, connector: g, action: github.get-file, params: {owner: \
                a, repo: b, path: \"what?.md\"}}\n";
    assert!(
        warnings(file)
            .iter()
            .all(|warning| !warning.contains("character")),
        "a file may have such a name: {:?}",
        warnings(file)
    );
}

#[test]
fn warns_of_a_hundred_names_at_most() {
    let fields: String = (0..500)
        .map(|n| format!("  f{n}: source.a | lookup(t{n})\n"))
        .collect();
    let target = "target: {connector: erp, endpoint: /x}\nmapping:\n";
    let warnings = warnings(&format!("{target}{fields}"));
    assert_eq!(warnings.len(), crate::diagnostic::MAX_DIAGNOSTICS);
    assert!(warnings[99].contains("mapping.f99:"), "{}", warnings[99]);
}

#[test]
fn warns_of_fields_that_no_instance_of_the_entry_has() {
    let yaml = |secret: &str, path: &str| {
        format!(
            "flow: f\nsource: {{connector: shop, trigger: webhook, verify: {{scheme: token, \
             secret: \"{secret}\"}}}}\nsteps:\n  - {{name: n, connector: newsletter, action: \
             email-delivery.list-contacts, when: instance.api_kye}}\ntarget: {{connector: erp, \
             endpoint: \"{path}\", headers: {{X: \"{{{{ instance.headers.X }}}}\"}}}}\nmapping: \
             {{a: instance.nmae}}\n"
        )
    };
    let wrong = parse(&yaml(
        "{{ instance.webhok_secret }}",
        "/{{ instance.tenant }}",
    ))
    .unwrap();
    let warnings: Vec<String> = check_names(&wrong, &Environment)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        warnings,
        [
            "line 2, column 90, source.verify.secret: found the field \"webhok_secret\", which \
             connector instances of http do not have; did you mean \"webhook_secret\"",
            "line 4, column 91, steps[0].when: found the field \"api_kye\", which connector \
             instances of email-delivery do not have; did you mean \"api_key\"",
            "line 5, column 50, target.endpoint: found the field \"tenant\", which connector \
             instances of http do not have",
            "line 6, column 23, mapping.a: found the field \"nmae\", which connector instances of \
             http do not have",
        ]
    );
    let right = parse(&yaml(
        "{{ instance.webhook_secret }}",
        "/{{ instance.base_url }}",
    ))
    .unwrap();
    let unset: Vec<_> = unset_fields(&right, &Environment, &|_, field| field == "base_url")
        .into_iter()
        .map(|fault| (fault.severity, fault.path))
        .collect();
    assert_eq!(
        unset,
        [
            (Severity::Error, "source.verify.secret".to_owned()),
            (Severity::Warning, "target.headers.X".to_owned()),
        ]
    );
}

#[test]
fn warns_of_steps_that_cannot_be_called() {
    let cases = [
        (
            "{name: a, action: email-delivery.add-contact, params: {contacts: []}}",
            "did you mean \"email-delivery.add-contacts\"",
        ),
        (
            "{name: a, action: unknown.x}",
            "the environment has no connector instance of \"unknown\"",
        ),
        (
            "{name: a, connector: erp, action: email-delivery.list-contacts}",
            "of \"http\", expected one of \"email-delivery\"",
        ),
        ("{name: a, action: email-delivery.list-contacts}", ""),
    ];
    for (step, expect) in cases {
        let warnings = warnings(&format!("steps:\n  - {step}\n"));
        let found = warnings.iter().any(|warning| warning.contains(expect));
        assert!(
            if expect.is_empty() {
                warnings.is_empty()
            } else {
                found
            },
            "{step}: {warnings:?}"
        );
    }
}

#[test]
fn warns_of_literal_params_that_the_action_does_not_take() {
    let rest = "steps:
  - name: contact
    action: email-delivery.add-contacts
    params:
      contact: []
      contacts:
        - emial: a@b.example
        - email: 5
        - \"{{ source.contact }}\"
        - email: \"{{ source.email }}\"
  - name: ticket
    action: support-ticketing.create-ticket
    params: { ticket: { comment: { body: x }, priority: hihg, tags: \"{{ source.tags }}\" } }
  - name: search
    action: support-ticketing.search
";
    assert_eq!(
        warnings(rest),
        [
            "line 7, column 7, steps[0].params.contact: found the unknown param \"contact\", \
             expected list_ids, contacts; did you mean \"contacts\"",
            "line 9, column 11, steps[0].params.contacts[0]: lacks the param \"email\"",
            "line 10, column 18, steps[0].params.contacts[1].email: found the number 5, expected \
             string",
            "line 15, column 57, steps[1].params.ticket.priority: found \"hihg\", expected one of \
             \"urgent\", \"high\", \"normal\", \"low\"",
            "line 17, column 13, steps[2].action: lacks the param \"query\"",
        ]
    );
}
