//! Access tokens that are renewed ahead of their end, and those that a provider refuses.

use super::*;

#[tokio::test]
async fn tokens_are_renewed_ahead_of_their_end_and_reach_the_nodes() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(5).await;
    instance(&app, &provider.config()).await;
    connect(&app, &provider).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let first = provider.access_token();
    until("the provider gave another token", || async {
        (provider.access_token() != first).then_some(())
    })
    .await;
    until("calls carry it", || async {
        let id = app.api.webhook(&url, &json!({})).await;
        let ended = until("the message ends", || async {
            let message = app.api.message(&id).await;
            ["delivered", "dead_letter"]
                .contains(&message["status"].as_str().unwrap())
                .then_some(message)
        });
        (ended.await["status"] == "delivered").then_some(())
    })
    .await;
    assert!(
        provider.grants()[1..]
            .iter()
            .all(|grant| grant == "refresh_token"),
        "{:?}",
        provider.grants()
    );
}

#[tokio::test]
async fn a_refused_renewal_makes_the_instance_fail_until_it_is_connected_anew() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(2).await;
    let id = instance(&app, &provider.config()).await;
    connect(&app, &provider).await;
    provider.renewal(Renewal::Refused);
    let failing = until("the instance fails", || async {
        let seen = shown(&app, &id).await;
        (seen["health"]["status"] == "failing").then_some(seen)
    })
    .await;
    assert_eq!(failing["authorization"]["status"], "refused");
    assert!(
        failing["authorization"]["error"]
            .as_str()
            .unwrap()
            .contains("the grant was revoked"),
        "{failing}"
    );
    let asked = provider.grants().len();
    provider.renewal(Renewal::Granted);
    connect(&app, &provider).await;
    let history = app
        .api
        .get(&format!("/api/v1/connectors/instances/{id}/health"))
        .await
        .expect(200);
    let states: Vec<_> = history["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["status"].clone())
        .collect();
    assert_eq!(states, ["healthy", "failing", "healthy"]);
    // After the refusal nobody asked again.
    assert_eq!(provider.grants()[asked], "authorization_code");
}

#[tokio::test]
async fn nobody_waits_for_a_token_that_its_provider_refuses_to_give() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let id = instance(&app, &provider.config()).await;
    connect(&app, &provider).await;
    let (_, url) = app.api.deployed(FLOW).await;
    provider.renewal(Renewal::Refused);
    provider.revoke();
    let order = app.api.webhook(&url, &json!({})).await;
    let order = app.api.message_becomes(&order, "dead_letter").await;
    // The answer stands: after a wait for another token it would be said that none has come.
    assert_eq!(order["error"]["kind"], "status", "{order}");
    let told = order["error"]["message"].as_str().unwrap();
    assert!(
        told.contains(" answered 401") && !told.contains("no new access token"),
        "{told}"
    );
    assert_eq!(shown(&app, &id).await["authorization"]["status"], "refused");
    assert_eq!(provider.grants(), ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn a_provider_that_is_away_is_asked_again() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(2).await;
    let id = instance(&app, &provider.config()).await;
    provider.renewal(Renewal::Away);
    connect(&app, &provider).await;
    let (_, url) = app.api.deployed(FLOW).await;
    until("the tokens are late", || async {
        (shown(&app, &id).await["health"]["status"] == "degraded").then_some(())
    })
    .await;
    // What has ended is not tried.
    let late = app.api.webhook(&url, &json!({})).await;
    let late = app.api.message_becomes(&late, "dead_letter").await;
    assert_eq!(late["error"]["kind"], "credentials", "{late}");
    assert!(
        late["error"]["message"]
            .as_str()
            .unwrap()
            .contains("has ended, and no new one has come"),
        "{late}"
    );
    assert!(
        provider
            .target
            .received()
            .iter()
            .all(|call| call.path == "/token")
    );
    provider.renewal(Renewal::Granted);
    until("they came", || async {
        (shown(&app, &id).await["health"]["status"] == "healthy").then_some(())
    })
    .await;
}

const POLL: &str = r#"
flow: asks-the-provider
version: 1
source:
  connector: crm
  trigger: poll
  poll: { url: "{{ instance.base_url }}/orders", records_path: data, interval: 1h }
target: { connector: crm, endpoint: /polled, method: POST }
on_error: { retry: 0x fixed(1s) }
"#;

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all_and_what_was_refused_is_called_again() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    instance(&app, &provider.config()).await;
    connect(&app, &provider).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let first = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&first, "delivered").await;
    provider.revoke();
    let body = json!({});
    let orders = futures::future::join_all((0..20).map(|_| app.api.webhook(&url, &body))).await;
    app.api.deployed(POLL).await;
    for id in &orders {
        let order = app.api.message_becomes(id, "delivered").await;
        assert_eq!(order["attempts"], 1, "{order}");
    }
    until("the poll has its record", || async {
        provider
            .target
            .received()
            .iter()
            .any(|call| call.path == "/api/polled")
            .then_some(())
    })
    .await;
    assert_eq!(provider.grants(), ["authorization_code", "refresh_token"]);
    let order = app.api.message(&orders[0]).await;
    let calls: Vec<_> = order["trace"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| record["stage"] == "delivery")
        .collect();
    let statuses: Vec<_> = calls
        .iter()
        .map(|call| call["response"]["status"].clone())
        .collect();
    assert!(
        statuses == [json!(401), json!(200)] || statuses == [json!(200)],
        "{order}"
    );
    assert!(
        !order.to_string().contains("s3cret") && !app.log().contains("s3cret"),
        "{order}"
    );

    // A provider that refuses what it gave a moment ago is not asked again at once.
    provider.revoke();
    let refused = app.api.webhook(&url, &json!({})).await;
    let refused = app.api.message_becomes(&refused, "dead_letter").await;
    assert_eq!(refused["error"]["kind"], "status", "{refused}");
    assert_eq!(provider.grants().len(), 2);
}

#[tokio::test]
async fn token_endpoints_that_hang_hold_up_nobody_elses_tokens() {
    let app = TestApp::start().await;
    let hanging = FakeTarget::scripted(|_, _| Reply::Hang).await;
    let provider = OauthProvider::start(3600).await;
    let config = |url: &str| {
        let mut config = provider.config();
        config["grant_type"] = "client_credentials".into();
        config["token_url"] = format!("{url}/token").into();
        config
    };
    app.api
        .post("/api/v1/environments", &json!({"name": "elsewhere"}))
        .await
        .expect(201);
    let elsewhere = app.api.with_header("x-environment", "elsewhere");
    // More than an environment has renewed at one time.
    let made = (0..9).map(async |n| {
        let name = format!("hanging-{n}");
        let config = config(&hanging.url());
        let body = json!({"catalogId": "oauth2", "name": name, "config": config});
        let made = app.api.post("/api/v1/connectors/instances", &body).await;
        made.expect(201);
    });
    futures::future::join_all(made).await;
    hanging.arrivals(8).await;
    let config = config(&provider.target.url());
    let body = json!({"catalogId": "oauth2", "name": "crm", "config": config});
    let made = elsewhere
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
    let path = format!(
        "/api/v1/connectors/instances/{}",
        made["id"].as_str().unwrap()
    );
    let shown = elsewhere.get(&path).await.expect(200);
    assert_eq!(shown["authorization"]["status"], "connected", "{shown}");
}
