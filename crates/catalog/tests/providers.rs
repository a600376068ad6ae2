//! Requests of actions, whole: method, address, headers and body, with an instance's credentials.
//! All actions of the spec's two connectors, and of the others those that put their params in ways
//! of their own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so where it stands"
)]

use std::time::Duration;

use http::HeaderMap;
use kanat_catalog::instance::AccessToken;
use kanat_catalog::{Instance, entry};
use kanat_model::Timestamp;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

/// The request of an action, as text.
fn request(entry_id: &str, config: &Value, slug: &str, params: &Value) -> String {
    let instance = Instance::new("ci_1", "one", entry_id, &config.to_string()).unwrap();
    let instance = match entry(entry_id).unwrap().authentication.as_str() {
        "oauth2" => instance
            .with_access_token(AccessToken::lasting("at"))
            .unwrap(),
        _ => instance,
    };
    let action = entry(entry_id).unwrap().action(slug).unwrap();
    let params = params.to_string();
    assert_eq!(action.check(&params), [], "{entry_id}.{slug}");
    let call = action.call(&params).unwrap();
    let mut url = instance.request_url(&call.endpoint, NOW).unwrap();
    let mut headers = call.headers;
    instance.apply_auth(&mut url, &mut headers);
    let body = String::from_utf8(call.body.unwrap_or_default()).unwrap();
    format!("{} {url}\n{}{body}", call.method, shown(&headers))
        .trim_end()
        .to_owned()
}

fn shown(headers: &HeaderMap) -> String {
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.concat()
}

fn check(entry_id: &str, config: Value, cases: &[(&str, Value, &str)]) {
    for (slug, params, expect) in cases {
        let lines: Vec<&str> = expect.lines().map(str::trim).collect();
        assert_eq!(
            request(entry_id, &config, slug, params),
            lines.join("\n"),
            "{entry_id}.{slug}"
        );
    }
}

