//! Calls of consumers: let in, checked, run and answered, as the spec's tables of states, errors
//! and versions have it.

use kanat_tests::rest::text;
use kanat_tests::target::{ReceivedRequest, Reply, ok, status};
use kanat_tests::{Answer, FakeTarget, Rest, TestApp, until};
use serde_json::{Value, json};

use super::{PATH, quote};

const ORDER: &str = r"name: order
version: 1
source: {trigger: api}
mapping:
  total: source.total | decimal(2)
";

/// Sends a request of a consumer, with its key.
async fn call(consumer: &Rest, method: &str, path: &str, body: &Value) -> Answer {
    Rest::send(consumer.request(method, path).json(body)).await
}

async fn stored(app: &TestApp, flow: &str) -> Value {
    app.api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200)["pagination"]["total"]
        .clone()
}

fn marks(answer: &Answer) -> [&str; 3] {
    [
        answer.header("deprecation"),
        answer.header("sunset"),
        answer.header("link"),
    ]
}

#[tokio::test]
async fn an_order_is_let_in_checked_run_and_answered() {
    let app = TestApp::start_with(&[("KANAT_LOG", "info,kanat_data_plane::published=debug")]).await;
    let (flow, _) = app.api.deployed(ORDER).await;
    let schema = json!({"type": "object", "required": ["total"], "properties": {
        "total": {"type": "number"},
        "items": {"type": "array", "items": {"properties": {"qty": {"type": "integer"}}}}}});
    let body = json!({"flowName": "order", "path": "shops/{shop}/orders", "requestSchema": schema});
    let made = app.api.post(PATH, &body).await.expect(201);
    let api = format!("{PATH}/{}", text(&made["id"]));
    let key = app
        .api
        .post(&format!("{api}/keys"), &json!({"consumer": "acme"}))
        .await
        .expect(201);
    let consumer = app.api.with_key(&text(&key["key"]));
    let stranger = app.api.without_key();
    let order = json!({"total": 149.5});

    // Asynchronous: durable, listed, traced; nobody sees the key.
    let accepted = call(&consumer, "POST", "/v1/shops/eu/orders", &order)
        .await
        .expect(202);
    assert_eq!(accepted["status"], "accepted");
    let message = app
        .api
        .message_becomes(&text(&accepted["messageId"]), "delivered")
        .await;
    assert_eq!(&message["trigger"], &json!("api"));
    assert_eq!(&message["output"], &json!({"total": "149.50"}));
    assert!(
        !message.to_string().contains(&text(&key["key"])),
        "{message}"
    );
    let called = json!({"api": {"id": made["id"], "version": "v1", "consumer": "acme"}});
    assert_eq!(&message["trace"][0]["stage"], &json!("received"));
    assert_eq!(&message["trace"][0]["request"], &called);
    let log = app.log();
    assert!(
        log.contains(r#""key.prefix":"kanat_ck_acme_""#) && !log.contains(&text(&key["key"])),
        "{log}"
    );

    // Strict: nothing is stored of what is refused.
    let refused = call(
        &consumer,
        "POST",
        "/shops/eu/orders",
        &json!({"items": [{"qty": "x"}]}),
    )
    .await;
    assert_eq!(refused.status, 422);
    let details = refused.json()["details"].clone();
    let mut fields: Vec<_> = details
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| text(&detail["field"]))
        .collect();
    fields.sort();
    assert_eq!(fields, ["items[0].qty", "total"]);
    for (who, status) in [(&stranger, 401), (&app.api, 401)] {
        let answer = call(who, "POST", "/shops/eu/orders", &order).await;
        assert!(
            answer.status == status && answer.header("www-authenticate").starts_with("Bearer"),
            "{}",
            answer.text
        );
    }
    assert_eq!(
        call(&consumer, "POST", "/shops/eu/none", &order)
            .await
            .status,
        404
    );
    assert_eq!(
        call(&consumer, "POST", "/v7/shops/eu/orders", &order)
            .await
            .status,
        404
    );
    let other = call(&consumer, "DELETE", "/shops/eu/orders", &order).await;
    assert_eq!(other.status, 405);
    assert_eq!(other.header("allow"), "OPTIONS, POST");
    assert_eq!(
        consumer
            .raw("POST", "/shops/eu/orders", "text/plain", "x")
            .await
            .status,
        415
    );
    assert_eq!(
        consumer
            .raw("POST", "/shops/eu/orders", "application/json", "{")
            .await
            .status,
        400
    );
    assert_eq!(
        consumer
            .raw(
                "POST",
                "/shops/eu/orders",
                "application/json",
                vec![b' '; 2 << 20]
            )
            .await
            .status,
        413
    );
    assert_eq!(stored(&app, &flow).await, 1);

    // Lenient: noted, and gone on with.
    app.api
        .patch(&api, &json!({"validationMode": "lenient"}))
        .await
        .expect(200);
    let lenient = call(
        &consumer,
        "POST",
        "/shops/eu/orders",
        &json!({"total": "7"}),
    )
    .await
    .expect(202);
    let message = app
        .api
        .message_becomes(&text(&lenient["messageId"]), "delivered")
        .await;
    let trace = message["trace"].as_array().unwrap();
    assert!(
        trace
            .iter()
            .any(|record| record["stage"] == "validated" && record["status"] == "warning"),
        "{message}"
    );

    // Synchronous, once there is a schema of the answer.
    let change = json!({
        "validationMode": "strict", "responseSchema": {"type": "object"}, "responseStatus": 201,
        "responseMapping": {"shop": "trigger.path_params.shop", "paid": "source.total"},
    });
    app.api.patch(&api, &change).await.expect(200);
    let answer = call(&consumer, "POST", "/shops/e%2Fu/orders", &order).await;
    assert_eq!(answer.json(), json!({"shop": "e/u", "paid": 149.5}));
    assert_eq!(answer.status, 201);

    // Deprecated: says so on every answer; retired: gone.
    app.api
        .post(&format!("{api}/versions"), &json!({"version": "v2"}))
        .await
        .expect(201);
    let sunset = json!({"sunsetDate": "2030-01-01"});
    app.api
        .post(&format!("{api}/versions/v1/deprecate"), &sunset)
        .await
        .expect(200);
    let link = format!(
        "<{}/v2/shops/eu/orders>; rel=\"successor-version\"",
        app.base
    );
    for (who, body, status) in [
        (&consumer, &order, 201),
        (&stranger, &order, 401),
        (&consumer, &json!({}), 422),
    ] {
        let answer = call(who, "POST", "/v1/shops/eu/orders", body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(
            marks(&answer),
            ["true", "Tue, 01 Jan 2030 00:00:00 GMT", &link]
        );
    }
    assert_eq!(
        marks(&call(&consumer, "POST", "/v2/shops/eu/orders", &order).await),
        [""; 3]
    );
    assert_eq!(
        marks(&call(&consumer, "POST", "/shops/eu/orders", &order).await),
        [""; 3]
    );
    app.api
        .post(
            &format!("{api}/versions/v1/retire"),
            &json!({"force": true}),
        )
        .await
        .expect(200);
    let gone = call(&consumer, "POST", "/v1/shops/eu/orders", &order).await;
    assert_eq!(gone.status, 410);
    assert_eq!(&gone.json()["currentVersion"], &json!("v2"));
    assert_eq!(
        gone.json()["currentUrl"],
        format!("{}/v2/shops/eu/orders", app.base)
    );
}

#[tokio::test]
async fn an_answer_that_is_built_is_given_and_one_that_does_not_fit_its_schema_is_not() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let body = json!({
        "flowName": "quotes",
        "path": "built",
        "authType": "none",
        "responseMapping": "source.idd",
    });
    let made = app.api.post(PATH, &body).await.expect(201);
    assert_eq!(&made["responseSchema"], &json!(true));
    assert_eq!(&made["strictResponse"], &json!(true));
    let consumer = app.api.without_key();
    let built = call(&consumer, "POST", "/built", &json!({"id": 1})).await;
    assert_eq!(built.status, 200);
    assert_eq!(built.text.as_str(), "null");

    let versions = format!("{PATH}/{}/versions", text(&made["id"]));
    let second = json!({"version": "v2", "responseSchema": {"type": "object", "required": ["id"]}});
    app.api.post(&versions, &second).await.expect(201);
    let once = consumer.with_header("idempotency-key", "k-1");
    let unfit = call(&once, "POST", "/v2/built", &json!({"id": 1})).await;
    assert_eq!(unfit.status, 502, "{}", unfit.text);
    // The record of a call that calls nobody is written behind its answer.
    let path = format!("/api/v1/messages/{}", text(&unfit.json()["messageId"]));
    let message = until("the call is on record", || async {
        let found = app.api.get(&path).await;
        (found.status == 200).then(|| found.json())
    });
    let message = message.await;
    assert_eq!(message["status"], "delivered");
    assert_eq!(message["error"]["kind"], "validation");
    let client = kanat_tests::cli::Cli::of(&app);
    let logs = client.run(&["logs", "quotes"]).await.expect();
    assert!(
        logs.contains("the caller got 502: responseSchema: ") && logs.contains("not null"),
        "{logs}"
    );
    let trace = message["trace"].as_array().unwrap();
    let told = trace
        .iter()
        .find(|record| record["name"] == "responseSchema")
        .unwrap();
    assert_eq!(told["status"], "failed");
    assert!(
        told["error"]
            .as_str()
            .unwrap()
            .contains("must be an object, not null"),
        "{told}"
    );
    let again = call(&once, "POST", "/v2/built", &json!({"id": 1})).await;
    assert_eq!(again.status, 502, "{}", again.text);
    assert_eq!(again.json()["messageId"], unfit.json()["messageId"]);
    assert_eq!(again.header("idempotency-replayed"), "true");
}

