//! Calls that wait for a target: how many there may be, in which order, once for a key that
//! repeats, and again as replays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_tests::split::Split;
use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::{FakeTarget, Rest, TestApp, rest::text, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::PATH;

/// Calls of one target that a node has at once: those under way, and those that wait for one of
/// them to end.
const ROOM: usize = 64 + 768;

/// Bytes of a call of which a node does not read so many at once as may wait for their turn.
const LARGE: usize = 540_000;

/// Calls of one flow that wait for their turn at one node.
const IN_TURN: usize = 256;

/// Calls that one connection of HTTP/2 carries.
const STREAMS: usize = 104;

const FLOW: &str = r"version: 1
source: {trigger: api}
mapping:
  n: source.n
on_error: {retry: 0x fixed(1s)}
";

#[tokio::test]
async fn calls_that_wait_are_as_many_as_there_is_room_for_in_turn_and_once() {
    // Each target holds what it is sent until it is let go.
    let targets = [held().await, held().await, held().await];
    let app = TestApp::start().await;
    let mut flows = Vec::new();
    for (name, (target, _)) in ["full", "turns", "once"].into_iter().zip(&targets) {
        app.api.http_instance(name, &target.url()).await;
        let ordering = if name == "turns" {
            "ordering_key: source.customer\n"
        } else {
            ""
        };
        let target = format!("target: {{connector: {name}, endpoint: /in, method: POST}}\n");
        flows.push(
            app.api
                .deployed(&format!("name: {name}\n{FLOW}{target}{ordering}"))
                .await
                .0,
        );
        let body = json!({
            "flowName": name, "path": name, "authType": "none", "responseSchema": true,
            "responseMapping": "target.response.body",
        });
        app.api.post(PATH, &body).await.expect(201);
    }
    let [full, turns, once] = &targets;
    room(&app, full, &flows[0]).await;
    order(&app, turns, &flows[1]).await;
    repeats(&app, once, &flows[2]).await;
}

type HeldTarget = (FakeTarget, Arc<AtomicBool>);

/// A target that hangs until it is released, and then gives back what it got and how many came
/// before.
async fn held() -> HeldTarget {
    let open = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&open);
    let answer = move |request: &ReceivedRequest, earlier: usize| {
        let made = json!({"got": request.json(), "nth": earlier + 1});
        if is_open.load(Ordering::SeqCst) {
            Reply::Answer(200, Vec::new(), made.to_string())
        } else {
            Reply::Hang
        }
    };
    (FakeTarget::scripted(answer).await, open)
}

fn let_go((target, open): &HeldTarget) {
    open.store(true, Ordering::SeqCst);
    target.release();
}

async fn total(app: &TestApp, flow: &str) -> Value {
    app.api
        .get(&format!("/api/v1/messages?flowId={flow}&limit=1"))
        .await
        .expect(200)["pagination"]["total"]
        .clone()
}

/// One call more than there is room for gets 503 with `Retry-After`, and leaves nothing.
async fn room(app: &TestApp, held: &HeldTarget, flow: &str) {
    let consumer = app.api.without_key();
    // Over HTTP/2, because so many connections are more than a process may have open on some
    // machines.
    let connections: Vec<_> = (0..ROOM / STREAMS)
        .map(|_| Rest::over_http2(&app.base))
        .collect();
    let call =
        |n: usize| connections[n % connections.len()].post_owned("/full", &json!({ "n": n }));
    let waiting: JoinSet<_> = (0..ROOM).map(call).collect();
    until("all are stored", || async {
        (total(app, flow).await == ROOM).then_some(())
    })
    .await;
    let refused = consumer.post("/full", &json!({"n": ROOM})).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.header("retry-after"), "1", "{}", refused.text);
    assert!(
        refused.json().get("messageId").is_none(),
        "{}",
        refused.text
    );
    refused.expect_error(503, "UNAVAILABLE");
    assert_eq!(total(app, flow).await, ROOM);
    let_go(held);
    for answer in waiting.join_all().await {
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    until("there is room again", || async {
        (consumer.post("/full", &json!({"n": ROOM})).await.status == 200).then_some(())
    })
    .await;
}

/// A call after another one of its ordering key waits for its turn. Calls of other keys do not wait
/// for it.
async fn order(app: &TestApp, held: &HeldTarget, flow: &str) {
    let consumer = app.api.without_key();
    let call = |customer: &str, n: u32| {
        consumer.post_owned("/turns", &json!({"customer": customer, "n": n}))
    };
    let mut calls = JoinSet::from_iter([call("a", 1)]);
    held.0.arrivals(1).await;
    calls.spawn(call("a", 2));
    stored(&app.api, flow, 2).await;
    calls.spawn(call("b", 3));
    held.0.arrivals(2).await;
    let_go(held);
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let order: Vec<_> = held
        .0
        .received()
        .iter()
        .map(|request| request.json()["n"].clone())
        .collect();
    assert_eq!(order, [1, 3, 2]);
}

