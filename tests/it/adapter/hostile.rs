//! Hostile code: it ends within its limit and a second, and nobody else waits for it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use super::adapter;

/// The limit that these services give an adapter.
const LIMIT: Duration = Duration::from_millis(500);
const LIMITED: [(&str, &str); 1] = [("KANAT_ADAPTER_TIME", "500")];

/// Time that a worker may take to start and to be ready.
const START_MARGIN: Duration = Duration::from_millis(300);

/// Hostile code, by name; each runs when its payload asks for it.
const HOSTILE: &[(&str, &str)] = &[
    ("loop", "while (true);"),
    (
        "caught",
        "for (;;) { try { while (true); } catch {} finally { continue; } }",
    ),
    (
        "promise",
        "return (async () => { for (;;) await null; })();",
    ),
    ("getter", "return { get x() { while (true); } };"),
    ("proxy", "throw new Proxy({}, { get() { while (true); } });"),
    ("regex", "/^(a+)+$/.test('a'.repeat(50) + 'b');"),
    (
        "built-in",
        "for (;;) { try { new Array(1e9).join('x'); } catch {} }",
    ),
    ("index", "return new Array(4e9).lastIndexOf(1, 4e9);"),
    (
        "memory",
        "const all = []; for (;;) all.push(new Array(1000).fill(0));",
    ),
    (
        "strings",
        "let s = 'x'; for (;;) { s = s + s; s.charCodeAt(0); }",
    ),
    (
        "buffers",
        "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));",
    ),
    ("recursion", "const f = () => [f()]; return f();"),
    (
        "deep",
        "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a;",
    ),
    (
        "prototype",
        "Object.prototype.toJSON = () => { while (true); }; return {};",
    ),
    (
        "freeze",
        "Array.prototype.push = () => { while (true); }; JSON.parse = null; return input.push();",
    ),
    (
        "exit",
        "return this.constructor.constructor('return process')().exit();",
    ),
    ("logs", "for (;;) console.log('x'.repeat(1e4));"),
];

async fn hostile(app: &TestApp, name: &str, body: &str) -> String {
    let code = format!("function transform(input) {{ if (input.bad) {{ {body} }} return input; }}");
    adapter(&app.api, name, "transform", &code).await;
    let yaml = format!(
        r"flow: {name}
version: 1
source: {{trigger: webhook}}
adapter: {name}
target: {{connector: erp, endpoint: /in}}
on_error: {{retry: 0x fixed(1s)}}
"
    );
    app.api.deployed(&yaml).await.1
}

#[tokio::test]
async fn each_ends_within_its_limit_and_a_second() {
    let app = TestApp::start_with(&LIMITED).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    for (name, body) in HOSTILE {
        let url = hostile(&app, name, body).await;
        let before = time_of_workers(app.pid());
        let id = app.api.webhook(&url, &json!({"bad": true})).await;
        let message = until("the message ends", async || {
            let message = app.api.message(&id).await;
            matches!(
                message["status"].as_str(),
                Some("dead_letter" | "delivered")
            )
            .then_some(message)
        })
        .await;
        assert_eq!(message["status"], "dead_letter", "{name}: {message}");
        assert_eq!(message["error"]["kind"], "adapter", "{name}: {message}");
        // How long a busy machine lets it wait is no matter of the code's.
        let took = time_of_workers(app.pid()).saturating_sub(before);
        assert!(
            took < LIMIT + Duration::from_secs(1) + START_MARGIN,
            "{name}: {took:?} on a core"
        );
        // The next message of the same adapter finds a world as if nothing had been.
        let id = app.api.webhook(&url, &json!({"name": name})).await;
        app.api.message_becomes(&id, "delivered").await;
    }
    assert_eq!(target.arrivals(HOSTILE.len()).await.len(), HOSTILE.len());
}

#[tokio::test]
async fn other_messages_flow_while_many_hang() {
    let app = TestApp::start_with(&LIMITED).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let bad = hostile(
        &app,
        "stuck",
        "for (;;) { try { new Array(1e9).join('x'); } catch {} }",
    )
    .await;
    adapter(
        &app.api,
        "good",
        "transform",
        "const transform = (input) => ({ ...input, good: true })",
    )
    .await;
    let flow = |name: &str, rest: &str| {
        format!(
            r"flow: {name}
version: 1
source: {{trigger: webhook}}
target: {{connector: erp, endpoint: /in}}
{rest}"
        )
    };
    let (_, adapted) = app.api.deployed(&flow("adapted", "adapter: good\n")).await;
    let (_, plain) = app.api.deployed(&flow("plain", "")).await;
    let mut stuck = Vec::new();
    for _ in 0..100 {
        stuck.push(app.api.webhook(&bad, &json!({"bad": true})).await);
    }
    for number in 0..10 {
        app.api.webhook(&adapted, &json!({ "n": number })).await;
        app.api.webhook(&plain, &json!({ "n": number })).await;
    }
    // All through the same connector, long before the hundred have had their turns.
    let received = target.arrivals(20).await;
    assert_eq!(
        received
            .iter()
            .filter(|received| received.json()["good"] == true)
            .count(),
        10
    );
    let last = app.api.message(stuck.last().unwrap()).await;
    assert_ne!(last["status"], "dead_letter", "the others waited for it");
}

