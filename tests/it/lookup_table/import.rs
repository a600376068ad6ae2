//! `POST /lookup-tables/{id}/import`: a multipart CSV file with the columns `key` and `value`.

use kanat_tests::{Rest, TestApp};
use reqwest::multipart::{Form, Part};
use serde_json::json;

use super::table;

#[tokio::test]
async fn a_file_is_one_modification_and_a_wrong_one_none() {
    let app = TestApp::start().await;
    let path = table(&app.api, "imported", &[("DE", "old")]).await;
    let upload = async |csv: &str| {
        let file = Part::text(csv.to_owned())
            .file_name("codes.csv")
            .mime_str("text/csv")
            .unwrap();
        let form = Form::new().part("file", file);
        Rest::send(
            app.api
                .request("POST", &format!("{path}/import"))
                .multipart(form),
        )
        .await
    };
    let done = upload("\u{feff}key,value\r\nDE,276\r\nFR,\"250\"\r\n")
        .await
        .expect(200);
    assert_eq!(&done["entries_count"], &json!(2));
    assert_eq!(&done["version"], &json!(3));
    for wrong in ["name,value\na,b\n", "key,value\na\n", "", "key,value\n,x\n"] {
        upload(wrong).await.expect_error(400, "INVALID_ARGUMENT");
    }
    let read = app.api.get(&path).await.expect(200);
    assert_eq!(read["version"], 3);
    assert_eq!(read["entries"][0], json!({"key": "DE", "value": "276"}));
}

#[tokio::test]
async fn a_file_of_commas_costs_little_and_is_not_quoted_whole() {
    let app = TestApp::start().await;
    let path = table(&app.api, "commas", &[]).await;
    let before = kanat_tests::memory::resident_kib(app.pid());
    for head in ["", "key,value\n"] {
        let csv = head.to_owned() + &",".repeat(15 << 20);
        let refused = app
            .api
            .raw("POST", &format!("{path}/import"), "text/csv", csv)
            .await;
        assert!(refused.text.len() < 4096, "{} bytes", refused.text.len());
        refused.expect_error(400, "INVALID_ARGUMENT");
    }
    let csv = "x".repeat(10 << 20) + ",y\n";
    let refused = app
        .api
        .raw("POST", &format!("{path}/import"), "text/csv", csv)
        .await;
    assert!(refused.text.len() < 8192, "{} bytes", refused.text.len());
    refused.expect_error(400, "INVALID_ARGUMENT");
    let grown = kanat_tests::memory::peak_kib(app.pid()) - before;
    assert!(grown < (200 << 10), "it grew by {} MiB", grown >> 10);
}
