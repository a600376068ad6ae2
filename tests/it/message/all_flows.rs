//! `GET /messages?flowId=-`: messages over all flows of an environment, and `kanat logs` and
//! `message list` of them.

use kanat_tests::cli::Cli;
use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

fn flow(name: &str) -> String {
    crate::webhook::passthrough(name) + "on_error: { retry: 0x fixed(1s) }\n"
}

fn ids(body: &Value) -> Vec<&str> {
    body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn failures_of_all_flows_are_found_without_naming_one() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|received, _| {
        if received.json()["n"] == 1 {
            status(500)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (orders, orders_url) = app.api.deployed(&flow("orders")).await;
    let (_, invoices_url) = app.api.deployed(&flow("invoices")).await;
    let mut sent = Vec::new();
    for (url, n) in [(&orders_url, 1), (&invoices_url, 2), (&invoices_url, 1)] {
        let id = app
            .api
            .webhook(url, &json!({"n": n, "text": "say \"q\" now"}))
            .await;
        app.api
            .message_becomes(&id, if n == 1 { "dead_letter" } else { "delivered" })
            .await;
        sent.insert(0, id);
    }
    let list = async |query: &str| {
        app.api
            .get(&format!("/api/v1/messages?{query}"))
            .await
            .expect(200)
    };
    let all = list("flowId=-").await;
    assert_eq!(
        ids(&all),
        sent.iter().map(String::as_str).collect::<Vec<_>>()
    );
    assert_eq!(&all["pagination"]["total"], &json!(3));
    let failing = list("flowId=-&status=dead_letter&status=retrying").await;
    assert_eq!(ids(&failing), [sent[0].as_str(), &sent[2]]);
    let of_one = list(&format!(
        "flowId={orders}&status=dead_letter&status=retrying"
    ))
    .await;
    assert_eq!(ids(&of_one), [sent[2].as_str()]);
    assert_eq!(
        ids(&list("flowId=-&search=say%20%22q%22&limit=1").await),
        [sent[0].as_str()]
    );
    assert_eq!(ids(&list("flowId=-&since=2100-01-01").await), [""; 0]);
    let next = list("flowId=-&limit=2").await["pagination"]["nextCursor"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        ids(&list(&format!("flowId=-&limit=2&cursor={next}")).await),
        [sent[2].as_str()]
    );
    let production = app.api.with_header("x-environment", "production");
    assert_eq!(
        production
            .get("/api/v1/messages?flowId=-")
            .await
            .expect(200)["data"],
        json!([])
    );
    app.api
        .get("/api/v1/messages?flowId=flw_nobody")
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .get("/api/v1/messages/stream?flowId=flw_nobody")
        .await
        .expect_error(404, "NOT_FOUND");
    for verb in ["retry", "replay"] {
        let bulk = app
            .api
            .post(
                &format!("/api/v1/messages/{verb}"),
                &json!({"flowId": "flw_nobody"}),
            )
            .await;
        bulk.expect_error(404, "NOT_FOUND");
    }
    let bulk = app
        .api
        .post("/api/v1/messages/replay", &json!({"flowId": "-"}))
        .await;
    assert_eq!(
        bulk.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "flowId"
    );

    let cli = Cli::of(&app);
    let logs = cli
        .run(&["logs", "--failed", "--since", "1h"])
        .await
        .expect();
    let lines: Vec<_> = logs.lines().collect();
    assert_eq!(lines.len(), 2, "{logs}");
    assert!(
        lines[0].contains("orders") && lines[0].contains(&sent[2]),
        "{logs}"
    );
    assert!(
        lines[1].contains("invoices") && lines[1].contains(&sent[0]),
        "{logs}"
    );
    let listed = cli.run(&["message", "list", "--failed"]).await.expect();
    assert!(
        listed.contains("orders") && listed.contains("invoices") && !listed.contains(&sent[1]),
        "{listed}"
    );
    let shown = cli.run(&["message", "show", &sent[1]]).await.expect();
    assert!(
        shown.contains(&format!("POST {}/in", target.url())),
        "{shown}"
    );
}

#[tokio::test]
async fn the_messages_of_a_deleted_flow_are_still_listed() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, url) = app.api.deployed(&flow("gone")).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    app.api.delete(&format!("/api/v1/flows/{id}")).await;
    let left = app
        .api
        .get(&format!("/api/v1/messages?flowId={id}"))
        .await
        .expect(200);
    assert_eq!(ids(&left), [message.as_str()]);
}
