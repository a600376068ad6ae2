//! Endpoints that ask a poll for more time than it shows nothing for.

use kanat_tests::TestApp;
use kanat_tests::target::Reply;

use super::{Provider, polled, polling};

#[tokio::test]
async fn a_cycle_that_waits_long_shows_why_and_until_when() {
    let provider = Provider::scripted(0, |_, _| {
        let retry_after = ("retry-after".to_owned(), "60".to_owned());
        Some(Reply::Answer(429, vec![retry_after], "{}".to_owned()))
    })
    .await;
    let app = TestApp::start().await;
    app.api.http_instance("erp", &provider.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let (flow, _) = app
        .api
        .deployed(&polling("throttled", "/cursor", "    interval: 1h\n"))
        .await;
    let error = polled(&app.api, &flow).await["lastError"].clone();
    let error = error.as_str().unwrap();
    let begins = format!("GET {}/cursor answered 429", provider.url());
    assert!(error.starts_with(&begins), "{error}");
    assert!(error.contains("; it is asked again at 2"), "{error}");
    assert_eq!(provider.asked().len(), 1);
}
