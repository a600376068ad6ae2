//! Uploads and downloads.

use crate::echo::{call, get};

const IMPORT: &str = "/api/v1/lookup-tables/lt_1/import";

fn form(parts: &[(&str, &str)]) -> String {
    let part = |(name, text): &(&str, &str)| {
        format!(
            "--XyZ\r\nContent-Disposition: form-data; name=\"{name}\"; \
             filename=\"a.csv\"\r\n\r\n{text}\r\n"
        )
    };
    parts.iter().map(part).collect::<String>() + "--XyZ--\r\n"
}

const MULTIPART: (&str, &str) = ("content-type", "multipart/form-data; boundary=XyZ");

#[tokio::test]
async fn takes_a_file_as_a_part_bare_or_in_json() {
    let csv = "key,value\r\nde,\"a,b\"\r\n";
    let bodies = [
        (MULTIPART, form(&[("file", csv)])),
        (("content-type", "text/csv; charset=utf-8"), csv.to_owned()),
        (
            ("content-type", "application/json"),
            serde_json::json!({ "csv": csv }).to_string(),
        ),
    ];
    for (content_type, body) in bodies {
        let answer = call("POST", IMPORT, &[content_type], body).await;
        assert_eq!(
            answer.json(),
            serde_json::json!({"id": csv, "entries_count": 2, "version": 1})
        );
    }
}

#[tokio::test]
async fn refuses_other_parts_and_broken_forms() {
    for (parts, field, message) in [
        (
            &[("other", "x")][..],
            "other",
            "found the part \"other\", expected only the part \"file\"",
        ),
        (
            &[("file", "x"), ("file", "y")],
            "file",
            "the part \"file\" is there twice",
        ),
        (
            &[("file", "x"), ("name", "y")],
            "name",
            "found the part \"name\", expected only the part \"file\"",
        ),
        (&[], "file", "the part \"file\" is missing"),
    ] {
        let answer = call("POST", IMPORT, &[MULTIPART], form(parts)).await;
        assert_eq!(answer.faults(400), [(field.to_owned(), message.to_owned())]);
    }
    let broken: Vec<u8> = form(&[("file", "?")])
        .bytes()
        .map(|byte| if byte == b'?' { 0xff } else { byte })
        .collect();
    let answer = call("POST", IMPORT, &[MULTIPART], broken).await;
    assert_eq!(
        answer.faults(400),
        [(
            "file".to_owned(),
            "the part \"file\" is not UTF-8".to_owned()
        )]
    );
    let long = call(
        "POST",
        IMPORT,
        &[MULTIPART],
        form(&[(&"n".repeat(5000), "x")]),
    )
    .await;
    assert_eq!(long.status, 400);
    assert!(
        long.text.len() < 4000,
        "the name is not told whole: {} bytes",
        long.text.len()
    );
    assert_eq!(call("POST", IMPORT, &[MULTIPART], "").await.status, 400);
    assert_eq!(
        call("POST", IMPORT, &[MULTIPART], "--XyZ\r\nContent")
            .await
            .status,
        400
    );
    assert_eq!(
        call(
            "POST",
            IMPORT,
            &[("content-type", "multipart/form-data")],
            "x"
        )
        .await
        .status,
        400
    );
    assert_eq!(
        call("POST", IMPORT, &[("content-type", "image/png")], "x")
            .await
            .status,
        415
    );
    assert_eq!(
        call(
            "POST",
            IMPORT,
            &[("content-type", "text/csv")],
            "x".repeat(8193)
        )
        .await
        .status,
        413
    );
    let broken = call("POST", IMPORT, &[("content-type", "text/csv")], vec![0xff]).await;
    assert_eq!(
        broken.faults(400),
        [("csv".to_owned(), "the file is not UTF-8".to_owned())]
    );
}

#[tokio::test]
async fn gives_a_file_with_its_type_and_name() {
    let answer = get("/api/v1/lookup-tables/lt_1/export").await;
    assert_eq!(answer.text, "key,value\nde,Germany\n");
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        answer.header("content-disposition"),
        "attachment; filename=\"lookup-table.csv\""
    );
}
