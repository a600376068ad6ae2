//! A replay is a new message with the same payload, through the flow as it is deployed now.

use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

#[tokio::test]
async fn a_replay_runs_under_the_deployed_version_and_names_its_original() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r"flow: again
version: 1
ordering_key: source.word
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  word: source.word
";
    let (flow, url) = app.api.deployed(yaml).await;
    let first = app.api.webhook(&url, &json!({"word": "moin"})).await;
    app.api.message_becomes(&first, "delivered").await;

    let changed = yaml.replace("source.word", "source.word | uppercase");
    app.api
        .put(
            &format!("/api/v1/flows/{flow}"),
            &json!({ "yamlConfig": changed }),
        )
        .await
        .expect(200);
    app.api
        .post(&format!("/api/v1/flows/{flow}/deploy"), &json!({}))
        .await
        .expect(200);
    let answer = app
        .api
        .post(&format!("/api/v1/messages/{first}/replay"), &json!({}))
        .await
        .expect(202);
    assert_eq!(answer["replayOf"], json!(first));
    let second = answer["messageId"].as_str().unwrap();
    assert_ne!(second, first);
    let replayed = app.api.message_becomes(second, "delivered").await;
    assert_eq!(&replayed["replayOf"], &json!(first));
    assert_eq!(&replayed["flowVersion"], &json!(2));
    assert_eq!(replayed["trigger"], "replay");
    let original = app.api.message(&first).await;
    assert_eq!(replayed["maxAttempts"], original["maxAttempts"]);
    assert_eq!(replayed["payload"], json!({"word": "moin"}));
    assert_eq!(original["orderingKey"], "moin");
    assert_eq!(replayed["orderingKey"], "MOIN", "the key of version 2");
    let bodies: Vec<_> = target
        .received()
        .iter()
        .map(kanat_tests::target::ReceivedRequest::json)
        .collect();
    assert_eq!(bodies, [json!({"word": "moin"}), json!({"word": "MOIN"})]);

    // Another replay is another message. A paused flow holds it.
    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let answer = app
        .api
        .post(&format!("/api/v1/messages/{first}/replay"), &json!({}))
        .await
        .expect(202);
    let third = answer["messageId"].as_str().unwrap();
    assert_ne!(third, second);
    assert_eq!(app.api.message(third).await["status"], "held");
}

#[tokio::test]
async fn replays_in_bulk_take_what_the_filter_finds_whatever_became_of_it() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|received, _| {
        if received.json()["n"] == 1 {
            status(400)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r"flow: many
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
on_error:
  retry: 0x fixed(1s)
";
    let (flow, url) = app.api.deployed(yaml).await;
    let mut ids = Vec::new();
    for (n, ended) in [(0, "delivered"), (1, "dead_letter"), (2, "delivered")] {
        let id = app.api.webhook(&url, &json!({ "n": n })).await;
        app.api.message_becomes(&id, ended).await;
        ids.push(id);
    }
    let replay = async |filter: Value| {
        app.api
            .post("/api/v1/messages/replay", &filter)
            .await
            .expect(202)
    };
    let dead = replay(json!({"flowId": flow, "status": "dead_letter"})).await;
    assert_eq!(&dead["count"], &json!(1));
    assert_eq!(dead["messageIds"].as_array().unwrap().len(), 1);
    let named = replay(json!({"flowId": flow, "ids": [ids[0], ids[2]]})).await;
    assert_eq!(named["count"], 2);
    for id in named["messageIds"].as_array().unwrap() {
        let message = app
            .api
            .message_becomes(id.as_str().unwrap(), "delivered")
            .await;
        assert!(
            [&ids[0], &ids[2]].contains(&&message["replayOf"].as_str().unwrap().to_owned()),
            "{message}"
        );
    }
    // The oldest is replayed first.
    let all = replay(json!({ "flowId": flow })).await;
    assert_eq!(all["count"], 6);
    for (id, original) in all["messageIds"].as_array().unwrap().iter().zip(&ids) {
        let message = app.api.message(id.as_str().unwrap()).await;
        assert_eq!(message["replayOf"], json!(original));
    }
    let nothing = app
        .api
        .post("/api/v1/messages/replay", &json!({"status": "delivered"}))
        .await;
    assert_eq!(
        nothing.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "flowId"
    );
}
