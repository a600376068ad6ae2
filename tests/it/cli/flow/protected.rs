//! `kanat flow apply` by a caller that may not change the environment.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use serde_json::json;

use super::FLOW;

#[tokio::test]
async fn advice_on_a_definition_is_for_those_who_may_apply_it() {
    let app = TestApp::start().await;
    let environment = "/api/v1/environments/production";
    let protected = json!({ "protected": true });
    app.api.patch(environment, &protected).await.expect(200);
    for (role, reason) in [
        ("editor", "environment \"production\" is protected"),
        ("viewer", "role viewer may not do this"),
    ] {
        let key = json!({ "name": role, "role": role });
        let key = app.api.post("/api/v1/api-keys", &key).await.expect(201);
        let cli = Cli::new()
            .with("KANAT_URL", &app.base)
            .with("KANAT_API_KEY", key["key"].as_str().unwrap());
        cli.file("missing.yaml", FLOW);
        cli.file("wrong.yaml", &FLOW.replace("source.id", "sorce.id"));
        for file in ["missing.yaml", "wrong.yaml"] {
            let apply = ["flow", "apply", file, "--env", "production"];
            let refused = cli.run(&apply).await.fails(1);
            let first = refused.lines().next().unwrap();
            assert!(first.starts_with("error: "), "{file}: {refused}");
            assert!(first.contains(reason), "{file}: {refused}");
            assert!(!refused.contains("does not exist"), "{refused}");
            assert!(!refused.contains("sorce"), "{refused}");
        }
    }
    let cli = Cli::of(&app);
    cli.file("missing.yaml", FLOW);
    let apply = ["flow", "apply", "missing.yaml", "--env", "production"];
    let advised = cli.run(&apply).await.fails(1);
    assert!(
        advised.contains("the connector instance \"erp\" does not exist"),
        "{advised}"
    );
}
