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
        let file = Part::text(csv.to_owned()).file_name("codes.csv").mime_str("text/csv").unwrap();
        let form = Form::new().part("file", file);
        Rest::send(app.api.request("POST", &format!("{path}/import")).multipart(form)).await
    };
    let done = upload("\u{feff}key,value\r\nDE,276\r\nFR,\"250\"\r\n").await.expect(200);
    assert_eq!((&done["entries_count"], &done["version"]), (&json!(2), &json!(3)));
    for wrong in ["name,value\na,b\n", "key,value\na\n", "", "key,value\n,x\n"] {
        upload(wrong).await.expect_error(400, "INVALID_ARGUMENT");
    }
    let read = app.api.get(&path).await.expect(200);
    assert_eq!(read["version"], 3);
    assert_eq!(read["entries"][0], json!({"key": "DE", "value": "276"}));
}