/// A repeat of a call gets its answer and no second message; a replay is a second message, on
/// purpose.
async fn repeats(app: &TestApp, held: &HeldTarget, flow: &str) {
    let consumer = app.api.without_key();
    let keyed = |key: &str, body: Value| {
        Rest::send(
            consumer
                .request("POST", "/once")
                .header("idempotency-key", key)
                .json(&body),
        )
    };
    let mut first = JoinSet::from_iter([keyed("k-1", json!({"n": 1}))]);
    held.0.arrivals(1).await;
    let early = keyed("k-1", json!({"n": 1})).await;
    assert_eq!(early.status, 409, "{}", early.text);
    assert_eq!(early.header("retry-after"), "1", "{}", early.text);
    let id = text(&early.json()["messageId"]);
    let_go(held);
    let first = first.join_next().await.unwrap().unwrap();
    app.api.message_becomes(&id, "delivered").await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(first.header("idempotency-replayed"), "", "{}", first.text);
    let again = keyed("k-1", json!({"n": 1})).await;
    assert_eq!(again.status, 200, "{}", again.text);
    assert_eq!(
        again.header("idempotency-replayed"),
        "true",
        "{}",
        again.text
    );
    assert_eq!(again.text, first.text);
    keyed("k-1", json!({"n": 2}))
        .await
        .expect_error(409, "ALREADY_EXISTS");
    for wrong in ["", &"k".repeat(256)] {
        assert_eq!(keyed(wrong, json!({"n": 3})).await.status, 400);
    }
    let second = keyed("k-2", json!({"n": 4})).await.expect(200);
    assert_eq!(second, json!({"got": {"n": 4}, "nth": 2}));
    assert_eq!(total(app, flow).await, 2);

    let list = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    let newest = text(&list["data"][0]["id"]);
    assert_eq!(list["data"][0]["trigger"], "api");
    let replayed = app
        .api
        .post(&format!("/api/v1/messages/{newest}/replay"), &json!({}))
        .await
        .expect(202);
    let replayed = app
        .api
        .message_becomes(&text(&replayed["messageId"]), "delivered")
        .await;
    assert_eq!(&replayed["trigger"], &json!("replay"));
    assert_eq!(&replayed["replayOf"], &json!(newest));
    assert_eq!(&replayed["payload"], &json!({"n": 4}));
    assert_eq!(&replayed["output"], &json!({"n": 4}));
    assert_eq!(held.0.arrivals(3).await.len(), 3);
}

/// Makes a flow with an ordering key and its synchronous API; gives the flow's id.
async fn in_turns(api: &Rest, target: &FakeTarget, path: &str, settings: Value) -> String {
    let instance = format!("{path}-target");
    api.http_instance(&instance, &target.url()).await;
    let target =
        format!("target: {{connector: {instance}, endpoint: /in, method: POST, timeout: 5m}}\n");
    let flow = format!("name: {path}\n{FLOW}{target}ordering_key: source.customer\n");
    let flow = api.deployed(&flow).await.0;
    let mut body = json!({
        "flowName": path, "path": path, "authType": "none", "responseSchema": true,
        "responseMapping": "target.response.body",
    });
    for (name, value) in settings.as_object().unwrap() {
        body[name] = value.clone();
    }
    api.post(PATH, &body).await.expect(201);
    flow
}

/// Waits until the flow has so many messages; gives their ids, newest first.
async fn stored(api: &Rest, flow: &str, count: usize) -> Vec<String> {
    until("all are stored", || async {
        let list = api
            .get(&format!("/api/v1/messages?flowId={flow}"))
            .await
            .expect(200);
        let ids: Vec<_> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| text(&message["id"]))
            .collect();
        (ids.len() == count).then_some(ids)
    })
    .await
}

#[tokio::test]
async fn a_call_whose_turn_does_not_come_before_its_deadline_names_its_message() {
    let app = TestApp::start().await;
    let consumer = app.api.without_key();
    for (path, on_timeout, ends_as, deliveries) in [
        ("goes-on", "continue", "delivered", 2),
        ("is-dropped", "discard", "discarded", 1),
    ] {
        let slow = held().await;
        let target = &slow.0;
        let flow = in_turns(
            &app.api,
            target,
            path,
            json!({"deadline": "30s", "onTimeout": on_timeout}),
        )
        .await;
        let call =
            |n: u32| consumer.post_owned(&format!("/{path}"), &json!({"customer": "a", "n": n}));
        let mut first = JoinSet::from_iter([call(1)]);
        target.arrivals(1).await;
        let apis = app.api.get(PATH).await.expect(200);
        let is_it = |api: &&Value| api["path"] == path;
        let id = text(&apis["data"].as_array().unwrap().iter().find(is_it).unwrap()["id"]);
        app.api
            .patch(&format!("{PATH}/{id}"), &json!({"deadline": "100ms"}))
            .await
            .expect(200);

        let late = call(2).await;
        assert_eq!(late.status, 504, "{}", late.text);
        let behind = text(&late.json()["messageId"]);
        assert_eq!(stored(&app.api, &flow, 2).await[0], behind);
        assert_eq!(target.received().len(), 1);
        if ends_as == "discarded" {
            // At once: its turn has not come.
            app.api.message_becomes(&behind, ends_as).await;
            let path = format!("/api/v1/messages/{behind}");
            let discarded = app.api.get(&path).await.expect(200);
            assert_eq!(discarded["attempts"], 0, "{discarded}");
            let reason = text(&discarded["error"]["message"]);
            assert!(
                reason.contains("behind others of its ordering key"),
                "{reason}"
            );
        }
        let_go(&slow);
        assert_eq!(first.join_next().await.unwrap().unwrap().status, 200);
        app.api.message_becomes(&behind, ends_as).await;
        assert_eq!(target.received().len(), deliveries);
    }
}

