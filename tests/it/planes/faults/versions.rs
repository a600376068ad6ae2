//! Flows that show at their target which version of them ran, and with which entries of a lookup
//! table: what a node serves, seen from outside.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kanat_tests::split::TestProcess;
use kanat_tests::target::ok;
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::{Value, json};

/// Versions that a message was run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunVersions {
    /// Version of the flow, which stands in three fields that agree.
    pub version: u64,
    /// Version of the table, which has it under two keys that change together.
    pub table: u64,
}

/// The target of the flows, which is the instance `erp`.
pub struct ProbeFlow {
    ran: Arc<Mutex<HashMap<u64, RunVersions>>>,
    next: AtomicU64,
    _target: FakeTarget,
}

impl ProbeFlow {
    /// Makes the instance `erp`, and the table `marks` with version 1.
    pub async fn start(api: &Rest) -> (Self, Table) {
        let ran = Arc::new(Mutex::new(HashMap::new()));
        let seen = Arc::clone(&ran);
        let target = FakeTarget::scripted(move |received, _| {
            let body = received.json();
            let number = |name: &str| {
                body[name]
                    .as_str()
                    .unwrap_or_else(|| panic!("{body}"))
                    .parse::<u64>()
                    .unwrap()
            };
            let told = [
                number("version"),
                received.header("x-version").parse().unwrap(),
            ];
            let version = received.path.rsplit('/').next().unwrap().parse().unwrap();
            assert_eq!(
                told, [version; 2],
                "one request, and not one version: {} {body}",
                received.path
            );
            assert_eq!(number("left"), number("right"), "half of a table: {body}");
            seen.lock().unwrap().insert(
                body["probe"].as_u64().unwrap(),
                RunVersions {
                    version,
                    table: number("left"),
                },
            );
            ok()
        })
        .await;
        api.http_instance("erp", &target.url()).await;
        let made = api
            .post("/api/v1/lookup-tables", &json!({ "name": "marks" }))
            .await
            .expect(201);
        let table = Table {
            path: format!(
                "/api/v1/lookup-tables/{}/entries",
                made["id"].as_str().unwrap()
            ),
        };
        api.put(&table.path, &table.entries(1)).await.expect(200);
        (
            Self {
                ran,
                next: AtomicU64::new(0),
                _target: target,
            },
            table,
        )
    }

    /// Sends the node a message, which it must take, and gives what it was run with.
    pub async fn ask(&self, node: &Rest, url: &str) -> RunVersions {
        match self.try_ask(node, url).await {
            Ok(ran) => ran,
            Err(refused) => panic!("a node refused a message: {refused}"),
        }
    }

    /// Sends a probe to a node that may refuse it, and returns its answer then.
    pub async fn try_ask(&self, node: &Rest, url: &str) -> Result<RunVersions, String> {
        let probe = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = Rest::try_send(node.http().post(url).json(&json!({ "probe": probe }))).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status != 202 {
            return Err(format!("{} {}", answer.status, answer.text));
        }
        Ok(until("what a node took is delivered", || async {
            self.ran.lock().unwrap().remove(&probe)
        })
        .await)
    }

    /// Waits until a message to the node is run with this version.
    pub async fn runs(&self, node: &Rest, url: &str, version: u64) {
        until(&format!("version {version} runs"), || async {
            let ran = self.try_ask(node, url).await.ok()?;
            (ran.version == version).then_some(())
        })
        .await;
    }
}

/// The lookup table `marks`.
pub struct Table {
    pub path: String,
}

impl Table {
    /// Entries of a version.
    pub fn entries(&self, version: u64) -> Value {
        let entry = |key: &str| json!({ "key": key, "value": version.to_string() });
        json!({ "entries": [entry("left"), entry("right")] })
    }
}

/// The definition of a flow that shows its version.
pub fn flow(name: &str, version: u64) -> String {
    format!(
        r#"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /{name}/{version}
  method: POST
  headers: {{ X-Version: "{version}" }}
mapping:
  probe: source.probe
  version: "'{version}'"
  left: "'left' | lookup(marks)"
  right: "'right' | lookup(marks)"
"#
    )
}

/// Makes the definition the flow's, and deploys it; gives the flow.
pub async fn deploy(api: &Rest, id: &str, yaml: &str) -> Value {
    api.put(
        &format!("/api/v1/flows/{id}"),
        &json!({ "yamlConfig": yaml }),
    )
    .await
    .expect(200);
    let deployed = api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await;
    assert_eq!(
        deployed.header("x-config-applied"),
        "",
        "every node has it: {}",
        deployed.text
    );
    deployed.expect(200)
}

/// Address of a webhook at a node; a control plane knows the path alone.
pub fn at(node: &TestProcess, webhook: &str) -> String {
    assert!(webhook.starts_with("/webhooks/receive/"), "{webhook}");
    format!("{}{webhook}", node.base)
}

/// Returns epoch, generation and set hash of each connected node, as a control plane lists them.
pub async fn sets(api: &Rest) -> Option<Vec<(String, u64, String)>> {
    let answer = Rest::try_send(api.request("GET", "/api/v1/nodes"))
        .await
        .ok()
        .filter(|answer| answer.status == 200)?;
    let nodes = answer.json();
    let connected = nodes["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["status"] == "connected");
    let set = |node: &Value| {
        let text = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
        (
            text("epoch"),
            node["generation"].as_u64().unwrap_or_default(),
            text("setHash"),
        )
    };
    Some(connected.map(set).collect())
}

/// Waits until so many nodes are connected and all run one set, and gives it.
pub async fn one_set(api: &Rest, nodes: usize) -> (String, u64, String) {
    until("all nodes run one set", || async {
        let sets = sets(api).await?;
        (sets.len() == nodes && !sets[0].2.is_empty() && sets.iter().all(|set| *set == sets[0]))
            .then(|| sets[0].clone())
    })
    .await
}
