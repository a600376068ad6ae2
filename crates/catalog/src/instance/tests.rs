//! Requests of an instance, and secrets that never show.

use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

fn instance(catalog_id: &str, config: serde_json::Value) -> Instance {
    Instance::new("ci_1", "erp", catalog_id, &config.to_string()).unwrap()
}

/// The URL and the headers of a request to `/orders?x=1`.
fn request(instance: &Instance) -> (String, Vec<String>) {
    let mut url = instance.request_url("/orders?x=1", NOW).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-source", HeaderValue::from_static("flow"));
    instance.apply_auth(&mut url, &mut headers);
    let headers = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    (url.into(), headers)
}

#[test]
fn sends_credentials_as_each_auth_kind_says() {
    let cases = [
        (
            json!({"auth": "none"}),
            "https://e.example/orders?x=1",
            None,
        ),
        (
            json!({"auth": "api_key", "api_key": "k"}),
            "https://e.example/orders?x=1",
            Some("x-api-key: k"),
        ),
        (
            json!({
                "auth": "api_key",
                "api_key": "k&=",
                "api_key_in": "query",
                "api_key_name": "key",
            }),
            "https://e.example/orders?x=1&key=k%26%3D",
            None,
        ),
        (
            json!({"auth": "basic", "username": "u", "password": "p"}),
            "https://e.example/orders?x=1",
            Some("authorization: Basic dTpw"),
        ),
        (
            json!({"auth": "bearer", "token": "t"}),
            "https://e.example/orders?x=1",
            Some("authorization: Bearer t"),
        ),
    ];
    for (mut config, url, header) in cases {
        config["base_url"] = "https://e.example".into();
        let (sent_url, headers) = request(&instance("http", config));
        assert_eq!(sent_url, url);
        assert_eq!(headers.get(1).map(String::as_str), header);
    }
}

#[test]
fn fixed_headers_replace_those_of_the_flow() {
    let instance = instance(
        "http",
        json!({"base_url": "https://e.example", "headers": {"X-Source": "erp"}}),
    );
    assert_eq!(request(&instance).1, ["x-source: erp"]);
}

#[test]
fn providers_have_their_own_address_and_credentials() {
    let email = instance("email-delivery", json!({"api_key": "SG.x"}));
    assert_eq!(email.base_url(), "https://api.sendgrid.com/v3");
    assert_eq!(request(&email).1[1], "authorization: Bearer SG.x");
    let config = json!({"subdomain": "acme", "email": "a@acme.example", "api_token": "t"});
    let ticketing = instance("support-ticketing", config);
    assert_eq!(ticketing.base_url(), "https://acme.zendesk.com/");
    assert_eq!(
        request(&ticketing).1[1],
        "authorization: Basic YUBhY21lLmV4YW1wbGUvdG9rZW46dA=="
    );
    let sandbox = instance(
        "email-delivery",
        json!({"api_key": "SG.x", "base_url": "http://127.0.0.1:9000/v3"}),
    );
    assert_eq!(
        sandbox.request_url("/mail/send", NOW).unwrap().as_str(),
        "http://127.0.0.1:9000/v3/mail/send"
    );
}

#[test]
fn lists_its_secrets_in_every_form_that_is_sent() {
    let config = json!({
        "base_url": "https://e.example",
        "auth": "basic",
        "username": "u",
        "password": "pass",
        "webhook_secret": "whsec",
        "headers": {
            "Cookie": "c=1;d=2",
            "X-Source": "shop",
            "X-Shop": "acme-7",
            "X-Session-Id": "s-4711",
            "X-Pin": "123",
        },
    });
    // What is shorter than four bytes would be found everywhere.
    assert_eq!(
        instance("http", config).secrets(),
        ["dTpwYXNz", "c=1;d=2", "s-4711", "whsec", "pass"]
    );
}

#[test]
fn shows_no_secret_in_debug_or_errors() {
    let config = json!({"base_url": "https://e.example", "auth": "bearer", "token": "hush"});
    assert!(!format!("{:?}", instance("http", config)).contains("hush"));
    let wrong =
        json!({"base_url": "https://e.example", "auth": "bearer", "token": "hu\nsh"}).to_string();
    let error = Instance::new("ci_1", "erp", "http", &wrong).unwrap_err();
    assert!(!error.contains("hu"), "{error}");
}

#[test]
fn refuses_what_is_no_config() {
    assert!(Instance::new("ci_1", "erp", "http", "[]").is_err());
    assert!(Instance::new("ci_1", "erp", "unknown", "{}").is_err());
    assert!(Instance::new("ci_1", "erp", "http", "{}").is_err());
}