#[tokio::test]
async fn a_caller_at_one_node_is_answered_when_another_node_has_ended_what_stands_before() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let nodes = [
        split.node("a", &[&control]).await,
        split.node("b", &[&control]).await,
    ];
    let slow = held().await;
    let target = &slow.0;
    let flow = in_turns(&control.api, target, "turns", json!({})).await;
    let call = |node: usize, n: u32| {
        nodes[node]
            .api
            .without_key()
            .post_owned("/turns", &json!({"customer": "a", "n": n}))
    };
    let mut calls = JoinSet::from_iter([call(0, 1)]);
    target.arrivals(1).await;
    for (node, n, count) in [(1, 2, 2), (1, 3, 3), (0, 4, 4)] {
        calls.spawn(call(node, n));
        stored(&control.api, &flow, count).await;
    }
    let_go(&slow);
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let order: Vec<_> = target
        .received()
        .iter()
        .map(|request| request.json()["n"].clone())
        .collect();
    assert_eq!(order, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_flow_that_stands_still_has_so_many_calls_waiting_and_takes_no_room_from_another() {
    let app = TestApp::start().await;
    let slow = held().await;
    // So many large calls take their time on a busy machine.
    let flow = in_turns(&app.api, &slow.0, "stands", json!({"deadline": "5m"})).await;
    let other = FakeTarget::start().await;
    in_turns(&app.api, &other, "moves", json!({})).await;
    let connections: Vec<_> = (0..=IN_TURN / STREAMS)
        .map(|_| Rest::over_http2(&app.base))
        .collect();
    let large = "x".repeat(LARGE);
    let call = |n: usize| {
        connections[n % connections.len()]
            .post_owned("/stands", &json!({"customer": "a", "n": n, "large": large}))
    };
    let mut waiting = JoinSet::from_iter([call(0)]);
    slow.0.arrivals(1).await;
    for n in 1..=IN_TURN {
        waiting.spawn(call(n));
        // Those that are being read at once take room.
        if n % 32 == 0 {
            until("they are stored", || async {
                (total(&app, &flow).await == n + 1).then_some(())
            })
            .await;
        }
    }

    let consumer = app.api.without_key();
    // A call is stored a moment before it counts as one that waits.
    let refused = loop {
        let stored = total(&app, &flow).await;
        waiting.spawn(consumer.post_owned("/stands", &json!({"customer": "b", "n": 0})));
        tokio::select! {
            Some(answer) = waiting.join_next() => break answer.unwrap(),
            () = until("one more waits", async || {
                (total(&app, &flow).await != stored).then_some(())
            }) => {}
        }
    };
    let stored = total(&app, &flow).await.as_u64();
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(
        refused.json().get("messageId").is_none(),
        "{}",
        refused.text
    );
    consumer
        .post("/moves", &json!({"customer": "a", "n": 0}))
        .await
        .expect(200);
    // Callers that leave give their messages up: there is room again, and nothing is lost.
    waiting.shutdown().await;
    until("there is room again", || async {
        let again = consumer.post_owned("/stands", &json!({"customer": "b", "n": 0}));
        let_go(&slow);
        (again.await.status == 200).then_some(())
    })
    .await;
    until("all are delivered", || async {
        (stored == Some(slow.0.received().len() as u64 - 1)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_ends_with_its_flow() {
    let app = TestApp::start().await;
    let slow = held().await;
    let flow = in_turns(&app.api, &slow.0, "leaves", json!({})).await;
    let consumer = app.api.without_key();
    let call = |n: u32| consumer.post_owned("/leaves", &json!({"customer": "a", "n": n}));
    let mut calls = JoinSet::from_iter([call(1)]);
    slow.0.arrivals(1).await;
    calls.spawn(call(2));
    let ids = stored(&app.api, &flow, 2).await;
    let apis = app.api.get(PATH).await.expect(200);
    let api = text(&apis["data"][0]["id"]);
    app.api.delete(&format!("{PATH}/{api}")).await.expect(204);
    app.api
        .delete(&format!("/api/v1/flows/{flow}"))
        .await
        .expect(204);
    for id in &ids {
        assert_eq!(app.api.message(id).await["status"], "discarded");
    }
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert!(
            ids.contains(&text(&answer.json()["messageId"])),
            "{}",
            answer.text
        );
    }
    assert_eq!(slow.0.received().len(), 1);
}
