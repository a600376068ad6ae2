//! `GET /connectors/oauth/start`, `GET /connectors/oauth/callback`, `GET /inbound/oauth/callback`:
//! a person connects an instance, nodes call with its token, and the token is renewed ahead of its
//! end.

mod renewal;

use base64::Engine;
use kanat_tests::oauth_provider::{CLIENT_SECRET, OauthProvider, Renewal};
use kanat_tests::target::Reply;
use kanat_tests::{Answer, FakeTarget, Rest, TestApp, until};
use serde_json::{Value, json};

const FLOW: &str = r"
flow: to-the-provider
version: 1
source: { trigger: webhook }
target: { connector: crm, endpoint: /orders, method: POST }
on_error: { retry: 0x fixed(1s) }
";

async fn instance(app: &TestApp, config: &Value) -> String {
    let body = json!({"catalogId": "oauth2", "name": "crm", "config": config});
    kanat_tests::rest::text(
        &app.api
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201)["id"],
    )
}

async fn shown(app: &TestApp, id: &str) -> Value {
    app.api
        .get(&format!("/api/v1/connectors/instances/{id}"))
        .await
        .expect(200)
}

async fn start(app: &TestApp, rest: &str) -> Answer {
    app.api
        .get(&format!(
            "/api/v1/connectors/oauth/start?catalogId=oauth2&instanceName=crm{rest}"
        ))
        .await
}

/// A person consents, and the browser goes where the provider sends it: without any credential of
/// ours.
async fn connect(app: &TestApp, provider: &OauthProvider) -> Value {
    let started = start(app, "").await.expect(200);
    let back = provider.consent(started["authorizationUrl"].as_str().unwrap());
    assert_eq!(back.path(), "/inbound/oauth/callback");
    Rest::send(app.api.without_key().request("GET", back.as_str()))
        .await
        .expect(200)
}

#[tokio::test]
async fn a_person_connects_an_instance_and_calls_carry_its_token() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let id = instance(&app, &provider.config()).await;
    assert_eq!(
        shown(&app, &id).await["authorization"],
        json!({"status": "missing"})
    );
    let (flow, url) = app.api.deployed(FLOW).await;
    let early = app.api.webhook(&url, &json!({})).await;
    let early = app.api.message_becomes(&early, "dead_letter").await;
    assert_eq!(early["error"]["kind"], "credentials", "{early}");
    assert!(
        early["error"]["message"]
            .as_str()
            .unwrap()
            .contains("connect it by OAuth2 first"),
        "{early}"
    );

    let connected = connect(&app, &provider).await;
    assert_eq!(&connected["instanceId"], &json!(id));
    assert_eq!(&connected["status"], &json!("connected"));
    let seen = shown(&app, &id).await;
    assert_eq!(seen["authorization"]["status"], "connected");
    assert_eq!(seen["health"]["status"], "healthy");
    let order = app.api.webhook(&url, &json!({"order": 1})).await;
    let order = app.api.message_becomes(&order, "delivered").await;
    let calls: Vec<_> = provider
        .target
        .received()
        .into_iter()
        .filter(|call| call.path == "/api/orders")
        .collect();
    assert_eq!(calls.len(), 1);
    let tested = app
        .api
        .post(
            &format!("/api/v1/connectors/instances/{id}/test"),
            &json!({}),
        )
        .await
        .expect(200);
    assert_eq!(tested["ok"], true, "{tested}");
    let test = format!("/api/v1/flows/{flow}/test");
    let test = app
        .api
        .post(&test, &json!({"sampleData": {"order": 2}}))
        .await;
    let test = test.expect(200);
    let delivery = test["trace"].as_array().unwrap().last().unwrap();
    let headers = &delivery["request"]["headers"];
    assert_eq!(headers["authorization"], "********", "{test}");

    for text in [
        order.to_string(),
        seen.to_string(),
        connected.to_string(),
        test.to_string(),
        app.log(),
    ] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_state_is_good_once_and_for_its_account() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    instance(&app, &provider.config()).await;
    let page = "https://app.example/done?tab=1";
    let started = start(&app, &format!("&redirectUri={}", page.replace('?', "%3F")))
        .await
        .expect(200);
    let back = provider.consent(started["authorizationUrl"].as_str().unwrap());
    assert!(back.as_str().starts_with(page), "{back}");
    let callback = format!(
        "/api/v1/connectors/oauth/callback?{}",
        back.query().unwrap().replace("tab=1&", "")
    );
    app.api
        .without_key()
        .get(&callback)
        .await
        .expect_error(401, "UNAUTHENTICATED");
    assert_eq!(app.api.get(&callback).await.expect(200)["name"], "crm");
    app.api
        .get(&callback)
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    for state in ["", "made-up", "AAAA"] {
        let path = format!("/inbound/oauth/callback?code=x&state={state}");
        app.api
            .without_key()
            .get(&path)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
    }
    assert_eq!(provider.grants(), ["authorization_code"]);
}

