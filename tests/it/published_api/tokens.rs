//! `authType: oauth2`: whole calls with tokens of an issuer whose keys come over a socket.

use kanat_tests::rest::text;
use kanat_tests::token_issuer::{Algorithm, TokenIssuer, now};
use kanat_tests::{Answer, TestApp};
use serde_json::{Value, json};

use super::{PATH, quote};

#[tokio::test]
async fn a_token_opens_the_api_that_it_was_made_for() {
    let app = TestApp::start().await;
    let issuer = TokenIssuer::start().await;
    let (flow, _) = app.api.deployed(&quote("quotes")).await;
    let oauth2 = json!({
        "issuer": issuer.url(),
        "audience": "orders",
        "scopes": ["orders.write", "orders.read"],
    });
    let body =
        json!({"flowName": "quotes", "path": "orders", "authType": "oauth2", "oauth2": oauth2});
    app.api.post(PATH, &body).await.expect(201);
    let call = async |token: &str| {
        app.api
            .with_key(token)
            .post("/orders", &json!({"total": 1}))
            .await
    };
    let good = json!({
        "aud": "orders",
        "scope": "orders.write orders.read",
        "client_id": "shop",
        "sub": "7",
    });
    let with = |claims: Value| {
        let mut all = good.clone();
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        issuer.token(&all)
    };

    let accepted = call(&with(json!({}))).await.expect(202);
    let message = app
        .api
        .message_becomes(&text(&accepted["messageId"]), "delivered")
        .await;
    assert!(
        !message.to_string().contains("orders.write"),
        "the token is in the message: {message}"
    );
    for fits in [
        json!({"aud": ["stock", "orders"]}),
        json!({"scope": null, "scp": ["orders.read", "orders.write", "more"]}),
        json!({"nbf": now() + 30}),
    ] {
        call(&with(fits)).await.expect(202);
    }

    for (wrong, why) in [
        (json!({"aud": "stock"}), "another audience"),
        (json!({"aud": null}), "no iss, sub, aud or exp"),
        (json!({"iss": "https://id.example"}), "another issuer"),
        (json!({"exp": now() - 1}), "has expired"),
        (json!({"exp": null}), "no iss, sub, aud or exp"),
        (json!({"nbf": now() + 3600}), "not valid yet"),
    ] {
        let refused = call(&with(wrong)).await;
        assert!(refused.text.contains(why), "{}", refused.text);
        assert_eq!(
            challenge(refused, 401),
            "Bearer realm=\"api\", error=\"invalid_token\""
        );
    }
    let other = TokenIssuer::start().await;
    let forged = other
        .token(&json!({"iss": issuer.url(), "aud": "orders", "scope": "orders.write orders.read"}));
    assert_eq!(
        challenge(call(&forged).await, 401),
        "Bearer realm=\"api\", error=\"invalid_token\""
    );
    let unsigned = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.";
    assert_eq!(
        challenge(call(unsigned).await, 401),
        "Bearer realm=\"api\", error=\"invalid_token\""
    );
    let nothing = app.api.without_key().post("/orders", &json!({})).await;
    assert_eq!(challenge(nothing, 401), "Bearer realm=\"api\"");

    for lacking in [
        json!({"scope": "orders.write"}),
        json!({"scope": null}),
        json!({"scope": "orders.writer"}),
    ] {
        let challenge = challenge(call(&with(lacking)).await, 403);
        let error = "error=\"insufficient_scope\"";
        let scope = "scope=\"orders.write orders.read\"";
        assert_eq!(challenge, format!("Bearer realm=\"api\", {error}, {scope}"));
    }
    let stored = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    assert_eq!(
        stored["pagination"]["total"], 4,
        "what was refused left a message"
    );
}

#[tokio::test]
async fn tokens_are_signed_by_an_algorithm_of_the_issuer() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    for algorithm in [Algorithm::EdDsa, Algorithm::Es256, Algorithm::Rs256] {
        let issuer = TokenIssuer::start_with(algorithm).await;
        let path = algorithm.name().to_ascii_lowercase();
        let oauth2 = json!({"issuer": issuer.url(), "audience": "orders"});
        let body =
            json!({"flowName": "quotes", "path": path, "authType": "oauth2", "oauth2": oauth2});
        app.api.post(PATH, &body).await.expect(201);
        let caller = app
            .api
            .with_key(&issuer.token(&json!({"aud": "orders", "sub": "7"})));
        caller
            .post(&format!("/{path}"), &json!({"total": 1}))
            .await
            .expect(202);
    }
}

/// Returns the challenge of a refusal.
fn challenge(answer: Answer, status: u16) -> String {
    let challenge = answer.header("www-authenticate").to_owned();
    let code = if status == 401 {
        "UNAUTHENTICATED"
    } else {
        "PERMISSION_DENIED"
    };
    answer.expect_error(status, code);
    challenge
}
