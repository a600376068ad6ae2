//! Whatever comes in, what goes out is an answer with a body that can be read.

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use serde_json::Value;

use crate::echo::gateway;

fn answered(
    method: &str,
    uri: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<(), TestCaseError> {
    let Ok(uri) = uri.parse::<Uri>() else {
        return Ok(());
    };
    let Ok(content_type) = http::HeaderValue::from_bytes(content_type.as_bytes()) else {
        return Ok(());
    };
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("authorization", "Bearer key")
        .header("content-type", content_type)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (parts, body) = runtime.block_on(async {
        let (parts, body) = gateway().handle(request).await.into_parts();
        (parts, body.collect().await.unwrap().to_bytes())
    });
    prop_assert!(parts.headers.contains_key("x-request-id"));
    if !parts.status.is_success() {
        let body: Value = serde_json::from_slice(&body).unwrap();
        prop_assert!(
            body["error"].is_string() && body["code"].is_string(),
            "{}",
            body
        );
        prop_assert!(
            body["details"].is_array() && body["requestId"].is_string(),
            "{}",
            body
        );
        prop_assert_ne!(parts.status, 500, "{}", body);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_as_a_body(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        answered(
            "PUT",
            "/api/v1/lookup-tables/lt_1/entries",
            "application/json",
            body.clone(),
        )?;
        answered(
            "POST",
            "/api/v1/lookup-tables/lt_1/import",
            "multipart/form-data; boundary=a",
            body,
        )?;
    }

    #[test]
    fn any_json_as_a_body(
        body in "(\\{|\\[|\\}|\\]|:|,|\"entries\"|\"key\"|\"value\"|null|1e9\
                 |\"\\\\ud800\"|\"x\"){0,24}",
    ) {
        answered(
            "PUT",
            "/api/v1/lookup-tables/lt_1/entries",
            "application/json",
            body.into_bytes(),
        )?;
    }

    #[test]
    fn any_path_and_query(path in "[!-~]{0,40}", query in "[!-~]{0,40}") {
        answered(
            "GET",
            &format!("/api/v1/{path}"),
            "application/json",
            Vec::new(),
        )?;
        answered(
            "GET",
            &format!("/api/v1/lookup-tables?{query}"),
            "application/json",
            Vec::new(),
        )?;
        answered(
            "DELETE",
            &format!("/api/v1/lookup-tables/lt_1/entries/{path}"),
            "application/json",
            Vec::new(),
        )?;
    }

    #[test]
    fn any_content_type(content_type in "[ -~]{0,30}", form in "multipart/form-data;[ -~]{0,20}") {
        answered(
            "POST",
            "/api/v1/lookup-tables/lt_1/import",
            &content_type,
            b"key,value\n".to_vec(),
        )?;
        answered(
            "POST",
            "/api/v1/lookup-tables/lt_1/import",
            &form,
            b"--a\r\n\r\n--a--".to_vec(),
        )?;
    }
}
