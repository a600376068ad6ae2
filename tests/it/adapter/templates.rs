//! `GET /adapters/templates`: every one runs, and makes of its sample what it says.

use kanat_tests::TestApp;
use serde_json::json;

use super::adapter;

#[tokio::test]
async fn every_template_makes_of_its_sample_what_it_says() {
    let app = TestApp::start().await;
    let list = app.api.get("/api/v1/adapters/templates").await.expect(200);
    let templates = list["data"].as_array().unwrap();
    assert!(templates.len() >= 6, "{}", templates.len());
    for template in templates {
        let text = |field: &str| template[field].as_str().unwrap();
        assert!(!text("description").is_empty());
        let path = adapter(&app.api, text("name"), text("type"), text("code")).await;
        let tested = app
            .api
            .post(
                &format!("{path}/test"),
                &json!({"input": template["sampleInput"]}),
            )
            .await
            .expect(200);
        assert_eq!(
            tested["output"],
            template["sampleOutput"],
            "{}: {tested}",
            text("id")
        );
    }
    for kind in ["transform", "source", "target"] {
        assert!(
            templates.iter().any(|template| template["type"] == kind),
            "{kind}"
        );
    }
}
