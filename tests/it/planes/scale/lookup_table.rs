//! One of very many entries of a lookup table changes: its part goes over the wire, and all three
//! nodes look it up at once, also after a restart from their disks. `cargo xtask test` has ten
//! thousand entries; `cargo xtask soak` has a hundred thousand.

use std::time::{Duration, Instant};

use kanat_tests::relay::Relay;
use kanat_tests::rest::text;
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::{FakeTarget, Rest, soak, until};
use reqwest::multipart::{Form, Part};
use serde_json::json;

const ENTRIES: usize = 10_000;
const CHANGES: usize = 5;

/// How soon a change is live, where the machine has nothing else to do.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of a change of one entry that one node may receive.
const BYTES: u64 = 64 << 10;

const FLOW: &str = r"flow: regions
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  id: source.id
  region: source.customer | lookup(regions)
";

/// Number that `cargo xtask soak` asks for, or a small one.
fn how_many() -> usize {
    std::env::var("KANAT_SOAK_ENTRIES").map_or(ENTRIES, |entries| entries.parse().unwrap())
}

fn customer(n: usize) -> String {
    format!("customer-{n:06}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_of_very_many_entries_costs_one_part() {
    let split = Split::new();
    let mut control = split.control_plane("control").await;
    let target = FakeTarget::start().await;
    let api = control.api.clone();
    api.http_instance("erp", &target.url()).await;
    let table = api
        .post("/api/v1/lookup-tables", &json!({ "name": "regions" }))
        .await
        .expect(201);
    let table = format!("/api/v1/lookup-tables/{}", text(&table["id"]));
    let count = how_many();
    let begun = Instant::now();
    import(&api, &table, count).await;
    println!(
        "a table of {count} entries made in {} ms",
        begun.elapsed().as_millis()
    );
    let (_, webhook) = api.deployed(FLOW).await;

    let relay = Relay::start(control.base.strip_prefix("http://").unwrap()).await;
    let mut nodes = [
        split
            .node_with("a", &[], &[("KANAT_CONTROL_PLANE", &relay.url())])
            .await,
        split.node("b", &[&control]).await,
        split.node("c", &[&control]).await,
    ];
    for node in &nodes {
        node.becomes_ready().await;
    }

    let imported = until("the nodes run the table", || run_by(&api, nodes.len(), 1)).await;
    let mut took = Vec::new();
    let mut sent = Vec::new();
    for n in 1..=CHANGES {
        let entry = json!({ "key": customer(n * 97), "value": format!("region of change {n}") });
        let generation = imported + n as u64;
        let before = relay.sent();
        let begun = Instant::now();
        let path = format!("{table}/entries");
        let (answer, live) = tokio::join!(api.post(&path, &entry), async {
            until("the nodes have it", || {
                run_by(&api, nodes.len(), generation)
            })
            .await;
            begun.elapsed()
        });
        took.push(live);
        sent.push(relay.sent() - before);
        assert_eq!(answer.header("x-config-applied"), "");
        assert_eq!(answer.expect(201)["entries_count"], count);
        for node in &nodes {
            assert_eq!(
                region_of(&api, &target, node, &webhook, n).await,
                entry["value"],
                "the very next request has it"
            );
        }
    }
    took.sort_unstable();
    println!(
        "{CHANGES} changes of one entry: live on {} nodes after {} ms (median), {} ms (at most); \
         {} bytes to a node (at most)",
        nodes.len(),
        took[CHANGES / 2].as_millis(),
        took[CHANGES - 1].as_millis(),
        sent.iter().max().unwrap(),
    );
    assert!(sent.iter().all(|sent| *sent < BYTES), "{sent:?}");
    assert!(
        !soak::is_on() || took[CHANGES - 1] < CHANGE_TIMEOUT,
        "{took:?}"
    );

    // What a node has on its disk is the table as it was last.
    control.kill().await;
    nodes[1].kill().await;
    let begun = Instant::now();
    nodes[1].restart().await;
    nodes[1].becomes_ready().await;
    println!(
        "a node ready from its disk after {} ms",
        begun.elapsed().as_millis()
    );
    control.restart().await;
    assert_eq!(
        region_of(&api, &target, &nodes[1], &webhook, CHANGES).await,
        format!("region of change {CHANGES}")
    );
}

/// Returns the lowest generation that the nodes run, once each of them runs at least this one.
async fn run_by(api: &Rest, nodes: usize, generation: u64) -> Option<u64> {
    let listed = api.get("/api/v1/nodes").await.expect(200);
    let listed = listed["data"].as_array().unwrap();
    let run: Vec<_> = listed
        .iter()
        .filter_map(|node| node["generation"].as_u64())
        .filter(|running| *running >= generation)
        .collect();
    (run.len() == nodes).then(|| run.into_iter().min())?
}

async fn import(api: &Rest, table: &str, count: usize) {
    let rows = (0..count).map(|n| format!("{},region {}\n", customer(n), n % 50));
    let file =
        Part::text(format!("key,value\n{}", rows.collect::<String>())).file_name("regions.csv");
    let form = Form::new().part("file", file.mime_str("text/csv").unwrap());
    let imported = Rest::send(
        api.request("POST", &format!("{table}/import"))
            .multipart(form),
    )
    .await
    .expect(200);
    assert_eq!(imported["entries_count"], count);
}

/// Returns the value that `node` finds for the customer of a change.
async fn region_of(
    api: &Rest,
    target: &FakeTarget,
    node: &TestProcess,
    webhook: &str,
    change: usize,
) -> String {
    let order = json!({ "id": "SO-1", "customer": customer(change * 97) });
    let message = api
        .webhook(&format!("{}{webhook}", node.base), &order)
        .await;
    let arrived = api.message_becomes(&message, "delivered").await;
    assert!(!target.received().is_empty());
    text(&arrived["output"]["region"])
}
