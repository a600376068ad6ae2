//! Targets of what is public in its crate.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use kanat_engine::Program;
use kanat_flow::schedule::{CronExpression, timezone};
use kanat_flow::{Identity, InstanceRef, Names};
use kanat_gateway::Gateway;
use kanat_mapping::{Effort, Escape, Expression, JsonTemplate, Scope, Template, json};
use kanat_model::Timestamp;
use kanat_plan_stream::snapshot::{Assembly, Error as SnapshotError};
use kanat_plan_stream::{Hash, parts};
use kanat_proto::node::v1::{ResourceSet, SnapshotBegin};
use kanat_proto::plan::v1::{FlowPlan, LookupTable, PublishedApi};
use prost::Message;
use serde_json::Value;
use tokio::runtime::Runtime;
use tonic::service::Routes;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

const SOURCE: &[u8] = br#"{"a": [1.10, {"b": "x,y\u00e9"}, null], "b": "-12.345",
    "c": {"d e": "2026-01-31T08:15:00Z"},
    "n": 9007199254740993, "t": true, "xml": "<a b='1'>c</a>"}"#;

/// Parses an expression and evaluates it. What comes of it is JSON.
pub fn expression(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Expression::parse(&text) {
        Ok(expression) => {
            assert_eq!(expression.text(), text);
            let effort = Effort::default();
            if let Ok(value) = expression.evaluate(&Scope::new(SOURCE, NOW, &effort)) {
                let mut out = Vec::new();
                value.write_json(&mut out);
                assert_is_json(&out);
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty() && errors.iter().all(|error| error.offset <= text.len()))
        }
    }
}

/// Parses a template and renders it in all places where templates stand.
pub fn template(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let effort = Effort::default();
    let scope = Scope::new(SOURCE, NOW, &effort);
    if let Ok(template) = Template::parse(&text) {
        for escape in [Escape::None, Escape::PathSegment, Escape::QueryValue] {
            let _ = template.render(&scope, escape);
        }
        let _ = template.render_complete(&scope);
        let _ = template.render_endpoint(&scope);
    }
    let _ = JsonTemplate::parse(&text);
}

/// Checks a definition. One without errors compiles, and its plan runs on a node.
pub fn flow_yaml(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(definition) = kanat_flow::parse(&text) else {
        return;
    };
    let config = kanat_flow::config_json(&definition);
    assert!(
        serde_json::from_str::<Value>(&config).is_ok(),
        "a definition is shown as JSON: {config}"
    );
    if let Ok(plan) = kanat_flow::compile(&definition, &Everything, identity()) {
        let shown = kanat_flow::plan_json(&plan);
        assert!(
            serde_json::from_str::<Value>(&shown).is_ok(),
            "a plan is shown as JSON: {shown}"
        );
        if let Err(error) = Program::compile(plan) {
            panic!("a node refuses what the control plane compiled: {error}");
        }
    }
}

fn identity() -> Identity {
    Identity {
        flow_id: "flw_1".to_owned(),
        flow_name: "orders".to_owned(),
        account_id: "acc_1".to_owned(),
        environment_id: "env_1".to_owned(),
        version: 1,
        webhook_tokens: Vec::new(),
        paused: false,
    }
}

/// An environment that has every name.
struct Everything;

impl Names for Everything {
    fn instance(&self, name: &str) -> Option<InstanceRef> {
        Some(InstanceRef {
            id: format!("ci_{name}"),
            entry: "http".to_owned(),
        })
    }

    fn instances_of(&self, entry: &str) -> Vec<InstanceRef> {
        vec![InstanceRef {
            id: "ci_1".to_owned(),
            entry: entry.to_owned(),
        }]
    }

    fn table(&self, _: &str) -> bool {
        true
    }

    fn adapter(&self, name: &str) -> Option<String> {
        Some(format!("ada_{name}"))
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

/// Parses a cron expression, with a time zone on the next line. Due instants come one after
/// another.
pub fn cron(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (cron, zone) = text.split_once('\n').unwrap_or((&text, "Europe/Berlin"));
    let Ok(cron) = CronExpression::parse(cron) else {
        return;
    };
    let Ok(zone) = timezone(zone) else { return };
    assert!(CronExpression::parse(cron.as_str()).is_ok());
    let due = cron.upcoming(NOW, &zone, 4);
    assert!(
        due.iter().all(|due| *due > NOW) && due.is_sorted_by(|one, next| one < next),
        "{due:?}"
    );
    if let Some(first) = due.first() {
        let last = due.last().copied().unwrap_or(*first);
        assert_eq!(cron.last_until(*first, last, &zone), last);
    }
}

/// Takes a snapshot as a node does, with the beginning that belongs to it, and reads the bytes as
/// each of the resources.
pub fn plan_frames(input: &[u8]) {
    let begin = SnapshotBegin {
        length: input.len() as u64,
        sha256: Hash::of(input).to_vec(),
        set_hash: vec![0; 32],
        ..SnapshotBegin::default()
    };
    let mut assembly = Assembly::begin(begin);
    for chunk in input.chunks(7) {
        assembly
            .push(chunk)
            .expect("as many bytes come as were announced");
    }
    if let Err(error) = assembly.finish() {
        assert!(
            !matches!(error, SnapshotError::Length { .. } | SnapshotError::Sha256),
            "{error}"
        );
    }
    if let Ok(set) = ResourceSet::decode(input) {
        for resource in &set.resources {
            body(&resource.body);
        }
    }
    body(input);
}

fn body(bytes: &[u8]) {
    if let Ok(plan) = FlowPlan::decode(bytes) {
        let _ = Program::compile(plan);
    }
    let _ = PublishedApi::decode(bytes);
    if let Ok(table) = LookupTable::decode(bytes) {
        let _ = parts::edited(table.entries, []);
    }
}

/// Asks the REST face of the API: method, path and query in the first line, the content type in the
/// second, then the body. Every answer can be read, and none is a fault of the service.
pub fn gateway(input: &[u8]) {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime starts")
    });
    static GATEWAY: LazyLock<Gateway<Routes>> = LazyLock::new(|| {
        Gateway::new(&kanat_proto::DESCRIPTORS, Routes::default())
            .expect("the descriptors are those of the API")
    });
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    let body = Bytes::copy_from_slice(lines.next().unwrap_or_default());
    let first = String::from_utf8_lossy(first);
    let (method, uri) = first.split_once(' ').unwrap_or(("GET", &first));
    let Ok(method) = Method::from_bytes(method.as_bytes()) else {
        return;
    };
    let Ok(uri) = uri.parse::<Uri>() else { return };
    let Ok(content_type) = HeaderValue::from_bytes(second) else {
        return;
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request.headers_mut().insert(
        header::AUTHORIZATION,
        HeaderValue::from_static("Bearer key"),
    );
    request
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    let answered = RUNTIME.block_on(async {
        let (parts, body) = GATEWAY.handle(request).await.into_parts();
        (
            parts.status,
            body.collect().await.map(|body| body.to_bytes()),
        )
    });
    let body = answered.1.expect("an answer comes whole");
    if !answered.0.is_success() {
        let error: Value =
            serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {body:?}"));
        assert!(
            error["error"].is_string()
                && error["code"].is_string()
                && error["requestId"].is_string(),
            "{error}"
        );
        assert_ne!(answered.0, 500, "{error}");
    }
}

fn assert_is_json(text: &[u8]) {
    assert!(
        json::check(text, json::MAX_DEPTH).is_ok(),
        "no JSON: {}",
        String::from_utf8_lossy(text)
    );
}
