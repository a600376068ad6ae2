//! Metrics for Prometheus, and their address.

mod listener;

use std::collections::BTreeSet;

use kanat_tests::split::Split;
use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::{Value, json};

use crate::webhook::passthrough;

const FLOW: &str = r"flow: counted
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
idempotency_key: source.id
when: source.id > 0
mapping:
  id: source.id
  total: source.total | required
on_error:
  retry: 2x fixed(20ms)
";

/// Words of the documentation that look like metrics: a module whose logs are asked for, a schema
/// of the database.
const NOT_METRICS: &[&str] = &["kanat_data_plane", "kanat_log"];

/// Starts a service with metrics on a free port, and returns their address.
async fn start() -> (TestApp, String) {
    let app = TestApp::start_with(&[("KANAT_METRICS_LISTEN", "127.0.0.1:0")]).await;
    let metrics = address(&app.log());
    (app, metrics)
}

/// Address of the metrics, from the log.
pub fn address(log: &str) -> String {
    let line = log
        .lines()
        .rfind(|line| line.contains("metrics are served"))
        .expect("the address is logged");
    let line: Value = serde_json::from_str(line).unwrap();
    line["url"].as_str().unwrap().to_owned()
}

/// One scrape.
struct Scrape(String);

impl Scrape {
    async fn of(api: &Rest, metrics: &str) -> Self {
        let answer = api.without_key().get(&format!("{metrics}/metrics")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(
            answer
                .header("content-type")
                .starts_with("application/openmetrics-text"),
            "{:?}",
            answer.headers
        );
        assert!(answer.text.ends_with("# EOF\n"));
        Self(answer.text)
    }

    /// The sum of a metric's samples that have all of these labels.
    fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let samples = self.0.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| {
                rest.starts_with([' ', '{']) && labels.iter().all(|label| rest.contains(label))
            })
        });
        samples
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }
}

