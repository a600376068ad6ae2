//! Several control planes on one PostgreSQL fire each minute once, also when one of them dies in
//! the midst of it. This is the longest test, as it goes by the clock on the wall: tests start in
//! order of their names, and this name is an early one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kanat_tests::split::Split;
use kanat_tests::{FakeTarget, Rest};
use serde_json::Value;

use crate::schedule::{path_of, scheduled};

const FLOWS: usize = 12;

/// Two minutes must begin, and a machine may be slow.
const DEADLINE: Duration = Duration::from_secs(300);

/// The messages of a flow by the time that they are for.
async fn fired(api: &Rest, flow: &str) -> BTreeMap<String, Vec<Value>> {
    let body = api
        .get(&format!("/api/v1/messages?flowId={flow}&limit=500"))
        .await
        .expect(200);
    let mut fired: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for message in body["data"].as_array().unwrap() {
        let due = message["payload"]["scheduled_at"]
            .as_str()
            .unwrap()
            .to_owned();
        fired.entry(due).or_default().push(message.clone());
    }
    fired
}

#[tokio::test]
async fn each_minute_is_fired_once_by_several_control_planes_one_of_which_is_killed() {
    let split = Split::new();
    // The first one dies after it has fired a time, before it can say so.
    let mut dying = split
        .control_plane_with("one", &[("KANAT_FAILPOINT", "schedule.fired:1")])
        .await;
    let mut two = split.control_plane("two").await;
    let three = split.control_plane("three").await;
    let node = split.node("node", &[&three]).await;
    node.becomes_ready().await;
    let target = FakeTarget::start().await;
    three.api.http_instance("erp", &target.url()).await;
    let mut flows = Vec::new();
    for n in 0..FLOWS {
        flows.push(
            three
                .api
                .deployed(&scheduled(&format!("minutely-{n}"), "* * * * *", "UTC"))
                .await
                .0,
        );
    }

    let begun = Instant::now();
    let mut killed = false;
    loop {
        let mut counts = Vec::new();
        for flow in &flows {
            let fired = fired(&three.api, flow).await;
            let twice: Vec<_> = fired
                .iter()
                .filter(|(_, messages)| messages.len() > 1)
                .collect();
            assert!(twice.is_empty(), "fired twice: {twice:?}");
            counts.push(fired.len());
        }
        let least = *counts.iter().min().unwrap();
        if !killed && counts.iter().sum::<usize>() > 0 {
            two.kill().await;
            killed = true;
        }
        if least >= 2 {
            break;
        }
        assert!(
            begun.elapsed() < DEADLINE,
            "fired {counts:?} times; {}",
            three.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    for flow in &flows {
        let fired = fired(&three.api, flow).await;
        let due: Vec<_> = fired.keys().collect();
        assert!(due.iter().all(|due| due.ends_with(":00.000Z")), "{due:?}");
        for messages in fired.values() {
            three
                .api
                .message_becomes(messages[0]["id"].as_str().unwrap(), "delivered")
                .await;
        }
        let schedule = three
            .api
            .get(&path_of(&three.api, flow).await)
            .await
            .expect(200);
        assert!(
            schedule["lastRunStatus"].is_string() && schedule["nextRunAt"].is_string(),
            "{schedule}"
        );
    }
    // Whether it was the first to claim anything is up to the clock; if it was, it is dead now.
    dying.kill().await;
}
