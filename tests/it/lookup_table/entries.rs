//! `PUT`, `POST` and `DELETE /lookup-tables/{id}/entries`: one request is one modification.

use std::collections::BTreeMap;

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::table;

#[tokio::test]
async fn each_request_is_one_step_of_the_version() {
    let app = TestApp::start().await;
    let path = table(&app.api, "steps", &[]).await;
    // Of two values for one key, the last one counts.
    let many = json!({"entries": [
        {"key": "a", "value": "0"},
        {"key": "b", "value": "2"},
        {"key": "a", "value": "1"},
    ]});
    let put = app
        .api
        .put(&format!("{path}/entries"), &many)
        .await
        .expect(200);
    assert_eq!(&put["entries_count"], &json!(2));
    assert_eq!(&put["version"], &json!(2));
    let again = json!({"entries": [{"key": "b", "value": "3"}, {"key": "c", "value": "4"}]});
    let put = app
        .api
        .put(&format!("{path}/entries"), &again)
        .await
        .expect(200);
    assert_eq!(&put["entries_count"], &json!(3));
    assert_eq!(&put["version"], &json!(3));
    let set = app
        .api
        .post(
            &format!("{path}/entries"),
            &json!({"key": "a/b?", "value": "5"}),
        )
        .await;
    assert!(set.status == 200 || set.status == 201, "{}", set.text);
    assert_eq!(
        app.api
            .delete(&format!("{path}/entries/a%2Fb%3F"))
            .await
            .status,
        204
    );
    app.api
        .delete(&format!("{path}/entries/nobody"))
        .await
        .expect_error(404, "NOT_FOUND");
    let read = app.api.get(&path).await.expect(200);
    assert_eq!(read["version"], 5);
    let entries =
        json!([{"key": "a", "value": "1"}, {"key": "b", "value": "3"}, {"key": "c", "value": "4"}]);
    assert_eq!(read["entries"], entries);
    let wrong = app
        .api
        .put(
            &format!("{path}/entries"),
            &json!({"entries": [{"key": "x", "value": "1"}, {"key": 7}]}),
        )
        .await;
    assert_eq!(
        wrong.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "entries[1].key"
    );
}

#[tokio::test]
async fn a_changed_entry_is_live_with_the_next_message() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = table(&app.api, "codes", &[("DE", "276")]).await;
    let yaml = r"flow: looks
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  code: source.c | lookup(codes, ZZ)
";
    let (_, url) = app.api.deployed(yaml).await;
    app.api.webhook(&url, &json!({"c": "DE"})).await;
    target.arrivals(1).await;
    app.api
        .post(
            &format!("{path}/entries"),
            &json!({"key": "DE", "value": "DEU"}),
        )
        .await;
    app.api.webhook(&url, &json!({"c": "DE"})).await;
    target.arrivals(2).await;
    app.api.delete(&format!("{path}/entries/DE")).await;
    app.api.webhook(&url, &json!({"c": "DE"})).await;
    let codes: Vec<_> = target
        .arrivals(3)
        .await
        .iter()
        .map(|r| r.json()["code"].clone())
        .collect();
    assert_eq!(codes, ["276", "DEU", "ZZ"]);
}

/// The number of parts follows the size of the table.
#[tokio::test]
async fn lookups_see_a_table_that_grows_and_shrinks_as_it_is() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = table(&app.api, "large", &[]).await;
    let yaml = r"flow: looks
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  a: source.a | lookup(large, ZZ)
  b: source.b | lookup(large, ZZ)
  c: source.c | lookup(large, ZZ)
";
    let (flow, url) = app.api.deployed(yaml).await;
    let key = |n: usize| format!("key {n:04}");
    let mut expected = BTreeMap::new();
    let mut changes: Vec<Vec<(String, Option<String>)>> = Vec::new();
    let long = |n: usize| Some(format!("{n:-<100}"));
    changes.push((0..500).map(|n| (key(n), long(n))).collect());
    changes.push((500..2_000).map(|n| (key(n), long(n))).collect());
    changes.push(vec![(key(1_234), Some("another".to_owned()))]);
    changes.push(vec![(key(77), None)]);
    changes.push(vec![(key(7_777), long(0)), (key(77), long(1))]);
    changes.push((2_000..5_000).map(|n| (key(n), long(n))).collect());
    changes.push((0..5_000).map(|n| (key(n), Some(String::new()))).collect());
    for (step, changed) in changes.into_iter().enumerate() {
        let asked = [
            changed[0].0.clone(),
            changed[changed.len() / 2].0.clone(),
            key(9_999),
        ];
        if let [(key, None)] = changed.as_slice() {
            expected.remove(key);
            assert_eq!(
                app.api
                    .delete(&format!("{path}/entries/{key}"))
                    .await
                    .status,
                204
            );
        } else {
            let entry =
                |(key, value): &(String, Option<String>)| json!({ "key": key, "value": value });
            let entries: Vec<_> = changed.iter().map(entry).collect();
            let put = app
                .api
                .put(&format!("{path}/entries"), &json!({ "entries": entries }))
                .await;
            assert_eq!(put.header("x-config-applied"), "", "{}", put.text);
            expected.extend(
                changed
                    .into_iter()
                    .filter_map(|(key, value)| Some((key, value?))),
            );
            assert_eq!(
                put.expect(200)["entries_count"],
                expected.len(),
                "step {step}"
            );
        }
        let order = json!({ "a": asked[0], "b": asked[1], "c": asked[2] });
        let id = app.api.webhook(&url, &order).await;
        // Before it is killed, or it would deliver once more.
        app.api.message_becomes(&id, "delivered").await;
        let sent = target.arrivals(step + 1).await[step].json();
        let found = asked
            .each_ref()
            .map(|key| expected.get(key).map_or("ZZ", String::as_str));
        assert_eq!(
            [&sent["a"], &sent["b"], &sent["c"]],
            found.each_ref(),
            "step {step}"
        );
        if step == 4 {
            // From its disk, and from what is published.
            app.kill().await;
            app.restart().await;
        }
    }
    let exported = app.api.get(&format!("{path}/export")).await;
    let rows: Vec<_> = exported.text.lines().skip(1).collect();
    let wanted: Vec<_> = expected
        .iter()
        .map(|(key, value)| format!("{key},{value}"))
        .collect();
    assert_eq!(rows, wanted);
    app.api.delete(&format!("/api/v1/flows/{flow}")).await;
    assert_eq!(app.api.delete(&path).await.status, 204);
}