#[tokio::test]
async fn counters_move_as_messages_go() {
    let (app, metrics) = start().await;
    let target = FakeTarget::scripted(|received, earlier| {
        if received.json()["id"] == 2 && earlier < 2 {
            status(503)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let send = async |payload: Value, becomes: &str| {
        let id = app.api.webhook(&url, &payload).await;
        app.api.message_becomes(&id, becomes).await;
    };
    send(json!({"id": 1, "total": 1}), "delivered").await;
    send(json!({"id": 1, "total": 1}), "delivered").await;
    send(json!({"id": 2, "total": 1}), "delivered").await;
    send(json!({"id": 0}), "filtered").await;
    send(json!({"id": 3}), "dead_letter").await;
    app.api
        .without_key()
        .post(&format!("{url}x"), &json!({}))
        .await
        .expect_error(404, "NOT_FOUND");

    let labels = [format!("flow_id=\"{flow}\""), "flow=\"counted\"".to_owned()];
    let labels: Vec<_> = labels.iter().map(String::as_str).collect();
    // A message is counted right after it is durable, and may be shown between the two.
    let scrape = until("the last outcome is counted", || async {
        let scrape = Scrape::of(&app.api, &metrics).await;
        let ended = ["delivered", "filtered", "dead_lettered"];
        let ended =
            ended.map(|outcome| scrape.sum(&format!("kanat_messages_{outcome}_total"), &labels));
        (ended.iter().sum::<f64>() >= 4.0 && scrape.sum("kanat_messages_in_memory", &[]) == 0.0)
            .then_some(scrape)
    })
    .await;
    let of_flow = [
        "accepted",
        "duplicate",
        "delivered",
        "filtered",
        "retried",
        "dead_lettered",
    ]
    .map(|outcome| {
        (
            outcome,
            scrape.sum(&format!("kanat_messages_{outcome}_total"), &labels),
        )
    });
    assert_eq!(
        of_flow,
        [
            ("accepted", 4.0),
            ("duplicate", 1.0),
            ("delivered", 2.0),
            ("filtered", 1.0),
            ("retried", 1.0),
            ("dead_lettered", 1.0)
        ]
    );
    let expected = [
        ("kanat_attempts_total", "result=\"delivered\"", 2.0),
        ("kanat_attempts_total", "result=\"status\"", 1.0),
        ("kanat_attempts_total", "result=\"mapping\"", 1.0),
        ("kanat_attempts_total", "result=\"filtered\"", 1.0),
        (
            "kanat_ingress_refused_total",
            "reason=\"unknown_address\"",
            1.0,
        ),
        ("kanat_ack_duration_seconds_count", "", 5.0),
        ("kanat_delivery_duration_seconds_count", "", 2.0),
        ("kanat_attempt_duration_seconds_count", "", 3.0),
        (
            "kanat_api_requests_total",
            "method=\"kanat.v1.FlowService/DeployFlow\",code=\"OK\"",
            1.0,
        ),
        ("kanat_log_appended_total", "", 4.0),
        ("kanat_log_readable", "", 1.0),
        ("kanat_nodes", "status=\"connected\"", 1.0),
        ("kanat_node_ready", "", 1.0),
        ("kanat_plan_lag", "", 0.0),
        ("kanat_plan_refusals", "", 0.0),
        ("kanat_messages_in_memory", "", 0.0),
        ("kanat_messages_memory_bytes", "", 0.0),
        ("kanat_build_info", "version=", 1.0),
    ];
    for (name, label, value) in expected {
        assert_eq!(
            scrape.sum(name, &[label]),
            value,
            "{name} {label}\n{}",
            scrape.0
        );
    }
    let positive = [
        "kanat_log_commits_total",
        "kanat_log_operations_total",
        "kanat_log_settled_total",
    ];
    for name in positive.into_iter().chain([
        "kanat_plan_generation",
        "process_resident_memory_bytes",
        "process_open_fds",
    ]) {
        assert!(scrape.sum(name, &[]) > 0.0, "{name}\n{}", scrape.0);
    }
    assert_eq!(
        scrape.sum("kanat_plan_generation", &[]),
        scrape.sum("kanat_node_plan_generation", &[])
    );
}

#[tokio::test]
async fn what_a_hung_target_holds_up_shows_as_memory_and_then_as_backlog() {
    let (app, metrics) = start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("hung")).await;
    for n in 0..3 {
        app.api.webhook(&url, &json!({ "n": n })).await;
    }
    let scrape = Scrape::of(&app.api, &metrics).await;
    assert_eq!(
        scrape.sum("kanat_messages_in_memory", &[]),
        3.0,
        "{}",
        scrape.0
    );
    assert!(
        scrape.sum("kanat_messages_memory_bytes", &[]) > 0.0
            && scrape.sum("kanat_lanes", &[]) == 1.0
    );
    // More than the lane holds has to wait in the log.
    let beyond = until("messages wait in the log", || async {
        let posts = (0..200).map(|n| app.api.post_owned(&url, &json!({ "more": n })));
        futures::future::join_all(posts).await;
        let scrape = Scrape::of(&app.api, &metrics).await;
        let depth = scrape.sum(
            "kanat_queue_depth",
            &[&format!("flow_id=\"{flow}\""), "flow=\"hung\""],
        );
        (depth > 0.0).then_some(scrape)
    })
    .await;
    assert!(beyond.sum("kanat_queue_oldest_age_seconds", &["flow=\"hung\""]) >= 0.0);
    target.release();
}

#[tokio::test]
async fn connectors_polls_and_adapters_are_counted() {
    let (app, metrics) = start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Late(503)).await;
    let config = json!({
        "base_url": target.url(),
        "auth": "none",
        "concurrency": 1,
        "breaker_failures": 1,
        "breaker_seconds": 3600,
    });
    let erp = json!({"catalogId": "http", "name": "erp", "config": config});
    app.api
        .post("/api/v1/connectors/instances", &erp)
        .await
        .expect(201);
    let code = "function transform(input) { if (input.bad) throw new Error('no'); return input; }";
    let adapter = json!({"name": "strict", "type": "transform", "code": code});
    app.api.post("/api/v1/adapters", &adapter).await.expect(201);
    let yaml = passthrough("counted").replace("target:", "adapter: strict\ntarget:");
    let (_, url) = app.api.deployed(&yaml).await;
    let bad = app.api.webhook(&url, &json!({"bad": true})).await;
    app.api.message_becomes(&bad, "dead_letter").await;
    app.api.webhook(&url, &json!({"n": 0})).await;
    target.arrivals(1).await;
    // It is taken in before the first one fails, and has its turn when that has opened the breaker.
    app.api.webhook(&url, &json!({"n": 1})).await;
    target.release();
    // The breaker of the other one holds polls back too.
    app.api.http_instance("shop", &target.url()).await;
    let poll = r#"flow: asks
version: 1
source: {connector: shop, trigger: poll, poll: {url: "{{ instance.base_url }}/x"}}
target: {connector: shop, endpoint: /in, method: POST}
"#;
    app.api.deployed(poll).await;
    let counted = until("all of it is counted", || async {
        let scrape = Scrape::of(&app.api, &metrics).await;
        let polled =
            scrape.sum("kanat_polls_total", &["flow=\"asks\"", "result=\"failed\""]) >= 1.0;
        let waited = scrape.sum("kanat_connector_waits_total", &["reason=\"breaker\""]) >= 1.0;
        (polled && waited && scrape.sum("kanat_adapter_calls_total", &["result=\"ok\""]) >= 1.0)
            .then_some(scrape)
    })
    .await;
    for (name, label, value) in [
        ("kanat_breakers_open", "", 1.0),
        ("kanat_breaker_turns_total", "to=\"open\"", 1.0),
        ("kanat_adapter_calls_total", "result=\"thrown\"", 1.0),
        ("kanat_adapter_kills_total", "", 0.0),
        ("kanat_poll_messages_total", "", 0.0),
        ("kanat_clock_jumps_total", "", 0.0),
    ] {
        assert_eq!(
            counted.sum(name, &[label]),
            value,
            "{name} {label}\n{}",
            counted.0
        );
    }
}

#[tokio::test]
async fn a_call_that_the_egress_guard_refuses_is_counted() {
    let (app, metrics) = start().await;
    app.api.http_instance("erp", "http://169.254.169.254").await;
    let (_, url) = app.api.deployed(&passthrough("metadata")).await;
    let id = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&id, "dead_letter").await;
    until("the attempt is counted", || async {
        let scrape = Scrape::of(&app.api, &metrics).await;
        (scrape.sum("kanat_attempts_total", &["result=\"egress\""]) == 1.0).then_some(())
    })
    .await;
    let scrape = Scrape::of(&app.api, &metrics).await;
    assert_eq!(
        scrape.sum("kanat_egress_refused_total", &[]),
        1.0,
        "{}",
        scrape.0
    );
}

