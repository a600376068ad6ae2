//! Endpoints that fail in the midst of their pages.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::Value;

use super::strategies::STRATEGIES;
use super::{Provider, all, delivered, messages, polling};

const RECORDS: u64 = 550;
/// Records in three pages, for tests of each pagination strategy.
const RECORDS_OF_THREE_PAGES: u64 = 250;

/// By cursor, known by their id, each second.
const KNOWN: &str = "    interval: 1s\n    record_id: id\n    records_path: data.items\n    \
                     pagination: { strategy: cursor, cursor_path: meta.next, cursor_param: cursor \
                     }\n";

#[tokio::test]
async fn a_page_that_fails_costs_a_cycle_and_no_record_comes_twice() {
    let failures: Mutex<HashMap<String, usize>> = Mutex::default();
    let provider = Provider::scripted(RECORDS_OF_THREE_PAGES, move |received, _| {
        // The third page of each.
        let is_third = |end: &&str| received.path.ends_with(*end);
        if !["=200", "=at-200", "page=3"].iter().any(is_third) {
            return None;
        }
        let mut failures = failures.lock().unwrap();
        let failures = failures.entry(received.path.clone()).or_default();
        *failures += 1;
        (*failures <= 2).then(|| status(500))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let mut flows = Vec::new();
    for (name, poll) in STRATEGIES {
        let poll = poll.replace(
            "    interval: 1h\n",
            "    interval: 1s\n    record_id: id\n",
        );
        flows.push((
            name,
            app.api
                .deployed(&polling(name, &format!("/{name}"), &poll))
                .await
                .0,
        ));
    }
    for (name, flow) in &flows {
        assert_eq!(
            delivered(&target, name, RECORDS_OF_THREE_PAGES as usize).await,
            all(RECORDS_OF_THREE_PAGES),
            "{name}"
        );
        let begun = || {
            provider
                .asked()
                .iter()
                .filter(|asked| **asked == first_page(name))
                .count()
        };
        let before = begun();
        assert!(before >= 3, "{name}: each failure ends its cycle: {before}");
        // Two more cycles find nothing new.
        until("more cycles", || async {
            (begun() >= before + 2).then_some(())
        })
        .await;
        assert_eq!(
            messages(&app.api, flow).await,
            RECORDS_OF_THREE_PAGES,
            "{name}"
        );
    }
}

/// Path of the first request of a cycle.
fn first_page(strategy: &str) -> String {
    match strategy {
        "total" | "offset" => format!("/{strategy}?offset=0"),
        "page" => "/page?page=1".to_owned(),
        _ => format!("/{strategy}"),
    }
}

#[tokio::test]
async fn a_page_that_breaks_off_is_no_messages_before_it_comes_whole() {
    let asked = [const { AtomicUsize::new(0) }; 2];
    let provider = Provider::scripted(0, move |received, _| {
        // The records of the long one are more than are kept in memory.
        let (asked, records, text) = match received.path.as_str() {
            "/short" => (&asked[0], 300, 1),
            _ => (&asked[1], 600, 4_000),
        };
        let text = "x".repeat(text);
        let mut body = "[".to_owned();
        for id in 0..records {
            write!(body, r#"{{"id": {id}, "text": "{text}"}},"#).unwrap();
        }
        let body = match asked.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => body,
            2 => body.trim_end_matches(',').to_owned() + "]",
            _ => "[]".to_owned(),
        };
        Some(Reply::Answer(200, Vec::new(), body))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let (short, _) = app
        .api
        .deployed(&polling("short", "/short", "    interval: 1s\n"))
        .await;
    let (long, _) = app
        .api
        .deployed(&polling("long", "/long", "    interval: 1s\n"))
        .await;
    assert_eq!(delivered(&target, "short", 300).await, all(300));
    assert_eq!(delivered(&target, "long", 600).await, all(600));
    assert_eq!(messages(&app.api, &short).await, 300);
    assert_eq!(messages(&app.api, &long).await, 600);
}

#[tokio::test]
async fn a_record_that_changes_is_taken_in_again_and_also_when_it_changes_back() {
    let round = AtomicUsize::new(0);
    let prices = [7, 7, 8, 8, 7, 7];
    let provider = Provider::scripted(0, move |_, _| {
        let price = prices
            .get(round.fetch_add(1, Ordering::Relaxed))
            .unwrap_or(&7);
        Some(Reply::Answer(
            200,
            Vec::new(),
            format!("[{{\"id\": 1, \"price\": {price}}}, {{\"id\": 2}}]"),
        ))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let (flow, _) = app
        .api
        .deployed(&polling(
            "changing",
            "/",
            "    interval: 1s\n    record_id: id\n",
        ))
        .await;
    provider.target.arrivals(prices.len() + 2).await;
    assert_eq!(delivered(&target, "changing", 4).await, [1, 1, 1, 2]);
    assert_eq!(messages(&app.api, &flow).await, 4);
}

#[tokio::test]
async fn an_endpoint_that_goes_in_a_circle_is_left_with_an_error() {
    let provider = Provider::scripted(0, |received, _| {
        if received.path == "/itself" {
            let link = ("link".to_owned(), "</itself>; rel=next".to_owned());
            return Some(Reply::Answer(200, vec![link], "[{\"id\": 1}]".to_owned()));
        }
        if received.path.starts_with("/deaf") {
            return Some(Reply::Answer(
                200,
                Vec::new(),
                "[{\"id\": 1}, {\"id\": 2}]".to_owned(),
            ));
        }
        let next = if received.path.ends_with("=a") {
            "b"
        } else {
            "a"
        };
        Some(Reply::Answer(
            200,
            Vec::new(),
            format!(
                "{{\"data\": {{\"items\": [{{\"id\": 1}}]}}, \"meta\": {{\"next\": \"{next}\"}}}}"
            ),
        ))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let (flow, _) = app
        .api
        .deployed(&polling("circle", "/cursor", &KNOWN.replace("1s", "1h")))
        .await;
    until("the circle is told of", || async {
        app.log().contains("goes in a circle").then_some(())
    })
    .await;
    let poll = until("the flow tells of it", || async {
        let flow = app
            .api
            .get(&format!("/api/v1/flows/{flow}"))
            .await
            .expect(200);
        flow["poll"]["lastError"]
            .is_string()
            .then(|| flow["poll"].clone())
    })
    .await;
    assert!(
        poll["lastError"]
            .as_str()
            .unwrap()
            .contains("goes in a circle"),
        "{poll}"
    );
    assert!(
        poll["lastPolledAt"].as_str().unwrap() < poll["nextPollAt"].as_str().unwrap(),
        "{poll}"
    );
    assert_eq!(
        provider.asked(),
        ["/cursor", "/cursor?cursor=a", "/cursor?cursor=b"]
    );
    assert_eq!(delivered(&target, "circle", 1).await, [1]);

    // The first page has no link before a page links to it.
    let linked = "    interval: 1h\n    pagination: { strategy: link_header }\n";
    let (linked, _) = app
        .api
        .deployed(&polling("itself", "/itself", linked))
        .await;
    let told = |flow: Value| {
        flow["poll"]["lastError"]
            .as_str()
            .is_some_and(|error| error.contains("goes in a circle"))
    };
    until("the flow tells of it", || async {
        told(
            app.api
                .get(&format!("/api/v1/flows/{linked}"))
                .await
                .expect(200),
        )
        .then_some(())
    })
    .await;
    assert_eq!(
        provider
            .asked()
            .iter()
            .filter(|path| *path == "/itself")
            .count(),
        1
    );
    assert_eq!(messages(&app.api, &linked).await, 1);

    // Nothing but this ends it: each page is full.
    let deaf = "    interval: 1h\n    pagination: { strategy: offset, offset_param: skip, \
                page_size: 2 }\n";
    let (deaf, _) = app.api.deployed(&polling("deaf", "/deaf", deaf)).await;
    let error = until("the flow tells of it", || async {
        let flow = app
            .api
            .get(&format!("/api/v1/flows/{deaf}"))
            .await
            .expect(200);
        flow["poll"]["lastError"].as_str().map(str::to_owned)
    })
    .await;
    assert!(
        error.contains("takes no notice of the parameter \"skip\""),
        "{error}"
    );
    let asked: Vec<_> = provider
        .asked()
        .into_iter()
        .filter(|path| path.starts_with("/deaf"))
        .collect();
    assert_eq!(asked, ["/deaf?skip=0", "/deaf?skip=2"]);
    assert_eq!(messages(&app.api, &deaf).await, 2);
}

#[tokio::test]
async fn an_endpoint_that_asks_for_time_is_given_it_within_the_cycle() {
    let provider = Provider::scripted(RECORDS, |received, earlier| {
        (received.path.ends_with("=at-100") && earlier == 1).then(|| {
            Reply::Answer(
                429,
                vec![("retry-after".to_owned(), "1".to_owned())],
                "{}".to_owned(),
            )
        })
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let (flow, _) = app
        .api
        .deployed(&polling("limited", "/cursor", &KNOWN.replace("1s", "1h")))
        .await;
    assert_eq!(
        delivered(&target, "limited", RECORDS as usize).await,
        all(RECORDS)
    );
    assert_eq!(messages(&app.api, &flow).await, RECORDS);
    assert_eq!(
        provider.asked()[..3],
        ["/cursor", "/cursor?cursor=at-100", "/cursor?cursor=at-100"]
    );
}

#[tokio::test]
async fn a_poll_that_is_not_done_makes_the_next_one_wait() {
    let provider = Provider::scripted(0, |received, earlier| {
        let hangs = received.path == "/slow" && earlier == 0;
        Some(if hangs {
            Reply::Hang
        } else {
            Reply::Answer(200, Vec::new(), "[]".to_owned())
        })
    })
    .await;
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    app.api.http_instance("shop", &provider.url()).await;
    let asked = |path: &str| {
        provider
            .asked()
            .iter()
            .filter(|asked| *asked == path)
            .count()
    };
    app.api
        .deployed(&polling("slow", "/slow", "    interval: 1s\n"))
        .await;
    provider.target.arrivals(1).await;
    // Another one with the same interval tells when the next ones are due.
    app.api
        .deployed(&polling("quick", "/quick", "    interval: 1s\n"))
        .await;
    until("the quick one polls again", || async {
        (asked("/quick") >= 3).then_some(())
    })
    .await;
    assert_eq!(asked("/slow"), 1);
    provider.target.release();
    until("the slow one goes on", || async {
        (asked("/slow") >= 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_a_poll_remembers_is_there_for_its_templates() {
    let provider = Provider::start(250).await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let poll = format!(
        "{KNOWN}    params: {{ since: \"{{{{ state.last_success_at }}}}\", last: \"{{{{ \
         state.cursor }}}}\" }}\n"
    );
    app.api
        .deployed(&polling("remembering", "/cursor", &poll))
        .await;
    let asked = until("a second cycle", || async {
        let asked = provider.asked();
        asked
            .iter()
            .filter(|path| path.starts_with("/cursor?since="))
            .nth(1)
            .is_some()
            .then_some(asked)
    })
    .await;
    assert_eq!(asked[0], "/cursor");
    let second = asked
        .iter()
        .find(|path| path.starts_with("/cursor?since="))
        .unwrap();
    assert!(second.contains("Z&last=at-200"), "{second}");
}

#[tokio::test]
async fn a_poll_that_fails_is_seen_in_the_list_of_flows_until_it_goes_well() {
    let failing = AtomicUsize::new(1);
    let failing = std::sync::Arc::new(failing);
    let switch = std::sync::Arc::clone(&failing);
    let provider = Provider::scripted(RECORDS_OF_THREE_PAGES, move |_, _| {
        (switch.load(Ordering::Relaxed) > 0).then(|| status(500))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let flow = app.api.deployed(&polling("asks", "/cursor", KNOWN)).await.0;
    let listed =
        async || app.api.get("/api/v1/flows").await.expect(200)["data"][0]["lastError"].clone();
    let error = until("the failure is told", || async {
        Some(listed().await).filter(Value::is_object)
    })
    .await;
    assert!(
        error["message"].as_str().unwrap().contains("500") && error["at"].is_string(),
        "{error}"
    );
    let table = kanat_tests::cli::Cli::of(&app)
        .run(&["flow", "list"])
        .await
        .expect();
    assert!(table.contains("500"), "{table}");
    let logs = kanat_tests::cli::Cli::of(&app).run(&["logs", "asks"]).await;
    assert!(
        logs.stderr.contains("the last poll failed at 20") && logs.stderr.contains("500"),
        "{}",
        logs.stderr
    );
    failing.store(0, Ordering::Relaxed);
    until("all is well", || async {
        listed().await.is_null().then_some(())
    })
    .await;
    let well = app
        .api
        .get(&format!("/api/v1/flows/{flow}"))
        .await
        .expect(200);
    assert_eq!(well.get("lastError"), Some(&Value::Null));
}

#[tokio::test]
async fn a_cursor_path_that_leads_nowhere_shows_in_the_state_of_the_poll() {
    let provider = Provider::start(150).await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let poll = "    interval: 1h\n    record_id: id\n    records_path: data.items\n    pagination: \
                { strategy: cursor, cursor_path: next, cursor_param: cursor }\n";
    let (flow, _) = app
        .api
        .deployed(&polling("misplaced", "/cursor", poll))
        .await;
    let fault = "the answer has no value at cursor_path \"next\", and one at \"meta.next\": no \
                 further page was asked for";
    assert_eq!(super::polled(&app.api, &flow).await["lastError"], fault);
}

#[tokio::test]
async fn a_poll_that_fails_names_its_call_and_the_instance_that_failed() {
    let provider = Provider::scripted(8, |_, earlier| {
        (earlier == 0).then(|| Reply::Answer(500, Vec::new(), "the shop is closed".to_owned()))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let instance = app.api.http_instance("shop", &provider.url()).await;
    let (flow, _) = app
        .api
        .deployed(&polling(
            "closed",
            "/offset",
            "    interval: 5s\n    record_id: id\n",
        ))
        .await;
    let failure = format!(
        "GET {}/offset answered 500: the shop is closed",
        provider.url()
    );
    assert_eq!(super::polled(&app.api, &flow).await["lastError"], failure);
    let path = format!("/api/v1/connectors/instances/{instance}");
    let becomes = |status: &'static str| {
        let api = &app.api;
        let path = &path;
        until(status, move || async move {
            let found = api.get(path).await.expect(200);
            (found["health"]["status"] == status).then_some(found)
        })
    };
    let failing = becomes("failing").await;
    assert_eq!(
        failing["lastError"]["message"],
        format!("poll of flow closed: {failure}")
    );
    assert!(becomes("healthy").await["lastError"].is_null());
    app.api
        .post(
            &format!("/api/v1/flows/{flow}/pause"),
            &serde_json::json!({}),
        )
        .await
        .expect(200);
    let paused = app
        .api
        .get(&format!("/api/v1/flows/{flow}"))
        .await
        .expect(200);
    assert!(paused["poll"]["nextPollAt"].is_null(), "{paused}");
    let config = serde_json::json!({ "config": { "base_url": "http://127.0.0.1:1" } });
    app.api.put(&path, &config).await.expect(200);
    assert_eq!(
        app.api.get(&path).await.expect(200)["health"]["status"],
        "unknown"
    );
    let run = format!("/api/v1/flows/{flow}/run");
    let refused = app
        .api
        .post(&run, &serde_json::json!({}))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(refused[0]["field"], "payload");
    app.api
        .post(&run, &serde_json::json!({ "payload": null }))
        .await
        .expect(202);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_reported_with_its_call_and_its_beginning() {
    let provider = Provider::scripted(0, |received, _| {
        let body = if received.path == "/html" {
            "<html>come back later</html>"
        } else {
            r#"{"data": {"calls": []}}"#
        };
        Some(Reply::Answer(200, Vec::new(), body.to_owned()))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let poll = "    interval: 1h\n    records_path: data.cals\n";
    for (path, error, beginning) in [
        (
            "/html",
            "the answer is no JSON: line 1, column 1: found `<`, expected a value",
            "<html>come back later</html>",
        ),
        (
            "/misspelt",
            "records_path \"data.cals\" is not in the answer; there is a list at \"data.calls\"",
            r#"{"data": {"calls": []}}"#,
        ),
    ] {
        let (flow, _) = app.api.deployed(&polling(&path[1..], path, poll)).await;
        assert_eq!(
            super::polled(&app.api, &flow).await["lastError"],
            format!(
                "{error} (GET {}{path} answered 200: {beginning})",
                provider.url()
            )
        );
    }
}
