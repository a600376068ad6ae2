//! Requests as no well-behaved client sends them: each has one answer, and the service stands.

use kanat_tests::raw::{self, RawAnswer, request};
use kanat_tests::{TestApp, rest::text};
use serde_json::{Value, json};

use super::{PATH, quote};

const JSON: &str = "content-type: application/json";

#[tokio::test]
async fn odd_requests_get_one_answer_each() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    for (method, path, schema) in [
        ("POST", "orders/{id}", json!({"type": "object"})),
        (
            "GET",
            "orders/{id}",
            json!({"properties": {"n": {"type": "array", "items": {"type": "integer"}}}}),
        ),
        ("POST", "orders/latest", json!(true)),
    ] {
        let body = json!({
            "flowName": "quotes",
            "path": path,
            "method": method,
            "authType": "none",
            "requestSchema": schema,
            "responseSchema": true,
            "responseMapping": {"in": "source", "at": "trigger.path_params"},
            "responseHeaders": {"X-Id": "{{ trigger.path_params.id }}"},
        });
        app.api.post(PATH, &body).await.expect(201);
    }
    paths(&app).await;
    queries(&app).await;
    methods_and_hosts(&app).await;
    bodies(&app).await;
    headers(&app).await;
    credentials(&app).await;
    app.api.without_key().get("/health").await.expect(200);
    assert!(!app.log().contains("panicked"), "{}", app.log());
}

async fn say(app: &TestApp, lines: &[&str], body: &[u8]) -> RawAnswer {
    raw::send(&app.base, &request(lines, body)).await
}

/// Returns which of `orders/{id}` and `orders/latest` a call reached.
async fn at(app: &TestApp, path: &str) -> (u16, Value) {
    let answer = say(app, &[&format!("POST {path}"), JSON], b"{}").await;
    let at = if answer.status == 200 {
        answer.json()["at"].clone()
    } else {
        Value::Null
    };
    (answer.status, at)
}

async fn paths(app: &TestApp) {
    for (path, expected) in [
        ("/orders/7", json!({"id": "7"})),
        ("/v1/orders/7", json!({"id": "7"})),
        // What is escaped without need is the same; what is escaped with need stays within its
        // segment.
        ("/%6Frders/7", json!({"id": "7"})),
        ("/orders/a%2Fb%3Fc%23d", json!({"id": "a/b?c#d"})),
        ("/orders/%252F", json!({"id": "%2F"})),
        ("/orders/%E2%82%AC+%20", json!({"id": "€+ "})),
        ("/orders/..", json!({"id": ".."})),
        ("/orders/%2e%2E", json!({"id": ".."})),
        ("/orders/{id}", json!({"id": "{id}"})),
        ("/orders/%7B%7D", json!({"id": "{}"})),
        ("/orders/a;b=c:d@e", json!({"id": "a;b=c:d@e"})),
        // What says more goes before what says less, and it is the same text for both.
        ("/orders/latest", json!({})),
        ("/orders/l%61test", json!({})),
        ("/orders/Latest", json!({"id": "Latest"})),
    ] {
        assert_eq!(at(app, path).await, (200, expected), "{path}");
    }
    let long = format!("/orders/{}", "a".repeat(8_000));
    assert_eq!(
        at(app, &long).await,
        (200, json!({"id": "a".repeat(8_000)}))
    );
    for nothing in [
        "/",
        "//orders/7",
        "/orders//7",
        "/orders/7/",
        "/orders",
        "/orders/",
        "/v1",
        "/v1/",
        "/v1/v1/orders/7",
        "/V1/orders/7",
        "/v01/orders/7",
        "/%761/orders/7",
        "/orders%2F7",
        "/v99999999999/orders/7",
        "/Orders/7",
        "/orders/7/x",
    ] {
        assert_eq!(at(app, nothing).await.0, 404, "{nothing}");
    }
    // Bytes that are no text are no path of ours.
    assert_eq!(at(app, "/orders/%FF").await.0, 404);
    assert_eq!(at(app, &format!("/{}", "a/".repeat(5_000))).await.0, 404);
    assert_eq!(
        at(app, &format!("/orders/{}", "a".repeat(70_000))).await.0,
        431
    );
}