#[tokio::test]
async fn a_method_that_does_not_exist_makes_no_series_of_its_own() {
    let (app, metrics) = start().await;
    for n in 0..3 {
        let path = format!("/kanat.v1.FlowService/Invented{n}");
        app.api
            .raw("POST", &path, "application/grpc-web+proto", "")
            .await;
    }
    let scrape = Scrape::of(&app.api, &metrics).await;
    assert_eq!(
        scrape.sum("kanat_api_requests_total", &["method=\"other\""]),
        3.0,
        "{}",
        scrape.0
    );
    assert!(!scrape.0.contains("Invented"), "{}", scrape.0);
}

#[tokio::test]
async fn each_plane_of_a_split_deployment_has_its_own_metrics() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let node = split.node("a", &[&control]).await;
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("split")).await;
    let id = control
        .api
        .webhook(&format!("{}{webhook}", node.base), &json!({}))
        .await;
    control.api.message_becomes(&id, "delivered").await;

    let at_node = until("the delivery is counted", || async {
        let scrape = Scrape::of(&node.api, &address(&node.log())).await;
        (scrape.sum("kanat_messages_delivered_total", &["flow=\"split\""]) == 1.0).then_some(scrape)
    })
    .await;
    let at_control = Scrape::of(&control.api, &address(&control.log())).await;
    for (name, of_node, of_control) in [
        ("kanat_node_ready", 1.0, 0.0),
        ("kanat_log_appended_total", 1.0, 0.0),
        ("kanat_nodes", 0.0, 1.0),
        ("kanat_log_readable", 1.0, 1.0),
        ("kanat_plan_lag", 0.0, 0.0),
    ] {
        let told = (at_node.sum(name, &[]), at_control.sum(name, &[]));
        assert_eq!(
            told,
            (of_node, of_control),
            "{name}\n{}\n{}",
            at_node.0,
            at_control.0
        );
    }
    assert_eq!(
        at_node.sum("kanat_node_plan_generation", &[]),
        at_control.sum("kanat_plan_generation", &[])
    );
    assert!(
        at_control.sum("kanat_api_requests_total", &["DeployFlow"]) > 0.0,
        "{}",
        at_control.0
    );
    for process in [&control, &node] {
        let ready = process
            .api
            .without_key()
            .get(&format!("{}/ready", address(&process.log())))
            .await;
        assert_eq!(ready.status, 200, "{}", ready.text);
    }
}

