//! Variables of environments: texts that flows read as `env.NAME`.

use kanat_tests::rest::text;
use kanat_tests::{FakeTarget, Rest, Service, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    Service;
    a_change_of_variables_is_live_without_a_deploy,
    a_name_that_the_environment_lacks_is_a_warning_and_no_deploy,
    a_variable_that_a_deployed_flow_reads_is_not_taken_away,
    variables_are_texts_under_names_of_the_language,
);

const DEVELOPMENT: &str = "/api/v1/environments/development";

const ORDERS: &str = r"flow: orders
version: 1
source:
  trigger: webhook
mapping:
  region: env.REGION
target:
  connector: erp
  endpoint: /{{ env.PATH }}/in
  method: POST
";

async fn set(api: &Rest, variables: Value) -> kanat_tests::Answer {
    api.patch(DEVELOPMENT, &json!({ "variables": variables }))
        .await
}

/// Sends a message through the webhook, and gives path and region of what arrives.
async fn delivered(api: &Rest, target: &FakeTarget, url: &str) -> (String, String) {
    target.forget();
    let message = api.webhook(url, &json!({})).await;
    api.message_becomes(&message, "delivered").await;
    let arrived = target.arrivals(1).await.remove(0);
    (arrived.path.clone(), text(&arrived.json()["region"]))
}

async fn a_change_of_variables_is_live_without_a_deploy(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let target = FakeTarget::start().await;
    service.nodes().await;
    let variables = json!({"REGION": "eu-1", "PATH": "a"});
    let changed = set(api, variables.clone()).await;
    assert_eq!(changed.header("x-config-applied"), "");
    assert_eq!(changed.expect(200)["variables"], variables);
    api.http_instance("erp", &target.url()).await;
    let (flow, webhook) = api.deployed(ORDERS).await;
    let urls = service.webhooks(&webhook).await;
    for url in &urls {
        let arrived = delivered(elsewhere, &target, url).await;
        assert_eq!(arrived, ("/a/in".to_owned(), "eu-1".to_owned()));
    }
    let plan = format!("/api/v1/flows/{flow}/plan");
    let shown = elsewhere.get(&plan).await.expect(200)["variables"].clone();
    let all = json!([{"name": "PATH", "value": "a"}, {"name": "REGION", "value": "eu-1"}]);
    assert_eq!(shown, all);

    let next = json!({"REGION": "us-2", "PATH": "b", "UNUSED": ""});
    set(api, next).await.expect(200);
    for url in &urls {
        let arrived = delivered(elsewhere, &target, url).await;
        assert_eq!(arrived, ("/b/in".to_owned(), "us-2".to_owned()));
    }
    let plan = elsewhere.get(&plan).await.expect(200);
    assert_eq!(plan["variables"][1]["value"], "us-2");
    let version = elsewhere
        .get(&format!("/api/v1/flows/{flow}"))
        .await
        .expect(200);
    assert_eq!(version["deployedVersion"], 1);
}

async fn a_name_that_the_environment_lacks_is_a_warning_and_no_deploy(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let target = FakeTarget::start().await;
    api.http_instance("erp", &target.url()).await;
    let staging = json!({"variables": {"REGION": "eu-1", "PATH": "a"}});
    api.patch("/api/v1/environments/staging", &staging)
        .await
        .expect(200);
    set(api, json!({"REGION": "eu-1", "PATHS": "a"}))
        .await
        .expect(200);
    let draft = json!({ "yamlConfig": ORDERS });
    let draft = elsewhere.post("/api/v1/flows", &draft).await.expect(201);
    let warnings = draft["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let flow = text(&draft["id"]);
    let deploy = format!("/api/v1/flows/{flow}/deploy");
    let refused = elsewhere.post(&deploy, &json!({})).await;
    for part in [
        "line 9",
        "did you mean \\\"PATHS\\\"",
        "--variable PATH=VALUE",
    ] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    refused.expect_error(400, "INVALID_ARGUMENT");
    // A test needs no environment that is complete, and has what is there.
    let test = json!({"sampleData": {}});
    let tested = format!("/api/v1/flows/{flow}/test");
    let tested = elsewhere.post(&tested, &test).await.expect(200);
    assert_eq!(tested["output"]["region"], "eu-1");
    let expression = json!({"expression": "env.REGION | uppercase"});
    let evaluated = elsewhere.post("/api/v1/expressions/evaluate", &expression);
    assert_eq!(evaluated.await.expect(200)["value"], "EU-1");
    set(api, json!({"REGION": "eu-1", "PATH": "a"}))
        .await
        .expect(200);
    elsewhere.post(&deploy, &json!({})).await.expect(200);
}

async fn a_variable_that_a_deployed_flow_reads_is_not_taken_away(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let target = FakeTarget::start().await;
    api.http_instance("erp", &target.url()).await;
    set(api, json!({"REGION": "eu-1", "PATH": "a", "OTHER": "x"}))
        .await
        .expect(200);
    let (flow, _) = elsewhere.deployed(ORDERS).await;
    let refused = set(api, json!({"REGION": "eu-1"})).await;
    assert!(refused.text.contains("PATH"), "{}", refused.text);
    assert!(refused.text.contains("orders"), "{}", refused.text);
    refused.expect_error(400, "FAILED_PRECONDITION");
    let left = json!({"REGION": "eu-1", "PATH": "a"});
    let changed = set(api, left.clone()).await.expect(200);
    assert_eq!(changed["variables"], left);

    let without = ORDERS.replace("{{ env.PATH }}", "b");
    let one = format!("/api/v1/flows/{flow}");
    elsewhere
        .patch(&one, &json!({ "yamlConfig": without }))
        .await
        .expect(200);
    let deploy = elsewhere.post(&format!("{one}/deploy"), &json!({})).await;
    deploy.expect(200);
    set(api, json!({"REGION": "eu-1"})).await.expect(200);
    elsewhere.delete(&one).await.expect(204);
    let none = set(api, json!({})).await.expect(200);
    assert_eq!(none["variables"], json!({}));
}

async fn variables_are_texts_under_names_of_the_language(service: &Service) {
    let elsewhere = service.elsewhere();
    let api = service.api();
    let long = "x".repeat(16 << 10);
    let most = json!({"A": long, "b-2_c": ""});
    set(api, most.clone()).await.expect(200);
    for (variables, field) in [
        (json!({"A": null}), "variables.A"),
        (json!({"A": 1}), "variables.A"),
        (json!({"A": format!("{long}x")}), "variables.A"),
        (json!({"A.B": "x"}), "variables.A.B"),
        (json!([]), "variables"),
    ] {
        let details = set(api, variables).await;
        let details = details.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field);
    }
    let now = elsewhere.get(DEVELOPMENT).await.expect(200);
    assert_eq!(now["variables"], most);
    // What was read may be sent back.
    api.put(DEVELOPMENT, &now).await.expect(200);
}
