//! Bodies and queries: what is taken, and by which name a fault is told.

use http::StatusCode;

use crate::echo::{call, get};

const TABLES: &str = "/api/v1/lookup-tables";

fn fault(field: &str, message: &str) -> Vec<(String, String)> {
    vec![(field.to_owned(), message.to_owned())]
}

#[tokio::test]
async fn takes_both_spellings_of_a_name() {
    for body in [r#"{"yamlConfig":"x"}"#, r#"{"yaml_config":"x"}"#] {
        let answer = call("POST", "/api/v1/flows", &[], body).await;
        assert_eq!(answer.json()["yamlConfig"], "x");
    }
    let twice = call(
        "POST",
        "/api/v1/flows",
        &[],
        r#"{"yamlConfig":"x","yaml_config":"y"}"#,
    )
    .await;
    assert_eq!(twice.faults(400), fault("yaml_config", "given twice"));
}

#[tokio::test]
async fn names_what_is_unknown_or_of_a_wrong_type_by_its_path() {
    let put = async |body: &'static str| {
        call("PUT", "/api/v1/lookup-tables/lt_1/entries", &[], body).await
    };
    assert_eq!(
        put(r#"{"entires":[]}"#).await.faults(400),
        fault("entires", "unknown field; did you mean \"entries\"")
    );
    let nested = put(r#"{"entries":[{"key":"a","value":"b"},{"key":1,"val":"c"},7]}"#).await;
    assert_eq!(
        nested.faults(400),
        [
            (
                "entries[1].key".to_owned(),
                "expected a string, found a number".to_owned()
            ),
            (
                "entries[1].val".to_owned(),
                "unknown field; known: key, value".to_owned()
            ),
            (
                "entries[2]".to_owned(),
                "expected an object, found a number".to_owned()
            ),
        ]
    );
    assert_eq!(
        nested.json()["error"],
        "entries[1].key: expected a string, found a number (and 2 more)"
    );
    assert_eq!(nested.json()["code"], "INVALID_ARGUMENT");
    assert_eq!(
        put(r#"{"entries":{}}"#).await.faults(400),
        fault("entries", "expected a list, found an object")
    );
    assert_eq!(
        put(r#"{"entries":[null]}"#).await.faults(400),
        fault("entries[0]", "expected an object, found null")
    );
    assert_eq!(
        put("[]").await.faults(400),
        fault("body", "expected an object, found a list")
    );
    let doubled = put(r#"{"entries":[{"key":"a","key":"b"}]}"#).await;
    assert_eq!(doubled.faults(400), fault("entries[0].key", "given twice"));
}

#[tokio::test]
async fn reports_the_place_of_malformed_json() {
    let answer = call("POST", TABLES, &[], "{\n  \"name\": }").await;
    let told = "malformed JSON at line 2, column 11: found `}`, expected a value";
    assert_eq!(answer.faults(400), fault("name", told));
    assert_eq!(answer.json()["error"], told);
    let entries = r#"{"entries":[{"key":"a"},{"key":"b","value":"c"]}"#;
    let nested = call("PUT", "/api/v1/lookup-tables/lt_1/entries", &[], entries).await;
    assert_eq!(nested.faults(400)[0].0, "entries[1].value");
    assert_eq!(
        call("POST", TABLES, &[], "nonsense").await.faults(400)[0].0,
        "body"
    );
}

#[tokio::test]
async fn reads_numbers_strictly() {
    let rollback =
        async |body: &'static str| call("POST", "/api/v1/flows/flw_1/rollback", &[], body).await;
    let wrong = "expected a whole number from 0 to 4294967295, found";
    for (given, found) in [
        ("-1", "\"-1\""),
        ("1.5", "\"1.5\""),
        ("4294967296", "\"4294967296\""),
        ("1e99", "\"1e99\""),
    ] {
        let body = format!("{{\"versionNumber\":{given}}}");
        let answer = call("POST", "/api/v1/flows/flw_1/rollback", &[], body).await;
        assert_eq!(
            answer.faults(400),
            fault("versionNumber", &format!("{wrong} {found}"))
        );
    }
    for taken in [
        r#"{"versionNumber":2}"#,
        r#"{"versionNumber":2.0}"#,
        r#"{"versionNumber":null}"#,
    ] {
        assert_eq!(
            rollback(taken).await.status,
            StatusCode::NOT_IMPLEMENTED,
            "{taken}"
        );
    }
    let text = rollback(r#"{"versionNumber":"2"}"#).await;
    assert_eq!(
        text.faults(400),
        fault("versionNumber", "expected a whole number, found a string")
    );
}

#[tokio::test]
async fn leaves_out_what_the_body_leaves_out() {
    let answer = call(
        "PATCH",
        "/api/v1/flows/flw_1",
        &[],
        r#"{"description":"","name":null}"#,
    )
    .await;
    assert_eq!(answer.json()["changeSummary"], "[false, true, false]");
}

#[tokio::test]
async fn takes_an_empty_body_as_an_empty_object() {
    for headers in [
        &[][..],
        &[("content-type", "application/json")],
        &[("content-type", "text/html")],
    ] {
        let answer = call("POST", "/api/v1/messages/msg_1/retry", headers, "").await;
        assert_eq!(answer.status.as_u16(), 202);
        assert_eq!(answer.text.as_str(), r#"{"messageId":"msg_1"}"#);
    }
}

#[tokio::test]
async fn refuses_what_is_not_json_and_what_is_too_large() {
    let html = call("POST", TABLES, &[("content-type", "text/html")], "{}").await;
    assert_eq!(html.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let latin = call(
        "POST",
        TABLES,
        &[("content-type", "application/json; charset=latin1")],
        "{}",
    )
    .await;
    assert_eq!(latin.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let zipped = call("POST", TABLES, &[("content-encoding", "gzip")], "{}").await;
    assert_eq!(zipped.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for json in [
        "application/merge-patch+json; charset=UTF-8",
        "Text/JSON",
        "model/gltf+json",
    ] {
        let headers = [("content-type", json)];
        let answer = call("POST", TABLES, &headers, r#"{"name":"a"}"#).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{json}");
    }
    let large = call(
        "POST",
        TABLES,
        &[],
        format!("{{\"name\":\"{}\"}}", "x".repeat(5000)),
    )
    .await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(large.json()["error"], "the body is larger than 4096 bytes");
}

#[tokio::test]
async fn a_body_may_repeat_the_path_but_not_contradict_it() {
    let path = "/api/v1/lookup-tables/lt_1/entries";
    let same = call("POST", path, &[], r#"{"id":"lt_1","key":"a","value":"b"}"#).await;
    assert_eq!(same.json()["id"], "lt_1/a=b");
    let other = call("POST", path, &[], r#"{"id":"lt_2","key":"a","value":"b"}"#).await;
    assert_eq!(
        other.faults(400),
        fault("id", "the body and the path say different things")
    );
}

#[tokio::test]
async fn reads_queries_by_type_and_name() {
    let listed = get("/api/v1/lookup-tables?limit=2&offset=4&search=a+b%26c")
        .await
        .json();
    let expect = serde_json::json!({
        "data": [],
        "pagination": {"total": 0, "limit": 2, "offset": 4, "nextCursor": "a b&c"},
    });
    assert_eq!(listed, expect);
    for (query, field, message) in [
        (
            "limt=1",
            "limt",
            "unknown query parameter; did you mean \"limit\"",
        ),
        (
            "size=1",
            "size",
            "unknown query parameter; known: search, limit, offset",
        ),
        (
            "limit=x",
            "limit",
            "expected a whole number from 1 to 500, found \"x\"",
        ),
        (
            "limit=",
            "limit",
            "expected a whole number from 1 to 500, found \"\"",
        ),
        ("limit=1&limit=2", "limit", "given twice"),
        (
            "search=%zz",
            "search",
            "the query is not percent-encoded UTF-8",
        ),
    ] {
        assert_eq!(
            get(&format!("{TABLES}?{query}")).await.faults(400),
            fault(field, message),
            "{query}"
        );
    }
}

#[tokio::test]
async fn fields_of_the_path_and_of_a_body_are_no_query_parameters() {
    assert_eq!(
        get("/api/v1/lookup-tables/lt_1?id=lt_2").await.faults(400),
        fault("id", "unknown query parameter; known: search, limit")
    );
    let answer = call("POST", &format!("{TABLES}?name=x"), &[], r#"{"name":"y"}"#).await;
    assert_eq!(answer.faults(400), fault("name", "unknown query parameter"));
}

#[tokio::test]
async fn a_method_without_a_body_takes_an_empty_one_only() {
    assert_eq!(
        call("DELETE", "/api/v1/lookup-tables/lt_1", &[], " {} ")
            .await
            .status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        call("DELETE", "/api/v1/lookup-tables/lt_1", &[], r#"{"x":1}"#)
            .await
            .status,
        StatusCode::BAD_REQUEST
    );
}
