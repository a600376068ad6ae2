//! Places of the params of a call.

use super::Action;
use crate::entry;

/// `METHOD endpoint body`, or what is wrong.
fn shown(action: &Action, params: &str) -> String {
    match action.call(params) {
        Ok(call) => {
            let body = String::from_utf8(call.body.unwrap_or_default()).unwrap();
            format!("{} {} {body}", call.method, call.endpoint)
                .trim_end()
                .to_owned()
        }
        Err(error) => format!("{}: {}", error.param, error.message),
    }
}

fn call(entry_id: &str, slug: &str, params: &str) -> String {
    shown(entry(entry_id).unwrap().action(slug).unwrap(), params)
}

/// An action that no entry has.
fn action(rest: serde_json::Value) -> Action {
    let mut action = serde_json::json!({
        "slug": "act", "name": "Act", "description": "Acts.", "method": "POST", "path": "/act",
        "request_schema": {}, "response_schema": {},
    });
    action
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    serde_json::from_value(action).unwrap()
}

#[test]
fn params_go_into_path_query_and_body() {
    let cases = [
        (
            "support-ticketing",
            "list-tickets",
            "{}",
            "GET /api/v2/tickets",
        ),
        (
            "support-ticketing",
            "list-tickets",
            r#"{"page[size]": 50, "sort": "-id", "include": null}"#,
            "GET /api/v2/tickets?page%5Bsize%5D=50&sort=-id",
        ),
        (
            "support-ticketing",
            "get-ticket",
            r#"{"ticketId": 35436}"#,
            "GET /api/v2/tickets/35436",
        ),
        (
            "support-ticketing",
            "update-ticket",
            r#"{"ticketId": "a/b?", "ticket": {"group_id": 9007199254740993, "tags": [1.10]}}"#,
            concat!(
                r#"PUT /api/v2/tickets/a%2Fb%3F {"ticket":{"group_id": 9007199254740993, "#,
                r#""tags": [1.10]}}"#
            ),
        ),
        (
            "support-ticketing",
            "search",
            r#"{"query": "type:ticket a&b=c é"}"#,
            "GET /api/v2/search?query=type%3Aticket%20a%26b%3Dc%20%C3%A9",
        ),
        (
            "email-delivery",
            "delete-contacts",
            r#"{"ids": "a,b"}"#,
            "DELETE /marketing/contacts?ids=a%2Cb",
        ),
        ("email-delivery", "send-email", "{}", "POST /mail/send {}"),
        (
            "support-ticketing",
            "list-users",
            r#"{"role": ["agent", "admin"]}"#,
            "GET /api/v2/users?role=agent&role=admin",
        ),
    ];
    for (entry, slug, params, expect) in cases {
        assert_eq!(call(entry, slug, params), expect, "{slug}");
    }
}

