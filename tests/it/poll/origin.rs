//! Credentials go to the origin that they are for.

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{delivered, polling};

#[tokio::test]
async fn a_header_of_the_connector_stands_in_place_of_the_flow_s() {
    let provider =
        FakeTarget::scripted(|_, _| Reply::Answer(200, Vec::new(), "[{\"id\": 1}]".to_owned()))
            .await;
    let app = TestApp::start().await;
    for (name, url) in [("shop", provider.url()), ("erp", provider.url())] {
        let config = json!({
            "base_url": url, "auth": "bearer", "token": "t0p-s3cret",
            "headers": { "X-Tenant": "connector" },
        });
        let body = json!({ "catalogId": "http", "name": name, "config": config });
        let path = "/api/v1/connectors/instances";
        app.api.post(path, &body).await.expect(201);
    }
    let headers = "headers: { Authorization: \"Bearer own\", X-Tenant: flow, X-Plain: flow }";
    let yaml = polling("paged", "/orders", &format!("    {headers}\n"));
    let yaml = yaml.replace("method: POST", &format!("method: POST\n  {headers}"));
    let made = app.api.flow(&yaml).await;
    let draft = app.api.get(&format!("/api/v1/flows/{made}")).await;
    let warnings = draft.expect(200)["warnings"].to_string();
    for path in ["source.poll.headers", "target.headers"] {
        for header in ["Authorization", "X-Tenant"] {
            assert!(warnings.contains(&format!("{path}.{header}")), "{warnings}");
        }
        assert!(!warnings.contains(&format!("{path}.X-Plain")), "{warnings}");
    }
    let deploy = format!("/api/v1/flows/{made}/deploy");
    app.api.post(&deploy, &json!({})).await.expect(200);
    for request in provider.arrivals(2).await {
        assert_eq!(request.header("authorization"), "Bearer t0p-s3cret");
        assert_eq!(request.header("x-tenant"), "connector");
        assert_eq!(request.header("x-plain"), "flow");
    }
}

#[tokio::test]
async fn a_link_to_another_origin_is_followed_without_credentials() {
    let elsewhere =
        FakeTarget::scripted(|_, _| Reply::Answer(200, Vec::new(), "[{\"id\": 2}]".to_owned()))
            .await;
    let next = format!("<{}/page2>; rel=next", elsewhere.url());
    let provider = FakeTarget::scripted(move |_, _| {
        Reply::Answer(
            200,
            vec![("link".to_owned(), next.clone())],
            "[{\"id\": 1}]".to_owned(),
        )
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let config = json!({ "base_url": provider.url(), "auth": "bearer", "token": "t0p-s3cret" });
    let body = json!({ "catalogId": "http", "name": "shop", "config": config });
    app.api
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
    let poll = "    headers: { X-Key: \"{{ instance.token }}\", X-Plain: a }\n    pagination: { \
                strategy: link_header }\n";
    app.api
        .deployed(&polling("wandering", "/page1", poll))
        .await;
    assert_eq!(delivered(&target, "wandering", 2).await, [1, 2]);
    let first = &provider.received()[0];
    let second = &elsewhere.received()[0];
    assert_eq!(first.header("authorization"), "Bearer t0p-s3cret");
    assert_eq!(first.header("x-key"), "t0p-s3cret");
    let shown = format!("{:?}", second.headers);
    assert!(
        !shown.contains("s3cret") && second.header("x-plain").is_empty(),
        "{shown}"
    );
    assert_eq!(second.path, "/page2");
}
