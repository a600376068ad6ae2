//! Each way to go from page to page, record by record.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{PAGE, Provider, all, delivered, messages, polled, polling};

const RECORDS: u64 = 1_050;

const CURSOR: &str = "    interval: 1h\n    records_path: data.items\n    pagination: { strategy: \
                      cursor, cursor_path: meta.next, cursor_param: cursor }\n";
const TOTAL: &str = "    interval: 1h\n    records_path: items\n    pagination: { strategy: \
                     offset, offset_param: offset, page_size: 100, total_path: total }\n";
const OFFSET: &str = "    interval: 1h\n    pagination: { strategy: offset, offset_param: offset, \
                      page_size: 100 }\n";
const LINK: &str = "    interval: 1h\n    pagination: { strategy: link_header }\n";
const TOKEN: &str = "    interval: 1h\n    records_path: items\n    pagination: { strategy: \
                     next_token, token_path: nextPageToken, token_param: page_token }\n";

/// By the endpoint of the provider.
pub const STRATEGIES: [(&str, &str); 5] = [
    ("cursor", CURSOR),
    ("total", TOTAL),
    ("offset", OFFSET),
    ("link", LINK),
    ("token", TOKEN),
];

#[tokio::test]
async fn every_record_of_every_page_is_one_message_by_each_strategy() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let provider = Provider::start(RECORDS).await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let mut flows = Vec::new();
    for (name, poll) in STRATEGIES {
        flows.push((
            name,
            app.api
                .deployed(&polling(name, &format!("/{name}"), poll))
                .await
                .0,
        ));
    }
    for (name, flow) in &flows {
        assert_eq!(
            delivered(&target, name, 1_050).await,
            all(RECORDS),
            "{name}"
        );
        assert_eq!(messages(&app.api, flow).await, RECORDS, "{name}");
        let asked = provider
            .asked()
            .iter()
            .filter(|path| path.starts_with(&format!("/{name}")))
            .count();
        assert_eq!(asked, 11, "{name}: a page is asked for once");
    }
    let body = app
        .api
        .get(&format!("/api/v1/messages?flowId={}&limit=1", flows[0].1))
        .await
        .expect(200);
    let message = &body["data"][0];
    assert_eq!(&message["trigger"], &json!("poll"));
    assert_eq!(
        &message["payload"]["name"],
        &json!("record 1049, \"quoted\"")
    );
}

#[tokio::test]
async fn max_pages_ends_a_cycle_after_exactly_so_many() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let provider = Provider::start(RECORDS).await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let capped = |poll: &str, pages: u32| {
        poll.replace(
            "pagination: {",
            &format!("pagination: {{ max_pages: {pages},"),
        )
    };
    for (name, poll, pages) in [
        ("cursor", CURSOR, 1),
        ("total", TOTAL, 3),
        ("link", LINK, 2),
        ("token", TOKEN, 11),
    ] {
        let (flow, _) = app
            .api
            .deployed(&polling(name, &format!("/{name}"), &capped(poll, pages)))
            .await;
        let records = (u64::from(pages) * PAGE).min(RECORDS);
        assert_eq!(
            delivered(&target, name, records as usize).await,
            all(records),
            "{name}"
        );
        // The next cycle begins with a deploy, so that everything the first asked for is known.
        let path = format!("/api/v1/flows/{flow}");
        let yaml = app.api.get(&path).await.expect(200)["yamlConfig"]
            .as_str()
            .unwrap()
            .to_owned();
        let changed = format!("{yaml}description: the next cycle\n");
        app.api
            .put(&path, &json!({ "yamlConfig": changed }))
            .await
            .expect(200);
        app.api
            .post(&format!("{path}/deploy"), &json!({}))
            .await
            .expect(200);
        delivered(&target, name, records as usize * 2).await;
        let asked = provider
            .asked()
            .iter()
            .filter(|path| path.starts_with(&format!("/{name}")))
            .count();
        assert_eq!(asked, pages as usize * 2, "{name}");
    }
}

#[tokio::test]
async fn a_poll_without_pages_asks_once_and_without_a_path_takes_the_whole_list() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let provider = Provider::start(50).await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    app.api
        .deployed(&polling(
            "plain",
            "/offset",
            "    params: { a: \"1\" }\n    headers: { X-A: b }\n",
        ))
        .await;
    assert_eq!(delivered(&target, "plain", 50).await, all(50));
    let asked = provider.target.received();
    assert_eq!(asked[0].path.as_str(), "/offset?a=1");
    assert_eq!(asked[0].header("x-a"), "b");
}

#[tokio::test]
async fn pages_that_are_not_asked_for_show_in_the_state_of_the_poll() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let provider = Provider::start(150).await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let window = CURSOR.replace("pagination: {", "pagination: { max_pages: 1,");
    let capped = format!("{window}    params: {{ since: \"{{{{ state.last_success_at }}}}\" }}\n");
    let single = "    interval: 1h\n    records_path: data.items\n";
    for (name, poll, error) in [
        (
            "capped",
            capped.as_str(),
            "the cycle ended at max_pages (1) while the answer named a next page: the next cycle \
             goes on there, and state.last_success_at stays as it is until the last page",
        ),
        (
            "single",
            single,
            "source.poll has no pagination, and a next page at \"meta.next\": no further page was \
             asked for",
        ),
    ] {
        let (flow, _) = app.api.deployed(&polling(name, "/cursor", poll)).await;
        assert_eq!(polled(&app.api, &flow).await["lastError"], error, "{name}");
    }
    // Nothing moves on that the pages behind would be lost by.
    let (flow, _) = app
        .api
        .deployed(&polling("window", "/cursor", &window))
        .await;
    let poll = polled(&app.api, &flow).await;
    assert!(poll["lastError"].is_null(), "{poll}");
}
