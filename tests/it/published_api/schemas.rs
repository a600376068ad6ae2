//! Every pair of schema and document of `crates/schema` through a real endpoint: the verdict, and
//! the fields it names.

use std::collections::BTreeMap;

use kanat_tests::{Rest, TestApp, until};
use serde_json::value::RawValue;

use super::{PATH, fields};

/// An object whose values keep their text, and so the digits of long numbers.
type Raw = BTreeMap<String, Box<RawValue>>;

#[tokio::test]
async fn every_pair_of_schema_and_document_has_its_answer() {
    let app = TestApp::start().await;
    app.api
        .deployed(
            r"name: checked
version: 1
source: {trigger: api}
mapping:
  seen: source
",
        )
        .await;
    let groups: Vec<Raw> =
        serde_json::from_str(include_str!("../../../crates/schema/tests/pairs.json")).unwrap();
    let name = |group: &Raw| serde_json::from_str::<String>(group["name"].get()).unwrap();
    for group in &groups {
        let body = format!(
            r#"{{"path":"pairs/{}","flowName":"checked","authType":"none","requestSchema":{}}}"#,
            name(group),
            group["schema"]
        );
        app.api
            .raw("POST", PATH, "application/json", body)
            .await
            .expect(201);
    }
    let consumer = app.api.without_key();
    let call = |group: &Raw, case: &Raw| {
        let request = consumer.request("POST", &format!("/v1/pairs/{}", name(group)));
        Rest::send(
            request
                .header("content-type", "application/json")
                .body(case["value"].get().to_owned()),
        )
    };
    let cases = |group: &Raw| serde_json::from_str::<Vec<Raw>>(group["cases"].get()).unwrap();
    let last = groups.last().unwrap();
    until("the last API is live", || {
        let answer = call(last, &cases(last)[0]);
        async move { (answer.await.status == 202).then_some(()) }
    })
    .await;
    for group in &groups {
        for case in cases(group) {
            let place = format!("{}: {}", name(group), case["value"]);
            let expected: Vec<String> = serde_json::from_str(case["fields"].get()).unwrap();
            let answer = call(group, &case).await;
            if expected.is_empty() {
                assert_eq!(answer.status, 202, "{place}: {}", answer.text);
                continue;
            }
            assert_eq!(answer.status, 422, "{place}: {}", answer.text);
            let answer = answer.json();
            let mut found = fields(&answer["details"]);
            found.sort_unstable();
            assert_eq!(found, expected, "{place}");
        }
    }
}