#[tokio::test]
async fn a_call_waits_for_the_target_and_no_longer_than_its_deadline() {
    let replies = |_: &ReceivedRequest, earlier: usize| match earlier {
        0 => ok(),
        1 => status(500),
        _ => Reply::Hang,
    };
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(replies).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r"name: ask
version: 1
source: {trigger: api}
target: {connector: erp, endpoint: /in, method: POST}
on_error: {retry: 0x fixed(1s)}
";
    app.api.deployed(yaml).await;
    let body = json!({
        "flowName": "ask", "path": "ask", "authType": "none", "responseSchema": true,
        "responseMapping": {"status": "target.response.status"},
    });
    let api = app.api.post(PATH, &body).await.expect(201);
    let api = format!("{PATH}/{}", text(&api["id"]));
    let consumer = app.api.without_key();
    let answer = call(&consumer, "POST", "/ask", &json!({"a": 1})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json(), json!({"status": 200}), "{}", answer.text);

    let failed = call(&consumer, "POST", "/ask", &json!({"a": 2})).await;
    assert_eq!(failed.status, 502, "{}", failed.text);
    app.api
        .message_becomes(&text(&failed.json()["messageId"]), "dead_letter")
        .await;

    app.api
        .patch(&api, &json!({"deadline": "100ms", "onTimeout": "discard"}))
        .await
        .expect(200);
    let late = call(&consumer, "POST", "/ask", &json!({"a": 3})).await;
    assert_eq!(late.status, 504, "{}", late.text);
    app.api
        .message_becomes(&text(&late.json()["messageId"]), "discarded")
        .await;
}