#[test]
fn no_value_changes_which_call_it_is() {
    let ticket = |params: &str| call("support-ticketing", "get-ticket", params);
    assert_eq!(
        ticket("{}"),
        "ticketId: must be a text or a number: it is part of the path"
    );
    assert_eq!(
        ticket(r#"{"ticketId": null}"#),
        "ticketId: must be a text or a number: it is part of the path"
    );
    assert_eq!(
        ticket(r#"{"ticketId": ""}"#),
        "ticketId: must not be empty: it is part of the path"
    );
    for dots in [".", ".."] {
        let params = format!(r#"{{"ticketId": "{dots}"}}"#);
        assert_eq!(
            ticket(&params),
            "ticketId: must not be a segment of dots: it would be another path"
        );
    }
    let file = action(serde_json::json!({"method": "GET", "path": "/contents/{+path}"}));
    assert_eq!(
        shown(&file, r#"{"path": "src/a b.rs"}"#),
        "GET /contents/src/a%20b.rs"
    );
    let dots = "path: must not be a segment of dots: it would be another path";
    assert_eq!(shown(&file, r#"{"path": "src/../../x"}"#), dots);
    assert_eq!(shown(&file, r#"{"path": "/x/"}"#), "GET /contents/x/");
    for empty in ["", "/", "//x", "x//y"] {
        let params = serde_json::json!({"path": empty}).to_string();
        assert_eq!(
            shown(&file, &params),
            "path: must not be empty: it is part of the path",
            "{empty}"
        );
    }
}

#[test]
fn a_body_is_what_the_action_says() {
    let append = action(serde_json::json!({"path": "/v4/{range}:append", "query": ["how"]}));
    let params = r#"{"values": [[1]], "how": "RAW", "range": "A!A1:B2"}"#;
    assert_eq!(
        shown(&append, params),
        r#"POST /v4/A%21A1%3AB2:append?how=RAW {"values":[[1]]}"#
    );

    let record = action(serde_json::json!({"body": {"param": "fields"}}));
    assert_eq!(
        shown(&record, r#"{"fields": {"Name": 1.10}, "all": true}"#),
        r#"POST /act?all=true {"Name": 1.10}"#
    );
    assert_eq!(record.call("{}").unwrap().body, None);

    let none = action(serde_json::json!({"body": "none"}));
    assert_eq!(shown(&none, r#"{"a": 1}"#), "POST /act?a=1");
}

#[test]
fn any_request_can_be_made_of_an_http_instance() {
    let params = concat!(
        r#"{"path": "/orders/7", "query": {"expand": ["a", "b"], "page": 2}, "#,
        r#""body": [1.10, null]}"#
    );
    let query = "orders/7?expand=a&expand=b&page=2";
    assert_eq!(
        call("http", "post", params),
        format!("POST /{query} [1.10, null]")
    );
    let read = r#"{"path": "orders/7", "query": {"expand": ["a", "b"], "page": 2}}"#;
    assert_eq!(call("oauth2", "get", read), format!("GET /{query}"));
    assert_eq!(
        call("http", "delete", r#"{"path": "orders/7"}"#),
        "DELETE /orders/7"
    );
}

#[test]
fn params_are_checked_by_the_request_schema() {
    let check = |slug: &str, params: &str| -> Vec<String> {
        let faults = entry("email-delivery")
            .unwrap()
            .action(slug)
            .unwrap()
            .check(params);
        faults
            .into_iter()
            .map(|fault| format!("{} {}", fault.field, fault.message))
            .collect()
    };
    assert_eq!(check("list-templates", r#"{"page_size": 10}"#), [""; 0]);
    assert_eq!(
        check("list-templates", r#"{"page_size": 0, "colour": "red"}"#),
        [
            "params.page_size must be at least 1",
            "params.colour is not known here; there is generations, page_size, page_token"
        ]
    );
    let mail =
        r#"{"personalizations": [{"to": [{"name": "Ada"}]}], "from": {"email": "a@b.example"}}"#;
    assert_eq!(
        check("send-email", mail),
        [
            "params.personalizations[0].to[0].email is required",
            "params needs content or template_id"
        ]
    );
    assert_eq!(
        check("send-email", r#"{"send_at": 1e400}"#),
        ["params hold a number or a nesting that cannot be checked"]
    );
}

#[test]
fn a_provider_may_refuse_with_a_status_of_success() {
    let post = entry("slack").unwrap().action("post-message").unwrap();
    let refused = post.refusal(br#"{"ok": false, "error": "channel_not_found"}"#);
    assert_eq!(
        refused.as_deref(),
        Some("the provider refused the call: channel_not_found")
    );
    for taken in [r#"{"ok": true, "ts": "1"}"#, "", "[]", "no json"] {
        assert_eq!(post.refusal(taken.as_bytes()), None, "{taken}");
    }
    let graphql = entry("shopify").unwrap().action("graphql").unwrap();
    for (answer, why) in [
        (
            r#"{"errors": [{"message": "Throttled"}]}"#,
            Some("Throttled"),
        ),
        (r#"{"errors": "unauthorized"}"#, Some("it does not say why")),
        (
            concat!(
                r#"{"data": {"customerCreate": {"customer": null, "#,
                r#""userErrors": [{"message": "Email is invalid"}]}}}"#
            ),
            Some("Email is invalid"),
        ),
        (
            concat!(
                r#"{"data": {"customerCreate": {"customer": {"id": 1}, "userErrors": []}}, "#,
                r#""errors": []}"#
            ),
            None,
        ),
        (r#"{"data": null}"#, None),
    ] {
        let expected = why.map(|why| format!("the provider refused the call: {why}"));
        assert_eq!(graphql.refusal(answer.as_bytes()), expected, "{answer}");
    }
    let upsert = entry("hubspot").unwrap().action("upsert-contacts").unwrap();
    let part = concat!(
        r#"{"status": "COMPLETE", "results": [], "numErrors": 1, "#,
        r#""errors": [{"message": "invalid email"}]}"#
    );
    assert_eq!(
        upsert.refusal(part.as_bytes()).as_deref(),
        Some("the provider refused the call: invalid email")
    );
    assert_eq!(
        upsert.refusal(br#"{"status": "COMPLETE", "results": [], "numErrors": 0}"#),
        None
    );
    let list = entry("support-ticketing")
        .unwrap()
        .action("list-tickets")
        .unwrap();
    assert_eq!(list.refusal(br#"{"ok": false}"#), None);
}

#[test]
fn forms_write_nested_values_in_brackets() {
    let form = action(serde_json::json!({"body": "form"}));
    let params = concat!(
        r#"{"a": "x y", "expand[]": ["p", "q"], "items": [{"price": "p1", "n": 2}], "#,
        r#""meta": {"k": true}, "no": null}"#
    );
    assert_eq!(
        shown(&form, params),
        "POST /act \
         a=x%20y&expand%5B%5D=p&expand%5B%5D=q&items%5B0%5D%5Bprice%5D=p1&items%5B0%5D%5Bn%5D=2\
         &meta%5Bk%5D=true"
    );
    assert_eq!(
        form.call("{}").unwrap().headers["content-type"],
        "application/x-www-form-urlencoded"
    );
}

#[test]
fn headers_are_fixed_or_take_params() {
    let headers = serde_json::json!({"X-Version": "2022", "Idempotency-Key": "k-{key}"});
    let keyed = action(serde_json::json!({"headers": headers}));
    let with = keyed.call(r#"{"key": "7", "a": 1}"#).unwrap();
    assert_eq!(with.body.unwrap(), br#"{"a":1}"#);
    assert_eq!(with.headers["idempotency-key"], "k-7");
    let without = keyed.call("{}").unwrap();
    assert_eq!(without.headers["x-version"], "2022");
    assert_eq!(without.headers["content-type"], "application/json");
    assert!(!without.headers.contains_key("idempotency-key"));
    assert_eq!(
        keyed.call(r#"{"key": "a\nb"}"#).unwrap_err().param,
        "idempotency-key"
    );
}

#[test]
fn defaults_are_sent_where_the_caller_is_silent() {
    let mut list = action(serde_json::json!({"method": "GET"}));
    list.defaults = vec![("size".to_owned(), "50".to_owned())];
    assert_eq!(shown(&list, "{}"), "GET /act?size=50");
    assert_eq!(shown(&list, r#"{"size": 7}"#), "GET /act?size=7");
}

#[test]
fn a_call_is_the_action_whose_path_is_the_most_specific() {
    let of = |entry_id: &str, method: &str, path: &str| {
        entry(entry_id)
            .unwrap()
            .action_of(method, path)
            .map(|action| action.slug.as_str())
    };
    assert_eq!(
        of("slack", "POST", "/chat.postMessage"),
        Some("post-message")
    );
    assert_eq!(
        of("slack", "POST", "chat.postMessage/"),
        Some("post-message")
    );
    assert_eq!(of("slack", "GET", "/chat.postMessage"), None);
    assert_eq!(of("slack", "POST", "/chat.postMessage/x"), None);
    let most_specific = |path: &str| {
        let mut entry = entry("slack").unwrap().clone();
        entry.actions = [
            "/{+path}",
            "/{table}/{id}",
            "/{table}/latest",
            "/orders/{id}",
            "/orders/{+path}",
        ]
        .into_iter()
        .map(|path| action(serde_json::json!({ "slug": path, "path": path })))
        .collect();
        entry
            .action_of("POST", path)
            .map(|action| action.slug.clone())
    };
    for (path, slug) in [
        ("/orders/latest", Some("/orders/{id}")),
        ("/orders/7", Some("/orders/{id}")),
        ("/orders/7/lines", Some("/orders/{+path}")),
        ("/carts/latest", Some("/{table}/latest")),
        ("/carts/7", Some("/{table}/{id}")),
        ("/carts", Some("/{+path}")),
    ] {
        assert_eq!(most_specific(path).as_deref(), slug, "{path}");
    }
}