#[tokio::test]
async fn nothing_goes_from_one_message_to_the_next() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let code = "let counter = 0;
const seen = [];
function transform(input) {
  counter += 1;
  seen.push(input.n);
  globalThis.leaked = (globalThis.leaked || 0) + 1;
  Array.prototype.leaked = ([].leaked || 0) + 1;
  JSON.leaked = (JSON.leaked || 0) + 1;
  return { counter, seen: seen.length, global: leaked, list: [].leaked, json: JSON.leaked };
}";
    adapter(&app.api, "leaky", "transform", code).await;
    let yaml = r"flow: leaky
version: 1
source: {trigger: webhook}
adapter: leaky
target: {connector: erp, endpoint: /in}
";
    let (_, url) = app.api.deployed(yaml).await;
    for number in 0..20 {
        app.api.webhook(&url, &json!({ "n": number })).await;
    }
    for received in target.arrivals(20).await {
        assert_eq!(
            received.json(),
            json!({"counter": 1, "seen": 1, "global": 1, "list": 1, "json": 1})
        );
    }
}

#[tokio::test]
async fn a_worker_runs_code_of_one_environment_alone() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let mut urls = Vec::new();
    for environment in ["development", "production"] {
        let api = app.api.with_header("x-environment", environment);
        api.http_instance("erp", &target.url()).await;
        adapter(
            &api,
            "same",
            "transform",
            "const transform = (input) => input",
        )
        .await;
        let yaml = r"flow: same
version: 1
source: {trigger: webhook}
adapter: same
target: {connector: erp, endpoint: /in}
";
        urls.push((api.clone(), api.deployed(yaml).await.1));
    }
    // Those that checked the code are the control plane's.
    let others = workers(app.pid());
    let mut found = Vec::new();
    for (api, url) in urls.iter().cycle().take(4) {
        let id = api.webhook(url, &json!({})).await;
        api.message_becomes(&id, "delivered").await;
        found.push(
            workers(app.pid())
                .into_iter()
                .filter(|worker| !others.contains(worker))
                .count(),
        );
    }
    assert_eq!(
        found,
        [1, 2, 2, 2],
        "one for each environment, and they stay"
    );
}

#[tokio::test]
async fn a_killed_worker_is_replaced_and_no_message_notices() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let url = hostile(&app, "killed", "").await;
    for round in 1..=3 {
        let id = app.api.webhook(&url, &json!({ "round": round })).await;
        app.api.message_becomes(&id, "delivered").await;
        let workers = workers(app.pid());
        assert!(!workers.is_empty());
        for worker in workers {
            let killed = std::process::Command::new("kill")
                .args(["-9", &worker.to_string()])
                .status();
            assert!(killed.unwrap().success());
        }
    }
    assert_eq!(target.arrivals(3).await.len(), 3);
}

#[tokio::test]
async fn workers_end_with_the_service() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let url = hostile(&app, "orphan", "while (true);").await;
    let fine = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&fine, "delivered").await;
    app.api.webhook(&url, &json!({"bad": true})).await;
    let left = workers(app.pid());
    let begun = Instant::now();
    app.kill().await;
    until("the workers are gone", async || {
        left.iter().all(|pid| !is_worker(*pid)).then_some(())
    })
    .await;
    // Two limits of a second and the kernel's whole seconds; far below the deadline on any machine
    // that is not stopped.
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// The processes that run adapters for a service.
fn workers(service: u32) -> Vec<u32> {
    let children = std::fs::read_dir(format!("/proc/{service}/task"))
        .unwrap()
        .flat_map(|task| {
            let children = task.map(|task| {
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default()
            });
            let children = children.unwrap_or_default();
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        });
    children.filter(|pid| is_worker(*pid)).collect()
}

/// How long its workers have been on a core: those that are gone, and those that are there.
fn time_of_workers(service: u32) -> Duration {
    // Fields 14 to 17: of the process itself, then of its children that are gone, in hundredths of
    // a second.
    let ticks = |pid: u32, first: usize| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace();
        fields
            .skip(first - 3)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum()
    };
    let there: u64 = workers(service).into_iter().map(|pid| ticks(pid, 14)).sum();
    Duration::from_millis((ticks(service, 16) + there) * 10)
}

fn is_worker(pid: u32) -> bool {
    let command = std::fs::read(PathBuf::from(format!("/proc/{pid}/cmdline"))).unwrap_or_default();
    command
        .split(|byte| *byte == 0)
        .any(|argument| argument == b"adapter-worker")
}
