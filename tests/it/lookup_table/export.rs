//! `GET /lookup-tables/{id}/export`: a CSV file that imports again.

use kanat_tests::TestApp;

use super::table;

#[tokio::test]
async fn quotes_what_needs_it_and_imports_again() {
    let app = TestApp::start().await;
    let entries = [
        ("a,b", "x \"y\""),
        ("line\nbreak", "ü"),
        ("plain", ""),
        ("=1+1", "-5"),
        ("'quoted", "-x"),
    ];
    let path = table(&app.api, "exported", &entries).await;
    let csv = app.api.get(&format!("{path}/export")).await;
    assert_eq!(csv.status, 200, "{}", csv.text);
    assert!(csv.header("content-type").starts_with("text/csv"));
    assert!(csv.text.starts_with("key,value"), "{}", csv.text);
    assert!(
        csv.text.contains("\n'=1+1,-5\n") && csv.text.contains("\n''quoted,'-x\n"),
        "{}",
        csv.text
    );
    let copy = table(&app.api, "copy", &[]).await;
    app.api
        .raw("POST", &format!("{copy}/import"), "text/csv", csv.text)
        .await
        .expect(200);
    let read = async |path: String| app.api.get(&path).await.expect(200)["entries"].clone();
    assert_eq!(read(copy.clone()).await, read(path).await);

    let empty = table(&app.api, "empty", &[]).await;
    let csv = app.api.get(&format!("{empty}/export")).await;
    let before = app.api.get(&copy).await.expect(200);
    app.api
        .raw("POST", &format!("{copy}/import"), "text/csv", csv.text)
        .await
        .expect(200);
    assert_eq!(app.api.get(&copy).await.expect(200), before);
}
