//! Which route a path and a method find.

use crate::echo::{call, gateway, get};

#[tokio::test]
async fn a_variable_takes_any_one_segment() {
    let delete = async |key: &'static str| {
        call(
            "DELETE",
            &format!("/api/v1/lookup-tables/lt_1/entries/{key}"),
            &[],
            "",
        )
        .await
    };
    for (encoded, key) in [
        ("a%2Fb", "a/b"),
        ("v1.2", "v1.2"),
        ("%C3%A4%20%2B+", "ä ++"),
        ("%2e%2e", ".."),
        ("a:b@c", "a:b@c"),
    ] {
        let answer = delete(encoded).await;
        assert_eq!(answer.status.as_u16(), 404);
        assert_eq!(answer.json()["error"], format!("no key {key}"));
    }
    assert_eq!(delete("%zz").await.status, 400);
    assert_eq!(delete("%ff").await.status, 400);
    assert_eq!(delete("").await.json()["code"], "NOT_FOUND");
}

#[tokio::test]
async fn a_variable_is_typed() {
    assert_eq!(
        get("/api/v1/flows/flw_1/versions/3").await.json()["version"],
        3
    );
    assert_eq!(
        get("/api/v1/flows/flw_1/versions/x").await.faults(400)[0].0,
        "version"
    );
}

#[tokio::test]
async fn a_literal_goes_before_a_variable() {
    assert_eq!(
        call("POST", "/api/v1/messages/retry", &[], r#"{"ids":["a"]}"#)
            .await
            .json()["count"],
        1
    );
    assert_eq!(
        get("/api/v1/messages/retry").await.header("allow"),
        "POST, OPTIONS"
    );
}

#[tokio::test]
async fn an_unknown_path_is_not_found_and_a_known_one_says_what_it_takes() {
    for path in [
        "/api/v1/nothing",
        "/api/v1",
        "/api/v1/flows/",
        "/api/v1//flows",
        "/api/v1/flows/a/b/c/d",
    ] {
        let answer = get(path).await;
        assert_eq!(answer.status.as_u16(), 404, "{path}");
        assert_eq!(answer.json()["code"].as_str(), Some("NOT_FOUND"), "{path}");
    }
    let answer = call("POST", "/api/v1/flows/flw_1", &[], "{}").await;
    assert_eq!(answer.status.as_u16(), 405);
    assert_eq!(
        answer.header("allow"),
        "GET, PUT, PATCH, DELETE, HEAD, OPTIONS"
    );
    assert_eq!(answer.json()["code"], "UNIMPLEMENTED");
}

#[tokio::test]
async fn options_and_head_are_answered() {
    let options = call("OPTIONS", "/api/v1/flows", &[], "").await;
    assert_eq!(options.status.as_u16(), 204);
    assert_eq!(options.header("allow"), "POST, GET, HEAD, OPTIONS");
    let get = get("/api/v1/flows/flw_1").await;
    let head = call("HEAD", "/api/v1/flows/flw_1", &[], "").await;
    assert_eq!(head.status.as_u16(), 200);
    assert_eq!(head.text.as_str(), "");
    assert_eq!(head.header("content-length"), get.text.len().to_string());
}

#[test]
fn lists_its_routes() {
    let routes = gateway().routes();
    let update: Vec<_> = routes
        .iter()
        .filter(|r| r.grpc_method == "kanat.v1.FlowService/UpdateFlow")
        .collect();
    assert_eq!(
        update.iter().map(|r| r.method.as_str()).collect::<Vec<_>>(),
        ["PUT", "PATCH"]
    );
    assert!(
        update
            .iter()
            .all(|r| r.path == "/api/v1/flows/{id}" && !r.public)
    );
}

#[tokio::test]
async fn can_be_served_from_any_thread() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let request = http::Request::get("/")
        .body(http_body_util::Full::new(bytes::Bytes::new()))
        .unwrap();
    assert_eq!(sendable(gateway().handle(request)).await.status(), 404);
}
