//! A webhook that verifies its sender refuses everybody else, before anything is stored.

use hmac::{Hmac, KeyInit, Mac};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;
use sha2::Sha256;

fn flow(name: &str, verify: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source:
  connector: shop
  trigger: webhook
  verify: {verify}
target:
  connector: erp
  endpoint: /in
  method: POST
"
    )
}

fn signature(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

#[tokio::test]
async fn a_bad_signature_is_401_and_a_good_one_202() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let shop = json!({
        "catalogId": "http",
        "name": "shop",
        "config": {
            "base_url": target.url(),
            "auth": "none",
            "webhook_secret": "s3cret-of-the-shop",
        },
    });
    app.api
        .post("/api/v1/connectors/instances", &shop)
        .await
        .expect(201);
    let verify = "{ scheme: hmac-sha256, secret: \"{{ instance.webhook_secret }}\", header: \
                  X-Sig, prefix: \"sha256=\" }";
    let (id, url) = app.api.deployed(&flow("signed", verify)).await;
    let body = r#"{"id":1}"#;
    let sender = app.api.without_key();

    for wrong in [
        signature("other", body),
        signature("s3cret-of-the-shop", "{}"),
        "zz".to_owned(),
        String::new(),
    ] {
        let signed = sender.with_header("x-sig", &format!("sha256={wrong}"));
        signed
            .raw("POST", &url, "application/json", body)
            .await
            .expect_error(401, "UNAUTHENTICATED");
    }
    sender
        .raw("POST", &url, "application/json", body)
        .await
        .expect_error(401, "UNAUTHENTICATED");
    let list = app
        .api
        .get(&format!("/api/v1/messages?flowId={id}"))
        .await
        .expect(200);
    assert_eq!(list["pagination"]["total"], 0);

    let signed = sender.with_header(
        "x-sig",
        &format!("sha256={}", signature("s3cret-of-the-shop", body)),
    );
    signed
        .raw("POST", &url, "application/json", body)
        .await
        .expect(202);
    target.arrivals(1).await;
    let log = app.log();
    assert!(!log.contains("s3cret-of-the-shop"));
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("webhook refused"))
        .collect();
    // Of the two for each of the first reasons one line, in a minute.
    assert_eq!(told.len(), 3, "{told:?}");
    let reasons = [
        "the signature or secret is wrong",
        "the signature cannot be read",
        "the request carries no header X-Sig",
    ];
    for (line, reason) in told.iter().zip(reasons) {
        assert!(line.contains(reason) && line.contains(&id), "{line}");
    }
}

#[tokio::test]
async fn a_deploy_names_a_connector_secret_that_its_scheme_cannot_use() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let shop = app.api.http_instance("shop", &target.url()).await;
    let path = format!("/api/v1/connectors/instances/{shop}");
    app.api
        .put(
            &path,
            &json!({ "config": { "webhook_secret": "no secret of the scheme" } }),
        )
        .await
        .expect(200);
    let verify = "{ scheme: standard-webhooks, secret: \"{{ instance.webhook_secret }}\" }";
    let made = app
        .api
        .post(
            "/api/v1/flows",
            &json!({ "yamlConfig": flow("signed", verify) }),
        )
        .await
        .expect(201);
    assert!(
        made["warnings"][0].to_string().contains("cannot use"),
        "{made}"
    );
    let deploy = format!("/api/v1/flows/{}/deploy", made["id"].as_str().unwrap());
    let refused = app.api.post(&deploy, &json!({})).await.expect(400);
    let said = refused.to_string();
    assert!(
        said.contains("whsec_ and base64") && !said.contains("no secret of the scheme"),
        "{said}"
    );
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    app.api
        .put(&path, &json!({ "config": { "webhook_secret": secret } }))
        .await
        .expect(200);
    app.api.post(&deploy, &json!({})).await.expect(200);

    let harmless = app
        .api
        .put(&path, &json!({ "displayName": "Shop" }))
        .await
        .expect(200);
    assert_eq!(harmless["warnings"], json!([]));
    let update = json!({ "config": { "webhook_secret": "no secret of the scheme" } });
    let warned = app.api.put(&path, &update).await.expect(200)["warnings"].to_string();
    assert!(
        warned.contains("flow \\\"signed\\\" is live") && warned.contains("source.verify"),
        "{warned}"
    );
}

#[tokio::test]
async fn any_of_several_secrets_is_accepted_while_they_are_rotated() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &target.url()).await;
    let verify = "{ scheme: token, secret: [old-token, new-token], header: X-Token }";
    let (_, url) = app.api.deployed(&flow("rotating", verify)).await;
    for (token, status) in [("old-token", 202), ("new-token", 202), ("other", 401)] {
        let answer = app
            .api
            .without_key()
            .with_header("x-token", token)
            .post(&url, &json!({}))
            .await;
        assert_eq!(answer.status, status, "{token}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_deploy_names_a_secret_that_the_connector_does_not_have() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let shop = app.api.http_instance("shop", &target.url()).await;
    let secret = |secret: &str| {
        flow(
            "signed",
            &format!("{{ scheme: token, secret: \"{secret}\" }}"),
        )
    };
    let made = app
        .api
        .post(
            "/api/v1/flows",
            &json!({ "yamlConfig": secret("{{ instance.webhok_secret }}") }),
        )
        .await
        .expect(201);
    let deploy = format!("/api/v1/flows/{}/deploy", made["id"].as_str().unwrap());
    let unknown = app.api.post(&deploy, &json!({})).await.expect(400);
    assert!(
        unknown["error"]
            .as_str()
            .unwrap()
            .contains("did you mean \"webhook_secret\""),
        "{unknown}"
    );
    let path = format!("/api/v1/flows/{}", made["id"].as_str().unwrap());
    let draft = app
        .api
        .put(
            &path,
            &json!({ "yamlConfig": secret("pre{{ instance.webhook_secret }}") }),
        )
        .await
        .expect(200);
    assert!(
        draft["warnings"][0]
            .to_string()
            .contains("does not have set"),
        "{draft}"
    );
    let unset = app.api.post(&deploy, &json!({})).await.expect(400);
    assert!(
        unset["error"]
            .as_str()
            .unwrap()
            .contains("does not have set"),
        "{unset}"
    );

    let path = format!("/api/v1/connectors/instances/{shop}");
    app.api
        .put(&path, &json!({ "config": { "webhook_secret": "s3cret" } }))
        .await
        .expect(200);
    let live = app.api.post(&deploy, &json!({})).await.expect(200);
    let url = live["webhookUrl"].as_str().unwrap();
    let token = |token: &str| app.api.without_key().with_header("x-webhook-token", token);
    token("pres3cret").post(url, &json!({})).await.expect(202);
    app.api
        .put(&path, &json!({ "config": { "webhook_secret": null } }))
        .await
        .expect(200);
    token("pre")
        .post(url, &json!({}))
        .await
        .expect_error(401, "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_github_delivery_is_verified_by_its_rules() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &target.url()).await;
    let (_, url) = app
        .api
        .deployed(&flow(
            "github",
            "{ scheme: github, secret: It's a Secret to Everybody }",
        ))
        .await;
    // The example of GitHub's own documentation.
    let sender = app.api.without_key().with_header(
        "x-hub-signature-256",
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    );
    sender
        .raw("POST", &url, "text/plain", "Hello, World!")
        .await
        .expect(202);
    sender
        .raw("POST", &url, "text/plain", "Hello, World?")
        .await
        .expect_error(401, "UNAUTHENTICATED");
}
