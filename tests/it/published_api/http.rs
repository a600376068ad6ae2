//! HTTP as callers of published APIs speak it: hosts, `HEAD`, `OPTIONS`, pages of other origins,
//! codings, and bodies that swell when they are decompressed.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kanat_tests::raw::{self, RawAnswer};
use kanat_tests::{Rest, TestApp, rest::text};
use serde_json::{Value, json};

use super::{PATH, quote};

const JSON: &str = "content-type: application/json";

/// Default limit of a body in bytes.
const BODY_LIMIT: usize = 1 << 20;

#[tokio::test]
async fn consumers_speak_http_as_they_are_used_to() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let cors = json!({"origins": ["https://shop.example"], "exposedHeaders": ["Retry-After"]});
    for method in ["GET", "POST", "PUT"] {
        let body = json!({
            "flowName": "quotes",
            "path": "orders/{id}",
            "method": method,
            "authType": "none",
            "responseSchema": true,
            "responseMapping": "source",
            "responseHeaders": {"Cache-Control": "max-age=60"},
            "cors": cors,
        });
        app.api.post(PATH, &body).await.expect(201);
    }
    head_and_options(&app).await;
    origins(&app).await;
    codings(&app).await;
    bodies_that_swell(&app).await;
    hosts(&app).await;
}

#[tokio::test]
async fn what_is_no_json_cannot_run_in_a_browser_under_the_origin_of_the_service() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let page = json!({
        "flowName": "quotes",
        "path": "page",
        "method": "GET",
        "authType": "none",
        "responseSchema": true,
        "responseMapping": "source",
        "responseHeaders": {
            "Content-Type": "text/html",
            "Content-Security-Policy": "default-src *",
        },
    });
    app.api.post(PATH, &page).await.expect(201);
    let plain = json!({
        "flowName": "quotes",
        "path": "plain",
        "method": "GET",
        "authType": "none",
        "responseSchema": true,
        "responseMapping": "source",
    });
    app.api.post(PATH, &plain).await.expect(201);
    let page = say(&app, &["GET /v1/page?a=1"], b"").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type").as_str(), "text/html");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("content-security-policy"), "sandbox");
    let plain = say(&app, &["GET /v1/plain"], b"").await;
    assert_eq!(plain.status, 200);
    assert_eq!(plain.header("content-security-policy").as_str(), "");
}

async fn say(app: &TestApp, lines: &[&str], body: &[u8]) -> RawAnswer {
    raw::send(&app.base, &raw::request(lines, body)).await
}

async fn head_and_options(app: &TestApp) {
    let got = say(app, &["GET /orders/7?a=1&a=2&b=c%20d"], b"").await;
    assert_eq!(got.status, 200);
    assert_eq!(got.json(), json!({"a": ["1", "2"], "b": "c d", "id": "7"}));
    let head = say(app, &["HEAD /orders/7?a=1&a=2&b=c%20d"], b"").await;
    assert_eq!(head.status, 200);
    assert_eq!(head.body.len(), 0);
    for header in ["content-length", "content-type", "cache-control"] {
        assert_eq!(head.header(header), got.header(header), "{header}");
    }
    assert_eq!(
        got.header("cache-control"),
        "max-age=60",
        "caching is the flow's matter"
    );
    assert_eq!(got.header("etag"), "");
    let options = say(app, &["OPTIONS /v1/orders/7"], b"").await;
    assert_eq!(options.status, 204);
    assert_eq!(
        options.header("allow").as_str(),
        "GET, HEAD, OPTIONS, POST, PUT"
    );
    assert_eq!(say(app, &["OPTIONS /v1/nothing"], b"").await.status, 404);
    let other = say(app, &["PATCH /orders/7", JSON], b"{}").await;
    assert_eq!(other.status, 405);
    assert_eq!(
        other.header("allow").as_str(),
        "GET, HEAD, OPTIONS, POST, PUT"
    );
}

async fn origins(app: &TestApp) {
    let origin = "origin: https://shop.example";
    let asked = [
        "OPTIONS /orders/7",
        origin,
        "access-control-request-method: PUT",
    ];
    let asked = say(app, &asked, b"").await;
    assert_eq!(asked.status, 204);
    assert_eq!(
        asked.header("access-control-allow-origin").as_str(),
        "https://shop.example"
    );
    assert_eq!(
        asked.header("access-control-allow-methods"),
        "GET, HEAD, OPTIONS, POST, PUT"
    );
    assert_eq!(asked.header("access-control-max-age"), "600");
    let read = say(app, &["POST /orders/7", origin, JSON], b"{}").await;
    assert_eq!(read.status, 200);
    assert_eq!(
        read.header("access-control-allow-origin").as_str(),
        "https://shop.example"
    );
    assert_eq!(read.header("access-control-expose-headers"), "Retry-After");
    // What is wrong may be read, too; but by no other page.
    let wrong = say(app, &["POST /orders/7", origin, JSON], b"{").await;
    assert_eq!(wrong.status, 400);
    assert_eq!(
        wrong.header("access-control-allow-origin").as_str(),
        "https://shop.example"
    );
    let elsewhere = "origin: https://evil.example";
    for lines in [
        [
            "OPTIONS /orders/7",
            elsewhere,
            "access-control-request-method: PUT",
        ],
        ["POST /orders/7", elsewhere, JSON],
    ] {
        let answer = say(app, &lines, b"").await;
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "",
            "{lines:?}"
        );
    }
}

