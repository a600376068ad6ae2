//! The actions of the spec's two connectors, each run as a step against a server that checks what
//! arrives.

use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

/// A call as the provider wants it: action, params, method, path with query, body.
type ExpectedCall = (
    &'static str,
    Value,
    &'static str,
    &'static str,
    Option<Value>,
);

fn support_ticketing() -> Vec<ExpectedCall> {
    let ticket = json!({"subject": "Broken", "comment": {"body": "It smokes."}});
    let note = json!({"comment": {"body": "For us only.", "public": false}});
    vec![
        (
            "list-tickets",
            json!({"page[size]": 25}),
            "GET",
            "/api/v2/tickets?page%5Bsize%5D=25",
            None,
        ),
        (
            "get-ticket",
            json!({"ticketId": "{{ source.ticket }}"}),
            "GET",
            "/api/v2/tickets/35436",
            None,
        ),
        (
            "create-ticket",
            json!({"ticket": ticket}),
            "POST",
            "/api/v2/tickets",
            Some(json!({"ticket": ticket})),
        ),
        (
            "update-ticket",
            json!({"ticketId": "{{ source.ticket }}", "ticket": {"status": "solved"}}),
            "PUT",
            "/api/v2/tickets/35436",
            Some(json!({"ticket": {"status": "solved"}})),
        ),
        (
            "add-comment",
            json!({"ticketId": 35436, "ticket": note}),
            "PUT",
            "/api/v2/tickets/35436",
            Some(json!({"ticket": note})),
        ),
        (
            "list-users",
            json!({"role": "agent"}),
            "GET",
            "/api/v2/users?role=agent",
            None,
        ),
        (
            "get-user",
            json!({"userId": 7}),
            "GET",
            "/api/v2/users/7",
            None,
        ),
        (
            "search",
            json!({"query": "type:ticket a&b"}),
            "GET",
            "/api/v2/search?query=type%3Aticket%20a%26b",
            None,
        ),
    ]
}

fn email_delivery() -> Vec<ExpectedCall> {
    let mail = json!({
        "personalizations": [{"to": [{"email": "{{ source.email }}"}]}],
        "from": {"email": "shop@example.com"},
        "subject": "Hello",
        "content": [{"type": "text/plain", "value": "Hi"}],
    });
    let sent = json!({
        "personalizations": [{"to": [{"email": "ada@example.com"}]}],
        "from": {"email": "shop@example.com"},
        "subject": "Hello",
        "content": [{"type": "text/plain", "value": "Hi"}],
    });
    let contacts = json!({"contacts": [{"email": "ada@example.com"}]});
    vec![
        ("send-email", mail, "POST", "/mail/send", Some(sent)),
        (
            "list-contacts",
            json!({}),
            "GET",
            "/marketing/contacts",
            None,
        ),
        (
            "add-contacts",
            contacts.clone(),
            "PUT",
            "/marketing/contacts",
            Some(contacts),
        ),
        (
            "get-contact",
            json!({"contactId": "c-1"}),
            "GET",
            "/marketing/contacts/c-1",
            None,
        ),
        (
            "delete-contacts",
            json!({"ids": "c-1,c-2"}),
            "DELETE",
            "/marketing/contacts?ids=c-1%2Cc-2",
            None,
        ),
        (
            "list-templates",
            json!({"page_size": 10}),
            "GET",
            "/templates?page_size=10",
            None,
        ),
    ]
}

async fn run(entry: &str, mut config: Value, authorization: &str, expected: Vec<ExpectedCall>) {
    let app = TestApp::start().await;
    let auth = authorization.to_owned();
    let provider = FakeTarget::scripted(move |call: &ReceivedRequest, _| {
        let status = if call.header("authorization") == auth {
            200
        } else {
            401
        };
        Reply::Answer(
            status,
            vec![("content-type".to_owned(), "application/json".to_owned())],
            "{}".to_owned(),
        )
    })
    .await;
    config["base_url"] = provider.url().into();
    let new = json!({"catalogId": entry, "name": "provider", "config": config});
    app.api
        .post("/api/v1/connectors/instances", &new)
        .await
        .expect(201);
    let steps = expected.iter().map(|(slug, params, ..)| {
        format!(
            "  - {{ name: {slug}, action: {entry}.{slug}, connector: provider, params: \
                 {params} }}\n"
        )
    });
    let yaml = format!(
        r"flow: all-actions
version: 1
source: {{ trigger: webhook }}
steps:
{}on_error: {{ retry: 0x fixed(1s) }}
",
        steps.collect::<String>()
    );
    let (_, url) = app.api.deployed(&yaml).await;
    let id = app
        .api
        .webhook(&url, &json!({"ticket": 35436, "email": "ada@example.com"}))
        .await;
    app.api.message_becomes(&id, "delivered").await;
    let calls = provider.received();
    assert_eq!(calls.len(), expected.len());
    for (call, (slug, _, method, path, body)) in calls.iter().zip(&expected) {
        assert_eq!(call.method.as_str(), *method, "{slug}");
        assert_eq!(call.path.as_str(), *path, "{slug}");
        assert_eq!(call.header("authorization"), authorization, "{slug}");
        match body {
            Some(body) => {
                assert_eq!(call.header("content-type"), "application/json", "{slug}");
                assert_eq!(call.json(), *body, "{slug}");
            }
            None => assert!(call.body.is_empty(), "{slug}"),
        }
    }
    let actions = app
        .api
        .get(&format!("/api/v1/connectors/catalog/{entry}/actions"))
        .await
        .expect(200);
    let slugs: Vec<_> = actions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["slug"].clone())
        .collect();
    assert_eq!(
        slugs,
        expected
            .iter()
            .map(|(slug, ..)| json!(slug))
            .collect::<Vec<_>>(),
        "each of them was called"
    );
}

#[tokio::test]
async fn all_of_support_ticketing() {
    let config = json!({"subdomain": "acme", "email": "agent@acme.example", "api_token": "secret"});
    run(
        "support-ticketing",
        config,
        "Basic YWdlbnRAYWNtZS5leGFtcGxlL3Rva2VuOnNlY3JldA==",
        support_ticketing(),
    )
    .await;
}

#[tokio::test]
async fn all_of_email_delivery() {
    run(
        "email-delivery",
        json!({"api_key": "SG.secret"}),
        "Bearer SG.secret",
        email_delivery(),
    )
    .await;
}