async fn queries(app: &TestApp) {
    let get = async |query: &str| say(app, &[&format!("GET /orders/7{query}")], b"").await;
    for (query, expected) in [
        ("?", json!({"id": "7"})),
        ("?a", json!({"a": "", "id": "7"})),
        (
            "?a=1&a=2&&b=c=d",
            json!({"a": ["1", "2"], "b": "c=d", "id": "7"}),
        ),
        (
            "?a=%zz&b=%F0%9F%98%80&c=%ff",
            json!({"a": "%zz", "b": "😀", "c": "\u{fffd}", "id": "7"}),
        ),
        ("?n=1", json!({"n": [1], "id": "7"})),
        ("?n=1&n=2", json!({"n": [1, 2], "id": "7"})),
        // The path has the last word.
        ("?id=8&id=9", json!({"id": "7"})),
        ("?%69d=8", json!({"id": "7"})),
    ] {
        let answer = get(query).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        assert_eq!(answer.json()["in"], expected, "{query}");
    }
    let wrong = get("?n=1&n=x").await;
    assert_eq!(wrong.status, 422);
    assert_eq!(&wrong.json()["details"][0]["field"], &json!("n[1]"));
    let long = get(&format!("?a={}", "b".repeat(60_000))).await;
    assert_eq!(long.json()["in"]["a"].as_str().map(str::len), Some(60_000));
    assert_eq!(get(&format!("?a={}", "b".repeat(70_000))).await.status, 431);
    assert_eq!(get(&format!("?{}", "a&".repeat(10_001))).await.status, 400);
}

async fn methods_and_hosts(app: &TestApp) {
    for method in ["post", "PoSt", "BREW", "TRACE", "DELETE"] {
        let answer = say(app, &[&format!("{method} /orders/7"), JSON], b"{}").await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(
            answer.header("allow").as_str(),
            "GET, HEAD, OPTIONS, POST",
            "{method}"
        );
    }
    // The whole address in the first line counts more than the host.
    let whole = say(
        app,
        &[
            "POST http://elsewhere.example/orders/7",
            "host: other.example",
            JSON,
        ],
        b"{}",
    )
    .await;
    assert_eq!(whole.status, 200, "{}", whole.text());
    let two = say(
        app,
        &["POST /orders/7", "host: a.example", "host: b.example", JSON],
        b"{}",
    )
    .await;
    assert_eq!(two.status, 400, "{}", two.text());
}

async fn bodies(app: &TestApp) {
    let post = async |headers: &[&str], body: &[u8]| {
        let lines = [&["POST /orders/7"], headers].concat();
        say(app, &lines, body).await
    };
    let chunked = "transfer-encoding: chunked";
    for (headers, body, status) in [
        (
            &[JSON, chunked][..],
            b"2\r\n{\"\r\n5;x=y\r\na\":1}\r\n0\r\nX-Trailer: 1\r\n\r\n".as_slice(),
            200,
        ),
        (&[JSON, chunked], b"zz\r\n{}\r\n0\r\n\r\n", 400),
        // Chunks count more than a length.
        (
            &[JSON, chunked, "content-length: 2"],
            b"2\r\n{}\r\n0\r\n\r\n",
            200,
        ),
        (
            &[JSON, "content-length: 2", "content-length: 3"],
            b"{} ",
            400,
        ),
        (&[JSON, "content-length: +2"], b"{}", 400),
        (
            &["content-type: application/json; charset=utf-8"],
            b"{}",
            200,
        ),
        (&["content-type: APPLICATION/JSON"], b"{}", 200),
        (&["content-type: application/vnd.acme+json"], b"{}", 200),
        (&[], b"{}", 200),
        (&[JSON], b"\xef\xbb\xbf{}", 400),
        (&[JSON], b"{}{}", 400),
        (&[JSON], b"{\"a\":\"\xff\"}", 400),
        (&[JSON], b"[]", 422),
        (&[JSON], b"", 422),
        (
            &["content-type: multipart/form-data; boundary=x"],
            b"--x--",
            415,
        ),
        (&["content-type: application/xml"], b"<a/>", 415),
        (&["content-type: \u{ff}"], b"{}", 415),
        (&[JSON, "expect: 100-continue"], b"{}", 100),
    ] {
        let answer = post(headers, body).await;
        assert_eq!(
            answer.status,
            status,
            "{headers:?} {:?}: {}",
            String::from_utf8_lossy(body),
            answer.text()
        );
    }
    // Of equal keys the last counts, in the check and in the mapping.
    let twice = post(&[JSON], br#"{"a":1,"a":"b"}"#).await;
    assert_eq!(twice.json()["in"], json!({"a": "b"}));
    let deep = [b"{\"a\":".as_slice(), "[".repeat(1_000).as_bytes()].concat();
    assert_eq!(post(&[JSON], &deep).await.status, 400);
    // Chunks without end are cut off where a body ends.
    let endless = [
        b"100000\r\n".as_slice(),
        &vec![b' '; 1 << 20],
        b"\r\n",
        b"100000\r\n",
        &vec![b' '; 1 << 20],
    ]
    .concat();
    assert_eq!(post(&[JSON, chunked], &endless).await.status, 413);
}

async fn headers(app: &TestApp) {
    // Statuses that have no body have none, whatever the flow made.
    for status in [204, 205, 304] {
        let path = format!("bare/{status}");
        let body = json!({
            "flowName": "quotes",
            "path": path,
            "authType": "none",
            "responseSchema": true,
            "responseStatus": status,
        });
        app.api.post(PATH, &body).await.expect(201);
        let answer = say(app, &[&format!("POST /{path}"), JSON], b"{\"total\":1}").await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.body.len(), 0);
        assert_eq!(answer.header("content-type").as_str(), "");
    }
    // What no header may have cannot be answered with, and splits no answer.
    let split = say(app, &["POST /orders/a%0D%0ASet-Cookie:%20x=y", JSON], b"{}").await;
    assert_eq!(split.status, 502, "{}", split.text());
    assert_eq!(split.header("set-cookie").as_str(), "", "{}", split.text());
    let plain = say(app, &["POST /orders/a%C3%A9", JSON], b"{}").await;
    assert_eq!(plain.status, 200, "{}", plain.text());
    let many: Vec<String> = (0..120).map(|number| format!("x-{number}: 1")).collect();
    let lines: Vec<&str> = ["POST /orders/7", JSON]
        .into_iter()
        .chain(many.iter().map(String::as_str))
        .collect();
    assert_eq!(say(app, &lines, b"{}").await.status, 431);
    let key = "idempotency-key: k-1";
    assert_eq!(
        say(app, &["POST /orders/1", JSON, key], b"{}").await.status,
        200
    );
    assert_eq!(
        say(app, &["POST /orders/1", JSON, key], b"{}")
            .await
            .header("idempotency-replayed"),
        "true"
    );
    let apis = app.api.get(PATH).await.expect(200);
    let mut apis = apis["data"].as_array().unwrap().iter();
    let orders = apis.find(|api| api["path"] == "orders/{id}" && api["method"] == "POST");
    let orders = orders.unwrap();
    let versions = format!("{PATH}/{}/versions", text(&orders["id"]));
    let second = app.api.post(&versions, &json!({"version": "v2"})).await;
    second.expect(201);
    // The same key and body for another order, or at another version, is another request.
    for other in [
        "POST /orders/2",
        "POST /v1/orders/1?full=true",
        "POST /v2/orders/1",
    ] {
        let answer = say(app, &[other, JSON, key], b"{}").await;
        assert_eq!(answer.status, 409, "{other}");
        assert_eq!(
            answer.json()["code"].as_str(),
            Some("ALREADY_EXISTS"),
            "{other}"
        );
    }
    let both = say(
        app,
        &["POST /orders/1", JSON, key, "idempotency-key: k-2"],
        b"{}",
    )
    .await;
    assert_eq!(both.status, 400, "{}", both.text());
    for blank in ["idempotency-key: a b", "idempotency-key: a\tb"] {
        let answer = say(app, &["POST /orders/1", JSON, blank], b"{}").await;
        assert_eq!(answer.status, 400, "{blank}: {}", answer.text());
    }
}

