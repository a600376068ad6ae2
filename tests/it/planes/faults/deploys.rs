//! Control planes that are killed and take each other's place while flows are deployed, and nodes
//! that are asked all the while what they serve.
//!
//! Each round changes the table, then the flow `first`, then the flow `last`, to one number. So
//! every set that was ever published has table >= first >= last, and each of them only grows. A
//! node that ran half of a set, or went back to an older one, would show it.

use std::cell::Cell;
use std::time::Instant;

use kanat_tests::split::{Split, TestProcess};
use kanat_tests::{Rest, until};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::versions::{ProbeFlow, RunVersions, Table, at, flow, one_set, sets};

const DEPLOYS: u64 = 200;

/// Deploys from one kill to the next.
const BETWEEN_KILLS: u64 = 9;

/// Deploys for which a control plane that was killed stays away.
const AWAY: u64 = 3;

/// Progress of the deploys.
#[derive(Default)]
struct Course {
    /// Deploys that were begun; all there can be, when the last one was answered.
    begun: watch::Sender<u64>,
    /// The control plane that is asked.
    asked: Cell<usize>,
    /// Requests that went to a control plane which died, and were made again.
    repeated: Cell<u64>,
    /// Changes that were answered before every node had them.
    pending: Cell<u64>,
}

const DONE: u64 = u64::MAX;

impl Course {
    fn is_done(&self) -> bool {
        *self.begun.borrow() == DONE
    }

    /// Returns in the middle of a deploy, or when all are done.
    async fn begun(&self, deploys: u64) {
        self.begun
            .subscribe()
            .wait_for(|begun| *begun >= deploys)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn control_planes_killed_and_swapped_during_200_deploys_leave_every_node_with_one_set() {
    let split = Split::new();
    let mut controls = [
        split.control_plane("one").await,
        split.control_plane("other").await,
    ];
    let one = &controls[0];
    let other = &controls[1];
    let nodes = [
        split.node("a", &[one, other]).await,
        split.node("b", &[one, other]).await,
        split.node("c", &[one, other]).await,
    ];
    let apis = [one.api.clone(), other.api.clone()];
    let (witness, table) = ProbeFlow::start(&one.api).await;
    let first = one.api.deployed(&flow("first", 1)).await;
    let last = one.api.deployed(&flow("last", 1)).await;
    one_set(&one.api, nodes.len()).await;

    let course = Course::default();
    let begun = Instant::now();
    let deploying = async {
        let rounds = deploy_all(&course, &apis, &table, [&first.0, &last.0]).await;
        course.begun.send_replace(DONE);
        rounds
    };
    let webhooks = [first.1.as_str(), last.1.as_str()];
    let watching = async {
        let [a, b, c] = &nodes;
        let watch = |node| watch(&course, &witness, node, webhooks);
        let (a, b, c) = tokio::join!(watch(a), watch(b), watch(c));
        a + b + c
    };
    let (rounds, kills, seen) =
        tokio::join!(deploying, kill_in_turn(&course, &mut controls), watching);

    let deployed = begun.elapsed();
    // One hears of the nodes of the other a little later than the nodes do.
    until(
        "both control planes tell of one set at all nodes",
        || async {
            let told = [sets(&controls[0].api).await?, sets(&controls[1].api).await?];
            let all = told.concat();
            (told.iter().all(|sets| sets.len() == nodes.len())
                && all.iter().all(|set| *set == all[0]))
            .then_some(())
        },
    )
    .await;
    println!(
        "{DEPLOYS} deploys in {} ms, {kills} kills of control planes: {} requests repeated, {} \
         changes answered as pending; {seen} messages at 3 nodes, 0 refused, 0 of half a set; one \
         set {} ms after the last deploy",
        deployed.as_millis(),
        course.repeated.get(),
        course.pending.get(),
        (begun.elapsed() - deployed).as_millis()
    );
    for node in &nodes {
        for webhook in webhooks {
            let ran = witness.ask(&node.api, &at(node, webhook)).await;
            assert_eq!(
                ran,
                RunVersions {
                    version: rounds,
                    table: rounds
                }
            );
        }
    }
    assert!(
        kills >= DEPLOYS / (BETWEEN_KILLS + AWAY) / 2,
        "{kills} kills"
    );
    assert!(course.repeated.get() > 0, "no kill met a request under way");
}

/// Changes all three, round by round; gives the last round's number.
async fn deploy_all(course: &Course, apis: &[Rest; 2], table: &Table, flows: [&str; 2]) -> u64 {
    let mut round = 1;
    while *course.begun.borrow() < DEPLOYS {
        round += 1;
        call(course, apis, "PUT", &table.path, &table.entries(round)).await;
        for (name, id) in ["first", "last"].into_iter().zip(flows) {
            let path = format!("/api/v1/flows/{id}");
            course.begun.send_modify(|begun| *begun += 1);
            call(
                course,
                apis,
                "PUT",
                &path,
                &json!({ "yamlConfig": flow(name, round) }),
            )
            .await;
            call(course, apis, "POST", &format!("{path}/deploy"), &json!({})).await;
        }
    }
    round
}

/// Asks one control plane, and the other when that one does not answer.
async fn call(course: &Course, apis: &[Rest; 2], method: &str, path: &str, body: &Value) {
    let answer = until("a control plane answers", || async {
        let answer =
            Rest::try_send(apis[course.asked.get()].request(method, path).json(body)).await;
        let answer = answer.ok().filter(|answer| answer.status != 503);
        if answer.is_none() {
            course.repeated.set(course.repeated.get() + 1);
            course.asked.set(1 - course.asked.get());
        }
        answer
    })
    .await;
    if answer.header("x-config-applied") == "pending" {
        course.pending.set(course.pending.get() + 1);
    }
    answer.expect(200);
}

/// Kills the control plane that is being asked, again and again, and brings it back after a while;
/// gives how often.
async fn kill_in_turn(course: &Course, controls: &mut [TestProcess; 2]) -> u64 {
    let mut kills = 0;
    let mut next = BETWEEN_KILLS;
    loop {
        course.begun(next).await;
        if course.is_done() {
            return kills;
        }
        let victim = course.asked.get();
        controls[victim].kill().await;
        kills += 1;
        course.begun(next + AWAY).await;
        controls[victim].restart().await;
        next += AWAY + BETWEEN_KILLS;
    }
}

/// Asks a node for both flows, in the order in which they are changed last, until all is deployed;
/// gives how often.
async fn watch(
    course: &Course,
    witness: &ProbeFlow,
    node: &TestProcess,
    [first, last]: [&str; 2],
) -> usize {
    let first = at(node, first);
    let last = at(node, last);
    let mut seen: Vec<(&str, RunVersions)> = Vec::new();
    // A set with this `last` has at least this `first`, and at least this table.
    let mut lowest_first = 0;
    let mut lowest_last = 0;
    let mut lowest_table = 0;
    while !course.is_done() {
        for (name, url) in [("last", &last), ("first", &first)] {
            let ran = witness.ask(&node.api, url).await;
            seen.push((name, ran));
            let lowest = if name == "last" {
                lowest_last
            } else {
                lowest_first
            };
            let recent = &seen[seen.len().saturating_sub(6)..];
            assert!(ran.version >= lowest, "a set went back: {recent:?}");
            assert!(
                ran.table >= ran.version && ran.table >= lowest_table,
                "half of a set: {recent:?}"
            );
            lowest_table = ran.table;
            lowest_first = lowest_first.max(ran.version);
            if name == "last" {
                lowest_last = ran.version;
            }
        }
    }
    seen.len()
}
