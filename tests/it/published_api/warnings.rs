//! Warnings about schemas that no call of a published API can satisfy.

use kanat_tests::cli::Cli;
use kanat_tests::{TestApp, rest::text};
use serde_json::{Value, json};

use super::{PATH, quote};

/// Returns the only warning of an answer, which is to have these parts.
fn warning(answer: &Value, parts: &[&str]) {
    let warnings = answer["warnings"].as_array().expect("a list of warnings");
    let [warning] = warnings.as_slice() else {
        panic!("one warning: {answer}")
    };
    for part in parts {
        assert!(warning.to_string().contains(part), "{part}: {warning}");
    }
}

#[tokio::test]
async fn an_answer_that_never_fits_its_schema_is_warned_of() {
    let app = TestApp::start().await;
    let (id, _) = app.api.deployed(&quote("quotes")).await;
    let new = json!({
        "flowName": "quotes", "path": "quotes", "authType": "none",
        "responseSchema": {"required": ["total", "currency"]},
    });
    let made = app.api.post(PATH, &new).await.expect(201);
    warning(
        &made,
        &[
            "the flow's mapping has no \\\"currency\\\"",
            "responseSchema requires",
            "502",
        ],
    );
    // It was right: a call gets what the warning says.
    let call = app.api.post("/quotes", &json!({"total": 1})).await;
    assert_eq!(call.status, 502, "{}", call.text);

    let api = format!("{PATH}/{}", text(&made["id"]));
    let lenient = json!({"strictResponse": false});
    let changed = app.api.patch(&api, &lenient).await.expect(200);
    assert_eq!(changed["warnings"], json!([]));
    let mapped = json!({
        "strictResponse": true,
        "responseMapping": {"total": "source.total", "currency": "'EUR'", "note.text": "'-'"},
        "responseSchema": {
            "required": ["total"],
            "properties": {"total": {}, "currency": {}},
            "additionalProperties": false,
        },
    });
    let changed = app.api.patch(&api, &mapped).await.expect(200);
    warning(
        &changed,
        &["the responseMapping has", "note", "does not allow"],
    );
    // A version inherits what it does not name.
    let version = json!({"version": "v2", "responseMapping": {"currency": "'EUR'"}});
    let versions = format!("{api}/versions");
    let made = app.api.post(&versions, &version).await.expect(201);
    warning(&made, &["the responseMapping has no", "total"]);
    let version = json!({"version": "v3", "responseMapping": null});
    let made = app.api.post(&versions, &version).await.expect(201);
    assert_eq!(made["warnings"], json!([]));

    // A flow whose mapping is the answer is warned of before its deploy.
    let other = quote("quotes").replace("total: source", "sum: source");
    let checked = app
        .api
        .post("/api/v1/flows/validate", &json!({"yamlConfig": other}))
        .await
        .expect(200);
    let said = checked["warnings"].to_string();
    assert!(said.contains("version v3 of published API"), "{said}");
    assert!(said.contains("the flow's mapping has no"), "{said}");
    let draft = app
        .api
        .patch(
            &format!("/api/v1/flows/{id}"),
            &json!({"yamlConfig": other}),
        )
        .await
        .expect(200);
    assert!(
        draft["warnings"]
            .to_string()
            .contains("the flow's mapping has no")
    );
}

#[tokio::test]
async fn a_parameter_of_the_path_that_the_schema_refuses_is_warned_of() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.deployed(&quote("quotes")).await;
    let schema = cli.file(
        "schema.json",
        r#"{"properties": {"page": {"type": "integer"}}, "additionalProperties": false}"#,
    );
    let create = ["api", "create", "quotes", "quotes/{id}", "--auth", "none"];
    let given = ["--schema", &schema, "--method"];
    let made = cli.run(&[&create[..], &given, &["GET"]].concat()).await;
    assert!(
        made.stderr
            .contains("warning: the schema of requests does not allow \"id\""),
        "{}",
        made.stderr
    );
    made.expect();
    // The input of POST is its body, without the path.
    let made = cli.run(&[&create[..], &given, &["POST"]].concat()).await;
    assert!(!made.stderr.contains("warning"), "{}", made.stderr);
    made.expect();
}
