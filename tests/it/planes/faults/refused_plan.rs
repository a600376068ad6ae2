//! A plan that a node must refuse, because its build is an older one: only that node keeps the
//! version before, only of that flow; the reason shows; the next version that it can run heals it.

use std::time::{Duration, Instant};

use kanat_tests::split::Split;
use kanat_tests::{soak, until};
use serde_json::{Value, json};

use super::versions::{ProbeFlow, at, deploy, flow};

/// A build that has no transform of that name.
const OLDER: (&str, &str) = ("KANAT_FAILPOINT", "node.build=0.0.9,plans.lacks=base64");

const ROUNDS: u64 = 5;

#[tokio::test]
async fn only_the_node_that_must_refuse_a_plan_keeps_the_version_before_and_says_why() {
    let split = Split::new();
    let one = split.control_plane("one").await;
    let other = split.control_plane("other").await;
    let older = split.node_with("older", &[&one], &[OLDER]).await;
    let newer = [
        split.node("a", &[&one]).await,
        split.node("b", &[&other]).await,
    ];
    let (witness, _) = ProbeFlow::start(&one.api).await;
    let (id, orders) = one.api.deployed(&flow("orders", 1)).await;
    let (beside_id, beside) = one.api.deployed(&flow("beside", 1)).await;
    let older_id = until("the older build is listed", || async {
        of_build(&one.api, "0.0.9").await
    })
    .await["id"]
        .clone();
    let mut visible = Vec::new();
    for round in 0..ROUNDS {
        let good = round * 2 + 1;
        let refused = good + 1;
        let begun = Instant::now();
        let yaml = flow("orders", refused) + "  encoded: \"'x' | base64\"\n";
        let deployed = deploy(&other.api, &id, &yaml).await;
        // Both control planes tell, also the one that the node is not connected to, and the
        // deploy's own answer does.
        let reason = until("the reason shows", || async {
            let rejected = of_build(&one.api, "0.0.9").await?["rejected"].clone();
            let elsewhere = of_build(&other.api, "0.0.9").await?["rejected"].clone();
            (rejected != json!([]) && rejected == elsewhere).then_some(rejected)
        })
        .await;
        visible.push(begun.elapsed());
        let message = "this build has no base64";
        assert_eq!(
            reason,
            json!([{ "resource": format!("flow/{id}"), "message": message }])
        );
        assert_eq!(
            deployed["rejected"],
            json!([{ "nodeId": older_id, "message": message }])
        );

        let again = deploy(&one.api, &id, &yaml).await;
        assert_eq!(again["version"], deployed["version"], "it makes no version");
        assert_eq!(again["rejected"], deployed["rejected"]);
        let refusals = older.metric("kanat_plan_resources_refused_total").await as u64;
        assert_eq!(
            refusals,
            2 * (round + 1),
            "it is pushed again to the node that refused it"
        );

        deploy(&other.api, &beside_id, &flow("beside", refused)).await;
        assert_eq!(
            witness.ask(&older.api, &at(&older, &orders)).await.version,
            good,
            "it keeps the version before"
        );
        assert_eq!(
            witness.ask(&older.api, &at(&older, &beside)).await.version,
            refused,
            "of that flow alone"
        );
        for node in &newer {
            assert_eq!(
                witness.ask(&node.api, &at(node, &orders)).await.version,
                refused,
                "on that node alone"
            );
            assert_eq!(
                witness.ask(&node.api, &at(node, &beside)).await.version,
                refused
            );
        }

        let healed = deploy(&one.api, &id, &flow("orders", refused + 1)).await;
        assert_eq!(healed["rejected"], json!([]));
        for node in newer.iter().chain([&older]) {
            assert_eq!(
                witness.ask(&node.api, &at(node, &orders)).await.version,
                refused + 1
            );
        }
        for api in [&one.api, &other.api] {
            until("nothing is refused any more", || async {
                (of_build(api, "0.0.9").await?["rejected"] == json!([])).then_some(())
            })
            .await;
        }
    }
    visible.sort_unstable();
    let median = visible[visible.len() / 2];
    let longest = visible[visible.len() - 1];
    println!(
        "{ROUNDS} plans refused by 1 of 3 nodes: the reason shows after {} ms (median), {} ms at \
         most",
        median.as_millis(),
        longest.as_millis()
    );
    let most = Duration::from_secs(if soak::is_on() { 1 } else { 5 });
    assert!(
        median < Duration::from_secs(1) && longest < most,
        "{visible:?}"
    );
}

/// The node of that build, as a control plane lists it.
async fn of_build(api: &kanat_tests::Rest, build: &str) -> Option<Value> {
    let nodes = api.get("/api/v1/nodes").await.expect(200);
    nodes["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|node| node["version"] == build)
        .cloned()
}
