//! One of very many entries of a lookup table changes: what goes over the wire is that entry, to
//! nodes that take it so, and all three of them look it up at once, also after a restart from their
//! disks. A build of before is there all the time: it gets the table whole, and nobody waits for
//! that. `cargo xtask test` has ten thousand entries; `cargo xtask soak` has a hundred thousand.

use std::time::{Duration, Instant};

use kanat_tests::fleet::{Fleet, SIMULATED};
use kanat_tests::relay::Relay;
use kanat_tests::rest::text;
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::{FakeTarget, Rest, soak, until};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

const ENTRIES: usize = 10_000;
const CHANGES: usize = 5;

/// How soon a change is live, where the machine has nothing else to do.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of a change of one entry that one node may receive.
const BYTES: u64 = 1_000;

const FLOW: &str = "flow: regions
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
async fn one_change_of_very_many_entries_costs_one_entry() {
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
    let mut older = Fleet::new(&control.base);
    older.join();
    older.runs(1).await;
    for node in &nodes {
        node.becomes_ready().await;
    }

    let imported = older.reports()[0].generation.unwrap();
    let mut took = Vec::new();
    let mut older_took = Vec::new();
    let mut sent = Vec::new();
    for n in 1..=CHANGES {
        let entry = json!({ "key": customer(n * 97), "value": format!("region of change {n}") });
        let generation = imported + n as u64;
        let before = relay.sent();
        let begun = Instant::now();
        let path = format!("{table}/entries");
        let (answer, live, everywhere) = tokio::join!(
            api.post(&path, &entry),
            async {
                until("the nodes of this build have it", || {
                    run_by(&api, nodes.len(), generation)
                })
                .await;
                begun.elapsed()
            },
            async {
                older.runs(generation).await;
                begun.elapsed()
            },
        );
        took.push(live);
        older_took.push(everywhere);
        sent.push(relay.sent() - before);
        // "pending" would also mean that the build of before has not got it yet.
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
    let whole = older.reports()[0].delta_bytes;
    assert!(
        whole > 20 * count,
        "a build of before gets the table whole: {whole} bytes"
    );
    took.sort_unstable();
    older_took.sort_unstable();
    println!(
        "{CHANGES} changes of one entry: live on {} nodes after {} ms (median), {} ms (at most); \
         {} bytes to a node (at most); on a build of before after {} ms (median), {} ms (at \
         most), {} KiB each",
        nodes.len(),
        took[CHANGES / 2].as_millis(),
        took[CHANGES - 1].as_millis(),
        sent.iter().max().unwrap(),
        older_took[CHANGES / 2].as_millis(),
        older_took[CHANGES - 1].as_millis(),
        whole >> 10,
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

/// Returns `Some` once as many nodes of this build run the generation.
async fn run_by(api: &Rest, nodes: usize, generation: u64) -> Option<()> {
    let listed = api.get("/api/v1/nodes").await.expect(200);
    let run = |node: &Value| {
        node["version"] != SIMULATED && node["generation"].as_u64() >= Some(generation)
    };
    let run = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| run(node))
        .count();
    (run == nodes).then_some(())
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
