//! `DELETE /published-apis/{id}`, and what cannot be deleted under an API.

use kanat_tests::{TestApp, rest::text};
use serde_json::json;

use super::{PATH, published, quote};

#[tokio::test]
async fn what_an_api_calls_and_names_stays_until_it_is_gone() {
    let app = TestApp::start().await;
    let flow = app.api.flow(&quote("quotes")).await;
    let table = app
        .api
        .post("/api/v1/lookup-tables", &json!({"name": "countries"}))
        .await
        .expect(201);
    let code = json!({"name": "tidy", "code": "const transform = (input) => input"});
    let adapter = app.api.post("/api/v1/adapters", &code).await.expect(201);
    let path = published(&app.api, "quotes", "orders").await;
    let answer = json!({"responseMapping": {"c": "source.c | lookup(countries) | adapter(tidy)"}});
    app.api.patch(&path, &answer).await.expect(200);

    let used = [
        format!("/api/v1/flows/{flow}"),
        format!("/api/v1/lookup-tables/{}", text(&table["id"])),
        format!("/api/v1/adapters/{}", text(&adapter["id"])),
    ];
    for used in &used {
        let refused = app.api.delete(used).await;
        assert!(refused.text.contains("POST /orders"), "{}", refused.text);
        refused.expect_error(400, "FAILED_PRECONDITION");
    }
    let other = r"flow: quotes
version: 1
source: {trigger: manual}
target: {connector: erp, endpoint: /in}
";
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    app.api
        .patch(&used[0], &json!({"yamlConfig": other}))
        .await
        .expect(200);
    let refused = app
        .api
        .post(&format!("{}/deploy", used[0]), &json!({}))
        .await;
    assert!(
        refused.text.contains("its trigger stays api"),
        "{}",
        refused.text
    );
    refused.expect_error(400, "FAILED_PRECONDITION");

    app.api
        .post(&format!("{path}/keys"), &json!({"consumer": "acme"}))
        .await
        .expect(201);
    assert_eq!(app.api.delete(&path).await.status, 204);
    app.api.get(&path).await.expect_error(404, "NOT_FOUND");
    app.api
        .get(&format!("{path}/keys"))
        .await
        .expect_error(404, "NOT_FOUND");
    for used in &used {
        assert_eq!(app.api.delete(used).await.status, 204, "{used}");
    }
    // Its name and its path are free again.
    app.api.flow(&quote("quotes")).await;
    published(&app.api, "quotes", "orders").await;
    assert_eq!(
        app.api.get(PATH).await.expect(200)["pagination"]["total"],
        1
    );
}
