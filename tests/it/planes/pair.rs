//! Two control planes and two nodes on one PostgreSQL, of which one each is killed: batch jobs and
//! steps go on, and one of the two renews the tokens of connectors.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_tests::oauth_provider::{OauthProvider, Renewal};
use kanat_tests::split::Split;
use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::json;

use crate::{batch_job, steps};

const RECORDS: usize = 300;

#[tokio::test]
async fn a_pair_of_each_loses_no_record_no_step_and_no_token() {
    let split = Split::new();
    let mut controls = [
        split.control_plane("one").await,
        split.control_plane("two").await,
    ];
    let lease = [("KANAT_LEASE_SECONDS", "5")];
    let mut nodes = [
        split
            .node_with("a", &[&controls[0], &controls[1]], &lease)
            .await,
        split
            .node_with("b", &[&controls[1], &controls[0]], &lease)
            .await,
    ];
    let healed = Arc::new(AtomicBool::new(false));
    let desk = {
        let healed = Arc::clone(&healed);
        FakeTarget::scripted(move |_, _| {
            if healed.load(Ordering::SeqCst) {
                steps::made(r#"{"ticket":{"id":1}}"#)
            } else {
                status(502)
            }
        })
        .await
    };
    let mail = FakeTarget::scripted(|_, _| steps::made(r#"{"job_id":"j-1"}"#)).await;
    let erp = FakeTarget::scripted(|_, _| ok()).await;
    let api = &controls[0].api;
    steps::instances(api, &desk, &mail, &erp).await;
    let (_, webhook) = api
        .deployed(&steps::FLOW.replace("5x fixed(20ms)", "90x fixed(200ms)"))
        .await;
    let (import, _) = api.deployed(batch_job::FLOW).await;
    for node in &nodes {
        node.becomes_ready().await;
    }

    one_renews([&controls[0].api, &controls[1].api]).await;

    let customer = json!({"name": "Ann", "email": "a@b.example"});
    let message = api
        .webhook(&format!("{}{webhook}", nodes[0].base), &customer)
        .await;
    desk.arrivals(1).await;
    let job = batch_job::start(api, &import, &batch_job::records(RECORDS), 8).await;
    erp.arrivals(60).await;
    nodes[0].kill().await;
    erp.arrivals(120).await;
    controls[0].kill().await;
    healed.store(true, Ordering::SeqCst);

    let api = &controls[1].api;
    let done = batch_job::finished(api, &job).await;
    assert_eq!(&done["succeeded"], &json!(RECORDS), "{done}");
    assert_eq!(&done["failed"], &json!(0), "{done}");
    api.message_becomes(&message, "delivered").await;
    assert_eq!(
        mail.received().len(),
        1,
        "a step that succeeded is not called again, at whatever node"
    );
    let mut calls: HashMap<String, (u64, usize)> = HashMap::new();
    for call in erp.received().iter().filter(|call| call.path == "/in") {
        let n = call.json()["n"].as_u64().unwrap();
        calls
            .entry(call.header("idempotency-key").to_owned())
            .or_insert((n, 0))
            .1 += 1;
    }
    let mut numbers: Vec<u64> = calls.values().map(|(n, _)| *n).collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (0..RECORDS as u64).collect::<Vec<_>>(),
        "one message a record"
    );
    let again: usize = calls.values().map(|(_, calls)| calls - 1).sum();
    assert!(
        again <= 8,
        "{again} records were sent again, and 8 were under way when a node died"
    );
}

/// The provider takes each refresh token once: if both asked with one, the second would be refused,
/// and the instance fail.
async fn one_renews(apis: [&Rest; 2]) {
    let provider = OauthProvider::start(2).await;
    let body = json!({"catalogId": "oauth2", "name": "crm", "config": provider.config()});
    let id = apis[0]
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201)["id"]
        .clone();
    let path = format!("/api/v1/connectors/instances/{}", id.as_str().unwrap());
    let page = format!("{}/inbound/oauth/callback", apis[0].base)
        .replace(':', "%3A")
        .replace('/', "%2F");
    let start = format!(
        "/api/v1/connectors/oauth/start?catalogId=oauth2&instanceName=crm&redirectUri={page}"
    );
    let started = apis[1].get(&start).await.expect(200);
    let back = provider.consent(started["authorizationUrl"].as_str().unwrap());
    Rest::send(apis[0].without_key().request("GET", back.as_str()))
        .await
        .expect(200);
    until("the tokens were renewed a few times", || async {
        (provider.grants().len() > 3).then_some(())
    })
    .await;
    for api in apis {
        let seen = api.get(&path).await.expect(200);
        assert_eq!(&seen["authorization"]["status"], &json!("connected"));
        assert_eq!(&seen["health"]["status"], &json!("healthy"));
    }
    assert!(
        provider.grants()[1..]
            .iter()
            .all(|grant| grant == "refresh_token"),
        "{:?}",
        provider.grants()
    );
    provider.renewal(Renewal::Refused);
    for api in apis {
        until("the refused instance fails", || async {
            let seen = api.get(&path).await.expect(200);
            let now = (
                seen["authorization"]["status"].clone(),
                seen["health"]["status"].clone(),
            );
            (now == (json!("refused"), json!("failing"))).then_some(())
        })
        .await;
    }
}