async fn credentials(app: &TestApp) {
    let body = json!({
        "flowName": "quotes",
        "path": "closed",
        "responseSchema": true,
        "responseMapping": "trigger.headers",
    });
    let api = format!(
        "{PATH}/{}",
        text(&app.api.post(PATH, &body).await.expect(201)["id"])
    );
    let key = app
        .api
        .post(&format!("{api}/keys"), &json!({"consumer": "acme"}))
        .await
        .expect(201);
    let key = text(&key["key"]);
    let good = format!("authorization: Bearer {key}");
    for lines in [
        vec!["authorization: Bearer"],
        vec!["authorization: Bearer "],
        vec!["authorization: Basic eDp5"],
        vec!["authorization: "],
        vec!["authorization: Bearer \u{ff}"],
        vec!["x-api-key: x"],
    ] {
        let lines = [vec!["POST /closed", JSON], lines].concat();
        let answer = say(app, &lines, b"{}").await;
        assert_eq!(answer.status, 401, "{lines:?}: {}", answer.text());
        assert!(
            answer
                .header("www-authenticate")
                .starts_with("Bearer realm=")
        );
    }
    let good = good.as_str();
    for both in [
        ["authorization: Bearer x", good],
        [good, "authorization: Bearer x"],
        [good, good],
    ] {
        let answer = say(app, &[&["POST /closed", JSON], &both[..]].concat(), b"{}").await;
        assert_eq!(answer.status, 400, "{both:?}: {}", answer.text());
    }
    let spaced = say(
        app,
        &[
            "POST /closed",
            JSON,
            &format!("Authorization:   bEARER   {key}  "),
        ],
        b"{}",
    )
    .await;
    assert_eq!(spaced.status, 200, "{}", spaced.text());
    assert!(
        !spaced.text().contains(&key) && spaced.json().get("authorization").is_none(),
        "{}",
        spaced.text()
    );
    assert_eq!(
        say(
            app,
            &[&format!("POST /closed?access_token={key}"), JSON],
            b"{}"
        )
        .await
        .status,
        401
    );
}