#[tokio::test]
async fn an_instance_that_cannot_be_connected_is_refused_with_the_reason() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    start(&app, "").await.expect_error(400, "INVALID_ARGUMENT");
    instance(&app, &provider.config()).await;
    start(&app, "&redirectUri=ftp%3A%2F%2Fx")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    app.api
        .get("/api/v1/connectors/oauth/start?catalogId=http&instanceName=crm")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    app.api
        .get("/api/v1/connectors/oauth/start?catalogId=nothing&instanceName=crm")
        .await
        .expect_error(404, "NOT_FOUND");
    for (query, field) in [
        ("instanceName=crm", "catalogId"),
        ("catalogId=oauth2", "instanceName"),
    ] {
        let missing = app
            .api
            .get(&format!("/api/v1/connectors/oauth/start?{query}"))
            .await;
        assert_eq!(
            missing.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
            field
        );
    }
    let started = start(&app, "").await.expect(200);
    let state = started["state"].as_str().unwrap();
    let denied = format!(
        "/inbound/oauth/callback?error=access_denied&error_description=no%20thanks&state={state}"
    );
    let body = app.api.get(&denied).await.expect(400);
    assert!(
        body["error"]
            .as_str()
            .unwrap()
            .contains("access_denied: no thanks"),
        "{body}"
    );
}

#[tokio::test]
async fn people_are_sent_back_to_the_address_of_the_api() {
    let provider = OauthProvider::start(3600).await;
    let redirect = async |api: &Rest| {
        let body = json!({"catalogId": "oauth2", "name": "crm", "config": provider.config()});
        api.post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        let started = api
            .get("/api/v1/connectors/oauth/start?catalogId=oauth2&instanceName=crm")
            .await
            .expect(200);
        kanat_tests::rest::text(&started["redirectUri"])
    };
    let own_port = ("KANAT_DATA_PLANE_LISTEN", "127.0.0.1:0");
    let app =
        TestApp::start_with(&[own_port, ("KANAT_PUBLIC_URL", "https://hooks.example.com")]).await;
    assert_eq!(
        redirect(&app.api).await,
        format!("{}/inbound/oauth/callback", app.base)
    );
    let app = TestApp::start_with(&[own_port, ("KANAT_API_URL", "https://api.example.com/")]).await;
    assert_eq!(
        redirect(&app.api).await,
        "https://api.example.com/inbound/oauth/callback"
    );
    let app = TestApp::start_with(&[("KANAT_PUBLIC_URL", "https://hooks.example.com")]).await;
    assert_eq!(
        redirect(&app.api).await,
        "https://hooks.example.com/inbound/oauth/callback"
    );
    let split = kanat_tests::split::Split::new();
    let control = split.control_plane("one").await;
    assert_eq!(
        redirect(&control.api).await,
        format!("{}/inbound/oauth/callback", control.base)
    );
}

#[tokio::test]
async fn a_client_may_act_for_itself() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let mut config = provider.config();
    config["grant_type"] = "client_credentials".into();
    let id = instance(&app, &config).await;
    assert_eq!(
        shown(&app, &id).await["authorization"]["status"],
        "connected",
        "as soon as it is made"
    );
    start(&app, "")
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    let tested = app
        .api
        .post(
            &format!("/api/v1/connectors/instances/{id}/test"),
            &json!({}),
        )
        .await
        .expect(200);
    assert_eq!(tested["ok"], true, "{tested}");
    assert_eq!(provider.grants(), ["client_credentials"]);
}

