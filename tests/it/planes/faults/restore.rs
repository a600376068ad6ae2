//! The store restored from an older backup: nodes converge on the older set, also when nobody saw
//! it go back.

use std::time::{Duration, Instant};

use kanat_tests::split::Split;
use kanat_tests::{TestApp, until};

use super::versions::{ProbeFlow, at, deploy, flow, one_set};

/// How long nodes may take to run what a restored store says.
const CONVERGED: Duration = Duration::from_secs(10);

#[tokio::test]
async fn nodes_converge_on_the_older_set_of_a_restored_store() {
    let split = Split::new();
    let one = split.control_plane("one").await;
    let other = split.control_plane("other").await;
    let nodes = [
        split.node("a", &[&one]).await,
        split.node("b", &[&other]).await,
    ];
    let (witness, _) = ProbeFlow::start(&one.api).await;
    let (id, webhook) = one.api.deployed(&flow("orders", 1)).await;
    let backup = split.database.back_up().unwrap();
    let (epoch, generation, _) = one_set(&one.api, 2).await;
    deploy(&one.api, &id, &flow("orders", 2)).await;
    let (_, later) = other.api.deployed(&flow("later", 1)).await;
    for node in &nodes {
        assert_eq!(witness.ask(&node.api, &at(node, &webhook)).await.version, 2);
        witness.ask(&node.api, &at(node, &later)).await;
    }

    split.database.restore(&backup).unwrap();
    let restored = Instant::now();
    for node in &nodes {
        witness.runs(&node.api, &at(node, &webhook), 1).await;
        until("what was deployed after the backup is gone", || async {
            let answer = node
                .api
                .post(&at(node, &later), &serde_json::json!({}))
                .await;
            (answer.status == 404).then_some(())
        })
        .await;
    }
    let converged = restored.elapsed();
    println!(
        "2 nodes run the older set {} ms after the restore",
        converged.as_millis()
    );
    assert!(converged < CONVERGED, "{converged:?}");
    for control in [&one, &other] {
        // What was read before the restore cannot be compared with what is read after it.
        until(
            "the nodes are known to run the older generation under another epoch",
            || async {
                let (now, at, _) = one_set(&control.api, 2).await;
                (at == generation && now != epoch).then_some(())
            },
        )
        .await;
    }
    // It goes on from there, and a deploy says the truth again.
    deploy(&other.api, &id, &flow("orders", 3)).await;
    for node in &nodes {
        assert_eq!(witness.ask(&node.api, &at(node, &webhook)).await.version, 3);
    }
}

#[tokio::test]
async fn a_restored_store_that_reaches_the_same_generation_again_is_noticed() {
    let split = Split::new();
    let one = split.control_plane("one").await;
    let other = split.control_plane("other").await;
    let nodes = [
        split.node("a", &[&one]).await,
        split.node("b", &[&other]).await,
    ];
    let (witness, _) = ProbeFlow::start(&one.api).await;
    let (id, webhook) = one.api.deployed(&flow("orders", 1)).await;
    let backup = split.database.back_up().unwrap();
    deploy(&one.api, &id, &flow("orders", 2)).await;
    let (_, generation, set_hash) = one_set(&one.api, 2).await;

    // Neither sees what happens meanwhile, as when a restore is quicker than their next look.
    for control in [&one, &other] {
        control.signal("STOP").await;
    }
    split.database.restore(&backup).unwrap();
    let third = split.control_plane("third").await;
    third
        .api
        .put(
            &format!("/api/v1/flows/{id}"),
            &serde_json::json!({ "yamlConfig": flow("orders", 3) }),
        )
        .await;
    third
        .api
        .post(
            &format!("/api/v1/flows/{id}/deploy"),
            &serde_json::json!({}),
        )
        .await
        .expect(200);
    let looking = Instant::now();
    for control in [&one, &other] {
        control.signal("CONT").await;
    }
    for node in &nodes {
        witness.runs(&node.api, &at(node, &webhook), 3).await;
    }
    let converged = looking.elapsed();
    println!(
        "2 nodes run the restored set, of the same generation, after {} ms",
        converged.as_millis()
    );
    assert!(converged < CONVERGED, "{converged:?}");
    // What nodes run is told a moment after they run it; until then the restored store tells of the
    // time of its backup.
    until(
        "the nodes are known to run another set of the same generation",
        || async {
            let (_, now, now_hash) = one_set(&third.api, 2).await;
            (now == generation && now_hash != set_hash).then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn a_service_on_an_older_file_serves_what_is_in_it() {
    let mut app = TestApp::start().await;
    let (witness, _) = ProbeFlow::start(&app.api).await;
    let (id, url) = app.api.deployed(&flow("orders", 1)).await;
    let file = app.data_dir().join("config.db");
    let backup = app.data_dir().join("config.backup");
    assert_eq!(app.terminate().await, Some(0));
    std::fs::copy(&file, &backup).unwrap();
    app.restart().await;
    for version in [2, 3] {
        deploy(&app.api, &id, &flow("orders", version)).await;
    }
    assert_eq!(witness.ask(&app.api, &url).await.version, 3);

    assert_eq!(app.terminate().await, Some(0));
    for beside in ["config.db-wal", "config.db-shm"] {
        let _ = std::fs::remove_file(app.data_dir().join(beside));
    }
    std::fs::copy(&backup, &file).unwrap();
    app.restart().await;
    let restored = Instant::now();
    witness.runs(&app.api, &url, 1).await;
    println!(
        "the service runs the older set {} ms after its start",
        restored.elapsed().as_millis()
    );
    assert!(restored.elapsed() < CONVERGED);
    deploy(&app.api, &id, &flow("orders", 4)).await;
    assert_eq!(witness.ask(&app.api, &url).await.version, 4);
}
