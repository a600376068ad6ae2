//! Every flow of `examples/` is deployed and run: its sample comes out as the file beside it says.

use std::path::{Path, PathBuf};

use kanat_tests::target::ReceivedRequest;
use kanat_tests::{FakeTarget, Rest, TestApp, python::root, rest::text, until};
use serde_json::{Value, json};

fn examples() -> PathBuf {
    root().join("examples")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The catalog entry of an example's instance, as `examples/README.md` has it.
fn entry(instance: &str) -> &str {
    match instance {
        "desk" => "support-ticketing",
        "github" => "github",
        "newsletter" => "email-delivery",
        _ => "http",
    }
}

/// The files of a folder with this ending, by the name before it, in order.
fn named(folder: &str, ending: &str) -> Vec<(String, PathBuf)> {
    let files = std::fs::read_dir(examples().join(folder))
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut found: Vec<_> = files
        .filter_map(|path| {
            Some((
                path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned(),
                path.clone(),
            ))
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{folder} has no *{ending}");
    found
}

/// Makes the tables, adapters and instances that the examples name. The instances lead to `target`.
pub(crate) async fn prepare(api: &Rest, target: &FakeTarget) {
    for (name, path) in named("lookups", ".csv") {
        let table = api
            .post("/api/v1/lookup-tables", &json!({ "name": name }))
            .await
            .expect(201);
        let import = format!(
            "/api/v1/lookup-tables/{}/import",
            table["id"].as_str().unwrap()
        );
        api.raw("POST", &import, "text/csv", read(&path))
            .await
            .expect(200);
    }
    for (name, path) in named("adapters", ".js") {
        api.post(
            "/api/v1/adapters",
            &json!({ "name": name, "code": read(&path) }),
        )
        .await
        .expect(201);
    }
    for (name, path) in named("connectors", ".json") {
        let mut config: Value = serde_json::from_str(&read(&path)).unwrap();
        config["base_url"] = target.url().into();
        let body = json!({ "catalogId": entry(&name), "name": name, "config": config });
        api.post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
    }
}

/// Publishes the API of this request; gives its URL and a key for it.
async fn published_at(api: &Rest, request: &str) -> (String, String) {
    let path = "/api/v1/published-apis";
    let made = api
        .raw("POST", path, "application/json", request.to_owned())
        .await
        .expect(201);
    let keys = format!("{path}/{}/keys", made["id"].as_str().unwrap());
    let key = api
        .post(&keys, &json!({ "consumer": "partner" }))
        .await
        .expect(201);
    (text(&made["url"]), text(&key["key"]))
}

#[tokio::test]
async fn every_example_runs_as_it_says() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    prepare(&app.api, &target).await;
    for (name, path) in named("flows", ".yaml") {
        let file = |ending: &str| examples().join("flows").join(format!("{name}{ending}"));
        // Those that poll are in `poll/examples.rs`.
        if file(".answer.json").exists() {
            continue;
        }
        let sample = read(&file(".sample.json"));
        let expected = read(&file(".expected.json"));
        let (id, url) = app.api.deployed(&read(&path)).await;
        let before = target.received().len();
        let published = std::fs::read_to_string(file(".api.json")).ok();
        let (url, key) = match &published {
            Some(api) => published_at(&app.api, api).await,
            None => (url, String::new()),
        };
        let mut request = app
            .api
            .http()
            .post(&url)
            .header("content-type", "application/json");
        if published.is_some() {
            request = request.bearer_auth(key);
        }
        if let Ok(headers) = std::fs::read_to_string(file(".headers.json")) {
            let headers: serde_json::Map<String, Value> = serde_json::from_str(&headers).unwrap();
            for (header, value) in headers {
                request = request.header(header, value.as_str().unwrap());
            }
        }
        // Whoever waits is told what a target would have been sent.
        if published.is_some_and(|api| api.contains("responseSchema")) {
            let answer = Rest::send(request.body(sample)).await.expect(200);
            assert_eq!(
                answer,
                serde_json::from_str::<Value>(&expected).unwrap(),
                "{name}"
            );
            continue;
        }
        let answer = if url.is_empty() {
            let body = format!("{{\"payload\": {sample}}}");
            app.api
                .raw(
                    "POST",
                    &format!("/api/v1/flows/{id}/run"),
                    "application/json",
                    body,
                )
                .await
        } else {
            Rest::send(request.body(sample.clone())).await
        };
        let accepted = answer.expect(202);
        let path = format!(
            "/api/v1/messages/{}",
            accepted["messageId"].as_str().unwrap()
        );
        // Read as text: a payload may hold numbers that no reader of the tests can.
        until(&format!("{name} is delivered"), || async {
            app.api
                .get(&path)
                .await
                .text
                .contains("\"status\":\"delivered\"")
                .then_some(())
        })
        .await;
        let mut sent = target.received()[before..].to_vec();
        if let Ok(steps) = std::fs::read_to_string(file(".steps.json")) {
            let delivered = sent.split_off(sent.len() - 1);
            let called = |call: &ReceivedRequest| {
                json!({
                    "call": format!("{} {}", call.method, call.path),
                    "body": call.json(),
                })
            };
            let called: Vec<Value> = sent.iter().map(called).collect();
            assert_eq!(
                Value::Array(called),
                serde_json::from_str::<Value>(&steps).unwrap(),
                "{name}"
            );
            sent = delivered;
        }
        assert_eq!(sent.len(), 1, "{name}");
        // As text where the payload goes through as it came, so that digits and spaces count.
        if sample == expected {
            assert_eq!(sent[0].body, expected.as_bytes(), "{name}");
        } else {
            assert_eq!(
                sent[0].json(),
                serde_json::from_str::<Value>(&expected).unwrap(),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn a_total_that_comes_as_text_is_compared_as_a_number() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    prepare(&app.api, &target).await;
    let id = app
        .api
        .flow(&read(&examples().join("flows/order-sync.yaml")))
        .await;
    let tested = async |total: &str| {
        let order = json!({ "id": "SO-1", "total": total, "customer": { "email": "a@b.example" } });
        let path = format!("/api/v1/flows/{id}/test");
        let sample = json!({ "sampleData": order });
        app.api.post(&path, &sample).await.expect(200)
    };
    let refund = tested("-59.9").await;
    assert_eq!(refund["output"]["is_refund"], true, "{refund}");
    assert_eq!(refund["output"]["total"], "-59.90", "{refund}");
    let nothing = tested("0").await;
    assert_eq!(nothing["matched"], false, "{nothing}");
    assert_eq!(nothing["errors"], json!([]), "{nothing}");
    let words = tested("on request").await;
    assert_eq!(words["errors"][0]["kind"], "mapping", "{words}");
}

#[test]
fn editors_find_the_schema_of_every_example() {
    let comment = "# yaml-language-server: $schema=../../schemas/flow.schema.json\n";
    assert!(root().join("schemas/flow.schema.json").exists());
    for (name, path) in named("flows", ".yaml") {
        assert!(read(&path).starts_with(comment), "{name}");
    }
}

#[test]
fn a_schema_by_itself_is_that_of_the_request() {
    for (name, path) in named("flows", ".schema.json") {
        let json = |path: &Path| serde_json::from_str::<Value>(&read(path)).unwrap();
        let request = json(&path.with_file_name(format!("{name}.api.json")));
        assert_eq!(json(&path), request["requestSchema"], "{name}");
    }
}

#[tokio::test]
async fn every_example_tests_as_it_runs() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    prepare(&app.api, &target).await;
    for (name, path) in named("flows", ".yaml") {
        let file = |ending: &str| examples().join("flows").join(format!("{name}{ending}"));
        // What steps answer, and what a caller is told, is not of a test.
        if [".answer.json", ".api.json", ".steps.json"]
            .iter()
            .any(|ending| file(ending).exists())
        {
            continue;
        }
        let headers =
            std::fs::read_to_string(file(".headers.json")).unwrap_or_else(|_| "{}".to_owned());
        let sample = read(&file(".sample.json"));
        let expected = read(&file(".expected.json"));
        // It may have numbers that no reader of the tests can take.
        if sample == expected {
            continue;
        }
        let id = app.api.flow(&read(&path)).await;
        let body = format!("{{\"sampleData\": {sample}, \"headers\": {headers}}}");
        let tested = app
            .api
            .raw(
                "POST",
                &format!("/api/v1/flows/{id}/test"),
                "application/json",
                body,
            )
            .await;
        let tested = tested.expect(200);
        assert_eq!(&tested["matched"], &json!(true), "{name}: {tested}");
        assert_eq!(&tested["errors"], &json!([]), "{name}: {tested}");
        let calls = tested["trace"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record["stage"] == "delivery");
        let bodies: Vec<Value> = calls.map(|call| call["request"]["body"].clone()).collect();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(bodies, [expected], "{name}: {tested}");
    }
    assert!(target.received().is_empty());
}