/// Every name of a metric in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("kanat_") || word.starts_with("process_"));
    ours.filter(|word| !word.starts_with("kanat_ak"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn dashboard_alerts_and_documentation_know_what_there_is() {
    let (app, metrics) = start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("known")).await;
    app.api
        .without_key()
        .get(&url)
        .await
        .expect_error(405, "UNIMPLEMENTED");
    let id = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&id, "delivered").await;
    let scrape = until("the attempt is counted", || async {
        let scrape = Scrape::of(&app.api, &metrics).await;
        (scrape.sum("kanat_attempts_total", &[]) > 0.0).then_some(scrape)
    })
    .await;
    let samples: String = scrape
        .0
        .lines()
        .filter(|line| line.starts_with("# TYPE "))
        .collect::<Vec<_>>()
        .join("\n");
    let kinds = samples
        .lines()
        .map(|line| line.trim_start_matches("# TYPE ").split_once(' ').unwrap());
    let served: BTreeSet<String> = kinds
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect();

    let file =
        |path: &str| std::fs::read_to_string(kanat_tests::python::root().join(path)).unwrap();
    for path in [
        "deploy/grafana/kanat.json",
        "deploy/prometheus/alerts.yaml",
        "docs/OPERATIONS.md",
    ] {
        let unknown: Vec<_> = names(&file(path))
            .into_iter()
            .filter(|name| {
                !served.contains(name) && !served.contains(name.trim_end_matches("_bucket"))
            })
            .filter(|name| !NOT_METRICS.contains(&name.as_str()))
            .collect();
        assert!(
            unknown.is_empty(),
            "{path} names metrics that do not exist: {unknown:?}"
        );
    }
    for path in ["deploy/grafana/kanat.json", "docs/OPERATIONS.md"] {
        let known = names(&file(path));
        let known =
            |name: &&String| known.contains(*name) || known.contains(&format!("{name}_bucket"));
        let unknown: Vec<_> = served.iter().filter(|name| !known(name)).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "not in {path}");
    }
    let alerts = file("deploy/prometheus/alerts.yaml");
    for alert in alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        assert!(
            file("docs/OPERATIONS.md").contains(&format!("| `{alert}` |")),
            "{alert} is not in docs/OPERATIONS.md"
        );
    }
}

#[tokio::test]
async fn a_service_gives_freed_memory_back_soon_or_when_its_operator_says() {
    let mut app = TestApp::start().await;
    let pid = app.pid();
    // Root alone reads the environment of a service.
    if std::fs::read(format!("/proc/{}/environ", app.pid())).is_err() {
        return;
    }
    let purge_delay = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let environment = String::from_utf8(environment).unwrap();
        let delay = environment
            .split('\0')
            .find_map(|variable| variable.strip_prefix("MIMALLOC_PURGE_DELAY="));
        delay.map(str::to_owned)
    };
    assert_eq!(purge_delay(pid).as_deref(), Some("10"));
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(
        line.split('\0').nth(1),
        Some("up"),
        "as it was started: {line:?}"
    );
    app.terminate().await;
    app.restart_with(&[("MIMALLOC_PURGE_DELAY", "250")]).await;
    assert_eq!(purge_delay(app.pid()).as_deref(), Some("250"));
}