#[test]
fn support_ticketing() {
    let config = json!({"subdomain": "acme", "email": "agent@acme.example", "api_token": "secret"});
    let auth = "authorization: Basic YWdlbnRAYWNtZS5leGFtcGxlL3Rva2VuOnNlY3JldA==";
    let get = |path: &str| format!("GET https://acme.zendesk.com/api/v2/{path}\n{auth}");
    let with_body = |method: &str, path: &str, body: &str| {
        format!(
            "{method} https://acme.zendesk.com/api/v2/{path}\n{auth}\ncontent-type: \
             application/json\n{body}"
        )
    };
    let cases = [
        (
            "list-tickets",
            json!({"page[size]": 25, "sort": "-updated_at"}),
            get("tickets?page%5Bsize%5D=25&sort=-updated_at"),
        ),
        (
            "get-ticket",
            json!({"ticketId": 35436}),
            get("tickets/35436"),
        ),
        (
            "create-ticket",
            json!({
                "ticket": {
                    "subject": "Broken",
                    "comment": {"body": "It smokes."},
                    "priority": "urgent",
                },
            }),
            with_body(
                "POST",
                "tickets",
                concat!(
                    r#"{"ticket":{"subject":"Broken","comment":{"body":"It smokes."},"#,
                    r#""priority":"urgent"}}"#
                ),
            ),
        ),
        (
            "update-ticket",
            json!({"ticketId": "35436", "ticket": {"status": "solved"}}),
            with_body("PUT", "tickets/35436", r#"{"ticket":{"status":"solved"}}"#),
        ),
        (
            "add-comment",
            json!({
                "ticketId": 35436,
                "ticket": {"comment": {"body": "For us only.", "public": false}},
            }),
            with_body(
                "PUT",
                "tickets/35436",
                r#"{"ticket":{"comment":{"body":"For us only.","public":false}}}"#,
            ),
        ),
        (
            "list-users",
            json!({"role": "agent"}),
            get("users?role=agent"),
        ),
        ("get-user", json!({"userId": 7}), get("users/7")),
        (
            "search",
            json!({"query": "type:ticket status:open", "sort_by": "created_at"}),
            get("search?query=type%3Aticket%20status%3Aopen&sort_by=created_at"),
        ),
    ];
    let slugs: Vec<&str> = entry("support-ticketing")
        .unwrap()
        .actions
        .iter()
        .map(|action| action.slug.as_str())
        .collect();
    assert_eq!(
        slugs,
        cases.iter().map(|(slug, ..)| *slug).collect::<Vec<_>>()
    );
    let cases: Vec<_> = cases
        .iter()
        .map(|(slug, params, expect)| (*slug, params.clone(), expect.as_str()))
        .collect();
    check("support-ticketing", config, &cases);
}

#[test]
fn email_delivery() {
    let config = json!({"api_key": "SG.secret"});
    let head = "authorization: Bearer SG.secret";
    let bare =
        |method: &str, path: &str| format!("{method} https://api.sendgrid.com/v3/{path}\n{head}");
    let with_body = |method: &str, path: &str, body: &str| {
        format!(
            "{}\ncontent-type: application/json\n{body}",
            bare(method, path)
        )
    };
    let mail = json!({
        "personalizations": [{"to": [{"email": "ada@example.com"}]}],
        "from": {"email": "shop@example.com"},
        "subject": "Hello",
        "content": [{"type": "text/plain", "value": "Hi"}],
    });
    let contacts = json!({
        "list_ids": ["l1"],
        "contacts": [{"email": "ada@example.com", "first_name": "Ada"}],
    });
    let cases = [
        (
            "send-email",
            mail.clone(),
            with_body("POST", "mail/send", &mail.to_string()),
        ),
        (
            "list-contacts",
            json!({}),
            bare("GET", "marketing/contacts"),
        ),
        (
            "add-contacts",
            contacts.clone(),
            with_body("PUT", "marketing/contacts", &contacts.to_string()),
        ),
        (
            "get-contact",
            json!({"contactId": "c-1"}),
            bare("GET", "marketing/contacts/c-1"),
        ),
        (
            "delete-contacts",
            json!({"ids": "c-1,c-2"}),
            bare("DELETE", "marketing/contacts?ids=c-1%2Cc-2"),
        ),
        (
            "list-templates",
            json!({"generations": "dynamic", "page_size": 10}),
            bare("GET", "templates?generations=dynamic&page_size=10"),
        ),
    ];
    let slugs: Vec<&str> = entry("email-delivery")
        .unwrap()
        .actions
        .iter()
        .map(|action| action.slug.as_str())
        .collect();
    assert_eq!(
        slugs,
        cases.iter().map(|(slug, ..)| *slug).collect::<Vec<_>>()
    );
    let cases: Vec<_> = cases
        .iter()
        .map(|(slug, params, expect)| (*slug, params.clone(), expect.as_str()))
        .collect();
    check("email-delivery", config.clone(), &cases);
    let templates = bare("GET", "templates?page_size=200");
    check(
        "email-delivery",
        config,
        &[("list-templates", json!({}), &templates)],
    );
}

#[test]
fn forms_and_headers_of_the_provider() {
    check(
        "stripe",
        json!({"secret_key": "sk_test_1", "api_version": "2025-09-30"}),
        &[
            (
                "create-payment-intent",
                json!({
                    "amount": 1099,
                    "currency": "eur",
                    "automatic_payment_methods": {"enabled": true},
                    "metadata": {"order": "7"},
                }),
                "POST https://api.stripe.com/v1/payment_intents
                 authorization: Bearer sk_test_1
                 content-type: application/x-www-form-urlencoded
                 stripe-version: 2025-09-30
                 amount=1099&currency=eur&automatic_payment_methods%5Benabled%5D=true\
                 &metadata%5Border%5D=7",
            ),
            (
                "list-customers",
                json!({"created": {"gte": 1700000000}, "expand[]": ["data.default_source"]}),
                "GET https://api.stripe.com/v1/customers?created%5Bgte%5D=1700000000\
                 &expand%5B%5D=data.default_source
                 authorization: Bearer sk_test_1
                 stripe-version: 2025-09-30",
            ),
        ],
    );
    check(
        "twilio",
        json!({"account_sid": "AC1", "auth_token": "t"}),
        &[(
            "send-message",
            json!({
                "To": "+15558675310",
                "From": "+15017122661",
                "Body": "Hi",
                "MediaUrl": ["https://a.example/1", "https://a.example/2"],
            }),
            "POST https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json
             authorization: Basic QUMxOnQ=
             content-type: application/x-www-form-urlencoded
             To=%2B15558675310&From=%2B15017122661&Body=Hi&MediaUrl=https%3A%2F%2Fa.example%2F1\
             &MediaUrl=https%3A%2F%2Fa.example%2F2",
        )],
    );
    check(
        "notion",
        json!({"integration_token": "t"}),
        &[(
            "search",
            json!({"query": "Roadmap"}),
            "POST https://api.notion.com/v1/search
             authorization: Bearer t
             content-type: application/json
             notion-version: 2022-06-28
             {\"query\":\"Roadmap\"}",
        )],
    );
    check(
        "github",
        json!({"token": "t"}),
        &[(
            "get-file",
            json!({"owner": "octo", "repo": "app", "path": "src/main.rs", "ref": "v1"}),
            "GET https://api.github.com/repos/octo/app/contents/src/main.rs?ref=v1
             accept: application/vnd.github+json
             authorization: Bearer t
             user-agent: Kanat
             x-github-api-version: 2022-11-28",
        )],
    );
}

#[test]
fn bodies_that_are_one_param_and_queries_beside_them() {
    check(
        "salesforce",
        json!({"client_id": "c", "domain": "acme"}),
        &[(
            "upsert-record",
            json!({
                "object": "Account",
                "external_id_field": "Erp__c",
                "external_id": 7,
                "record": {"Name": "Acme"},
            }),
            "PATCH https://acme.my.salesforce.com/services/data/v62.0/sobjects/Account/Erp__c/7
             authorization: Bearer at
             content-type: application/json
             {\"Name\":\"Acme\"}",
        )],
    );
    check(
        "google-sheets",
        json!({"client_id": "c"}),
        &[(
            "append-values",
            json!({"spreadsheetId": "s1", "range": "Orders!A1", "values": [[1, "a"]]}),
            "POST https://sheets.googleapis.com/v4/spreadsheets/s1/values/Orders%21A1:append\
             ?valueInputOption=USER_ENTERED
             authorization: Bearer at
             content-type: application/json
             {\"values\":[[1,\"a\"]]}",
        )],
    );
    check(
        "shopify",
        json!({"shop": "acme", "access_token": "shpat_1"}),
        &[(
            "get-order",
            json!({"order_id": 450789469}),
            "GET https://acme.myshopify.com/admin/api/2026-01/orders/450789469.json
             x-shopify-access-token: shpat_1",
        )],
    );
    check(
        "airtable",
        json!({"access_token": "pat1"}),
        &[(
            "list-records",
            json!({
                "baseId": "app1",
                "tableIdOrName": "My Orders",
                "fields[]": ["Name"],
                "sort": [{"field": "Name", "direction": "desc"}],
            }),
            "GET https://api.airtable.com/v0/app1/My%20Orders?fields%5B%5D=Name\
             &sort%5B0%5D%5Bfield%5D=Name&sort%5B0%5D%5Bdirection%5D=desc
             authorization: Bearer pat1",
        )],
    );
}

#[test]
fn an_instance_that_nobody_connected_makes_no_request() {
    let instance =
        Instance::new("ci_1", "sheets", "google-sheets", r#"{"client_id": "c"}"#).unwrap();
    let why = instance.request_url("/spreadsheets/s1", NOW).unwrap_err();
    assert_eq!(
        why,
        "the connector \"sheets\" has no access token: connect it by OAuth2 first"
    );
    let alone = json!({
        "client_id": "c",
        "grant_type": "client_credentials",
        "base_url": "https://a.example",
        "token_url": "https://a.example/token",
    });
    let alone = Instance::new("ci_1", "crm", "oauth2", &alone.to_string()).unwrap();
    let why = alone.request_url("/orders", NOW).unwrap_err();
    assert_eq!(
        why,
        "the connector \"crm\" has no access token: its provider has given it none yet"
    );
    let why = alone
        .with_refusal("invalid_client")
        .request_url("/orders", NOW)
        .unwrap_err();
    assert_eq!(
        why,
        "the connector \"crm\" has no access token: its provider gives it none: invalid_client"
    );
    let token = AccessToken {
        ends_at: Some(NOW),
        ..AccessToken::lasting("hush")
    };
    let connected = instance.with_access_token(token).unwrap();
    assert!(
        connected
            .request_url("/spreadsheets/s1", NOW.before(Duration::from_millis(1)))
            .is_ok()
    );
    let why = connected.request_url("/spreadsheets/s1", NOW).unwrap_err();
    assert_eq!(
        why,
        "the access token of the connector \"sheets\" has ended, and no new one has come"
    );
    assert!(connected.secrets().contains(&"hush".to_owned()));
    assert!(!format!("{connected:?}").contains("hush"));
}

#[test]
fn bounds_are_the_configs_else_the_providers() {
    let limits = |id: &str, config: Value| {
        Instance::new("ci_1", "one", id, &config.to_string())
            .unwrap()
            .limits()
    };
    let shop = limits("shopify", json!({"shop": "acme", "access_token": "t"}));
    assert_eq!(shop.requests_per_second, Some(2.0));
    assert_eq!(shop.concurrency, None);
    let own = limits(
        "shopify",
        json!({"shop": "acme", "access_token": "t", "requests_per_second": 0.5, "concurrency": 3}),
    );
    assert_eq!(own.requests_per_second, Some(0.5));
    assert_eq!(own.concurrency, Some(3));
    let sandbox = limits(
        "shopify",
        json!({"shop": "acme", "access_token": "t", "base_url": "http://127.0.0.1:9"}),
    );
    assert_eq!(sandbox.requests_per_second, None);
    assert_eq!(sandbox.concurrency, None);
    let http = limits("http", json!({"base_url": "https://e.example"}));
    assert_eq!(http.requests_per_second, None);
    assert_eq!(http.concurrency, None);
}