#[tokio::test]
async fn a_client_that_acts_for_itself_is_tried_anew_when_it_is_changed_and_says_why_it_is_refused()
{
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let mut config = provider.config();
    config["grant_type"] = "client_credentials".into();
    let id = instance(&app, &config).await;
    let path = format!("/api/v1/connectors/instances/{id}");
    let (_, url) = app.api.deployed(FLOW).await;
    let update = json!({"config": {"client_secret": "wrong"}});
    let updated = app.api.patch(&path, &update).await.expect(200);
    assert_eq!(updated["authorization"]["status"], "refused", "{updated}");
    let why = updated["authorization"]["error"].as_str().unwrap();
    let tested = app.api.post(&format!("{path}/test"), &json!({})).await;
    assert_eq!(tested.status, 400);
    assert!(
        tested.text.contains("its provider gives it none") && tested.text.contains(why),
        "{}",
        tested.text
    );
    let order = app.api.webhook(&url, &json!({})).await;
    let order = app.api.message_becomes(&order, "dead_letter").await;
    assert!(
        order["error"]["message"].as_str().unwrap().contains(why),
        "{order}"
    );
    let update = json!({"config": {"client_secret": config["client_secret"]}});
    let updated = app.api.patch(&path, &update).await.expect(200);
    assert_eq!(updated["authorization"]["status"], "connected", "{updated}");
}

#[tokio::test]
async fn a_changed_client_of_a_connected_person_is_reported_as_untried() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let id = instance(&app, &provider.config()).await;
    connect(&app, &provider).await;
    let path = format!("/api/v1/connectors/instances/{id}");
    let warnings = async |config: Value| {
        let updated = app
            .api
            .patch(&path, &json!({ "config": config }))
            .await
            .expect(200);
        updated["warnings"].to_string()
    };
    let other = warnings(json!({"client_secret": "wrong"})).await;
    assert!(other.contains("at the next refresh"), "{other}");
    let same = warnings(json!({"client_secret": "********"})).await;
    assert!(!same.contains("at the next refresh"), "{same}");
}

#[tokio::test]
async fn a_provider_that_repeats_what_it_was_sent_shows_no_secret() {
    let mut app = TestApp::start().await;
    let parrot = FakeTarget::scripted(|received, _| {
        let echo = format!(
            "{} {}",
            String::from_utf8_lossy(&received.body),
            received.header("authorization")
        );
        let answer = json!({"error": "invalid_client", "error_description": echo});
        Reply::Answer(401, Vec::new(), answer.to_string())
    })
    .await;
    let mut ids = Vec::new();
    for authentication in ["body", "basic"] {
        let config = json!({
            "base_url": parrot.url(),
            "token_url": format!("{}/token", parrot.url()),
            "grant_type": "client_credentials",
            "client_id": "kanat",
            "client_secret": CLIENT_SECRET,
            "client_authentication": authentication,
        });
        let body = json!({"catalogId": "oauth2", "name": authentication, "config": config});
        let made = app
            .api
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        ids.push(kanat_tests::rest::text(&made["id"]));
    }
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("kanat:{CLIENT_SECRET}"));
    let mut seen = Vec::new();
    for id in &ids {
        let refused = until("the provider has refused", || async {
            let seen = shown(&app, id).await;
            (seen["authorization"]["status"] == "refused").then_some(seen)
        })
        .await;
        assert!(
            refused["authorization"]["error"]
                .as_str()
                .unwrap()
                .contains("********"),
            "{refused}"
        );
        seen.push(refused.to_string());
    }
    seen.push(app.api.get("/api/v1/connectors/instances").await.text);
    assert_eq!(app.terminate().await, Some(0));
    seen.push(app.log());
    for name in ["config.db", "config.db-wal", "messages.db"] {
        let bytes = std::fs::read(app.data_dir().join(name)).unwrap_or_default();
        seen.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for text in seen {
        assert!(
            !text.contains(CLIENT_SECRET) && !text.contains(&pair),
            "{text}"
        );
    }
}

#[tokio::test]
async fn another_origin_gets_no_tokens_that_were_given_before() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let id = instance(&app, &provider.config()).await;
    connect(&app, &provider).await;
    let elsewhere = FakeTarget::start().await;
    let path = format!("/api/v1/connectors/instances/{id}");
    for moved in ["base_url", "token_url"] {
        let mut config = json!({});
        config[moved] = format!("{}/x", elsewhere.url()).into();
        let refused = app
            .api
            .patch(&path, &json!({ "config": config }))
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(refused[0]["field"], "config.client_secret", "{refused}");
        assert_eq!(
            shown(&app, &id).await["authorization"]["status"],
            "connected"
        );
    }
    let config = json!({"base_url": elsewhere.url(), "client_secret": CLIENT_SECRET});
    app.api
        .patch(&path, &json!({ "config": config }))
        .await
        .expect(200);
    assert_eq!(shown(&app, &id).await["authorization"]["status"], "missing");
    app.api
        .post(&format!("{path}/test"), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    assert!(elsewhere.received().is_empty());
}