async fn codings(app: &TestApp) {
    let long = json!({"list": vec!["a word"; 400]});
    for (accepted, coding) in [
        ("gzip", "gzip"),
        ("gzip, deflate, br", "br"),
        ("identity", ""),
        ("br;q=0", ""),
    ] {
        let accept = format!("accept-encoding: {accepted}");
        let answer = say(
            app,
            &["PUT /orders/7", &accept, JSON],
            long.to_string().as_bytes(),
        )
        .await;
        assert_eq!(answer.status, 200, "{accepted}");
        assert_eq!(
            answer.header("content-encoding").as_str(),
            coding,
            "{accepted}"
        );
        assert!(
            answer.header("vary").contains("accept-encoding"),
            "{accepted}"
        );
        let plain = match coding {
            "gzip" => read(GzDecoder::new(answer.body.as_slice())),
            "br" => read(brotli::Decompressor::new(answer.body.as_slice(), 4096)),
            _ => answer.body,
        };
        assert_eq!(
            serde_json::from_slice::<Value>(&plain).unwrap(),
            long,
            "{accepted}"
        );
    }
    // What comes may be packed, too.
    let order = br#"{"total":9007199254740993}"#;
    for (coding, body) in [
        ("gzip", gzip(order)),
        ("br", brotli(order)),
        ("identity", order.to_vec()),
    ] {
        let encoding = format!("content-encoding: {coding}");
        let answer = say(app, &["POST /orders/7", &encoding, JSON], &body).await;
        assert_eq!(answer.status, 200, "{coding}: {}", answer.text());
        assert_eq!(
            answer.body.as_slice(),
            order.as_slice(),
            "{coding}: {}",
            answer.text()
        );
        let cut = say(
            app,
            &["POST /orders/7", &encoding, JSON],
            &body[..body.len() - 2],
        )
        .await;
        assert_eq!(cut.status, 400, "{coding}: {}", cut.text());
    }
    for unknown in ["deflate", "gzip, br", "zstd"] {
        let answer = say(
            app,
            &[
                "POST /orders/7",
                &format!("content-encoding: {unknown}"),
                JSON,
            ],
            order,
        )
        .await;
        assert_eq!(answer.status, 415, "{unknown}: {}", answer.text());
        assert_eq!(answer.header("accept-encoding"), "gzip, br", "{unknown}");
    }
}

/// They are few bytes on the way, and bounded by what they come to.
async fn bodies_that_swell(app: &TestApp) {
    let fits = [b"\"".as_slice(), &vec![b'a'; BODY_LIMIT - 2], b"\""].concat();
    let swells = vec![b' '; 64 << 20];
    for (coding, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("br", brotli)] {
        let encoding = format!("content-encoding: {coding}");
        let small = pack(&fits);
        let bomb = pack(&swells);
        assert!(bomb.len() < 200_000, "{coding}: {}", bomb.len());
        let answer = say(app, &["PUT /orders/7", &encoding, JSON], &small).await;
        assert_eq!(answer.status, 200, "{coding}: {}", answer.text());
        let answer = say(app, &["PUT /orders/7", &encoding, JSON], &bomb).await;
        assert_eq!(answer.status, 413, "{coding}: {}", answer.text());
    }
}

/// The host names an environment; one of the service itself, the default environment; and any other
/// one nothing.
async fn hosts(app: &TestApp) {
    let base = json!({"baseUrl": "https://Staging.example.com:8443"});
    app.api
        .patch("/api/v1/environments/staging", &base)
        .await
        .expect(200);
    let staging = app.api.with_header("x-environment", "staging");
    staging.deployed(&quote("quotes")).await;
    let body = json!({
        "flowName": "quotes", "path": "orders/{id}", "authType": "none", "responseSchema": true,
        "responseMapping": {"staging": "trigger.api.id"},
    });
    let made = staging.post(PATH, &body).await.expect(201);
    assert_eq!(made["url"], "https://staging.example.com:8443/orders/{id}");
    let deprecate = format!("{PATH}/{}/versions/v1/deprecate", text(&made["id"]));
    staging
        .post(&deprecate, &json!({"sunsetDate": "2030-01-01"}))
        .await
        .expect(200);
    staging
        .post(
            &format!("{PATH}/{}/versions", text(&made["id"])),
            &json!({"version": "v2"}),
        )
        .await
        .expect(201);
    for (host, is_staging) in [
        ("staging.example.com:8443", true),
        ("STAGING.example.com:8443", true),
        ("10.0.0.7", false),
        ("localhost:8080", false),
        ("kanat", false),
    ] {
        let answer = say(
            app,
            &["POST /v1/orders/7", &format!("host: {host}"), JSON],
            br#"{"total":1}"#,
        )
        .await;
        let expected = if is_staging {
            json!({"staging": made["id"]})
        } else {
            json!({"total": 1})
        };
        assert_eq!(answer.status, 200, "{host}");
        assert_eq!(answer.json(), expected, "{host}");
        // Where its successor is, is told by the address that the environment says it has.
        let link = "<https://staging.example.com:8443/v2/orders/7>; rel=\"successor-version\"";
        assert_eq!(
            answer.header("link"),
            if is_staging { link } else { "" },
            "{host}"
        );
    }
    for host in [
        "staging.example.com",
        "staging.example.com.evil.example:8443",
        "other.example",
    ] {
        let answer = say(
            app,
            &["POST /v1/orders/7", &format!("host: {host}"), JSON],
            br#"{"total":1}"#,
        )
        .await;
        assert_eq!(answer.status, 404, "{host}: {}", answer.text());
    }
    let with_host = Rest::send(
        app.api
            .without_key()
            .request("POST", "/orders/7")
            .header("host", "staging.example.com:8443"),
    );
    assert_eq!(with_host.await.json(), json!({"staging": made["id"]}));
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    encoder.write_all(plain).unwrap();
    encoder.into_inner()
}

fn read(mut decoder: impl Read) -> Vec<u8> {
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain).unwrap();
    plain
}
