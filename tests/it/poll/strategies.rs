//! Each way to go from page to page, record by record.

use kanat_tests::target::Reply;
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

const PAGES: &str = "    interval: 1h\n    pagination: { strategy: page, page_param: page, \
                     page_size: 100 }\n";

/// By the endpoint of the provider.
pub const STRATEGIES: [(&str, &str); 6] = [
    ("cursor", CURSOR),
    ("total", TOTAL),
    ("offset", OFFSET),
    ("link", LINK),
    ("token", TOKEN),
    ("page", PAGES),
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

#[tokio::test]
async fn what_a_wrong_pagination_left_out_is_read_once_it_is_right() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let provider = FakeTarget::scripted(|received, _| {
        let answer = if received.path.contains("since=") {
            json!({ "items": [], "paging": {} })
        } else if received.path.contains("token=second") {
            json!({ "items": [{ "id": 3 }], "paging": {} })
        } else {
            let paging = json!({ "next_page_token": "second" });
            json!({ "items": [{ "id": 1 }, { "id": 2 }], "paging": paging })
        };
        Reply::Answer(200, Vec::new(), answer.to_string())
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let poll = "    interval: 1s\n    records_path: items\n    record_id: id\n    params: { since: \
                \"{{ state.last_success_at }}\" }\n    pagination: { strategy: next_token, \
                token_path: paging.next_token, token_param: token }\n";
    let wrong = polling("tickets", "/tickets", poll);
    let (flow, _) = app.api.deployed(&wrong).await;
    let error = polled(&app.api, &flow).await["lastError"].to_string();
    assert!(error.contains("no further page was asked for"), "{error}");
    for request in provider.arrivals(2).await {
        assert_eq!(request.path, "/tickets");
    }
    let right = wrong.replace("paging.next_token", "paging.next_page_token");
    let flow = format!("/api/v1/flows/{flow}");
    let update = json!({ "yamlConfig": right });
    app.api.patch(&flow, &update).await.expect(200);
    let deploy = format!("{flow}/deploy");
    app.api.post(&deploy, &json!({})).await.expect(200);
    assert_eq!(delivered(&target, "tickets", 3).await, [1, 2, 3]);
}

/// A provider whose page `n` has the records of `pages[n]`; what lies behind them is `behind`.
async fn paged(pages: Vec<Vec<u64>>, behind: Reply) -> FakeTarget {
    FakeTarget::scripted(move |received, _| {
        let (_, query) = received.path.split_once('?').unwrap_or_default();
        let page = query.split('&').find_map(|pair| pair.strip_prefix("page="));
        let page: usize = page
            .and_then(|page| page.parse().ok())
            .unwrap_or(usize::MAX);
        match pages.get(page) {
            Some(ids) => {
                let records: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
                Reply::Answer(200, Vec::new(), json!(records).to_string())
            }
            None => behind.clone(),
        }
    })
    .await
}

#[tokio::test]
async fn pages_are_asked_for_by_number_until_one_is_empty_or_short() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let empty = Reply::Answer(200, Vec::new(), "[]".to_owned());
    // The first pages are longer than page_size, which is no end.
    for (name, query, keys, pages, asked) in [
        (
            "unsized",
            "/all?page=7&x=1",
            "page_param: page, first_page: 0",
            vec![vec![0, 1, 2], vec![3], vec![4, 5]],
            &[
                "/all?x=1&page=0",
                "/all?x=1&page=1",
                "/all?x=1&page=2",
                "/all?x=1&page=3",
            ][..],
        ),
        (
            "sized",
            "/all?n=9",
            "page_param: page, page_size_param: n, page_size: 2",
            vec![vec![], vec![0, 1, 2], vec![3, 4], vec![5], vec![6, 7]],
            &["/all?n=2&page=1", "/all?n=2&page=2", "/all?n=2&page=3"][..],
        ),
        (
            "counted",
            "/all",
            "page_param: page, first_page: 2, page_size: 2",
            vec![vec![], vec![], vec![0, 1], vec![2, 3], vec![4, 5]],
            &["/all?page=2", "/all?page=3", "/all?page=4", "/all?page=5"][..],
        ),
    ] {
        let provider = paged(pages, empty.clone()).await;
        app.api
            .http_instance(&format!("shop-{name}"), &provider.url())
            .await;
        let poll = format!("    interval: 1h\n    pagination: {{ strategy: page, {keys} }}\n");
        let yaml = polling(name, query, &poll)
            .replace("connector: shop", &format!("connector: shop-{name}"));
        let (flow, _) = app.api.deployed(&yaml).await;
        let poll = polled(&app.api, &flow).await;
        assert_eq!(poll.get("lastError"), None, "{name}: {poll}");
        assert_eq!(delivered(&target, name, 6).await, all(6), "{name}");
        let paths: Vec<_> = provider
            .received()
            .into_iter()
            .map(|call| call.path)
            .collect();
        assert_eq!(paths, asked, "{name}");
    }
}

#[tokio::test]
async fn a_page_that_repeats_or_fails_fails_the_cycle() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let same = Reply::Answer(
        200,
        Vec::new(),
        json!([{ "id": 0 }, { "id": 1 }]).to_string(),
    );
    let gone = Reply::Answer(404, Vec::new(), "{}".to_owned());
    for (name, behind, told) in [
        (
            "same",
            same,
            "a page has the same records as the one before: the endpoint takes no notice of the \
             parameter \"page\"",
        ),
        ("gone", gone, "/all?page=2 answered 404"),
    ] {
        let provider = paged(vec![vec![], vec![0, 1]], behind).await;
        app.api
            .http_instance(&format!("shop-{name}"), &provider.url())
            .await;
        let poll = "    interval: 1s\n    record_id: id\n    pagination: { strategy: page, \
                    page_param: page }\n";
        let yaml = polling(name, "/all", poll)
            .replace("connector: shop", &format!("connector: shop-{name}"));
        let (flow, _) = app.api.deployed(&yaml).await;
        let poll = polled(&app.api, &flow).await;
        let error = poll["lastError"].as_str().unwrap_or_default();
        assert!(error.contains(told), "{name}: {poll}");
        assert_eq!(delivered(&target, name, 2).await, all(2), "{name}");
        // The next cycle begins at the first page, and its records are seen ones.
        let calls = provider.arrivals(3).await;
        assert_eq!(calls[2].path, "/all?page=1");
        assert_eq!(messages(&app.api, &flow).await, 2, "{name}");
    }
}
