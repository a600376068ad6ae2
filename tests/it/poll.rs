//! Polls: endpoints that have their records in pages of every style, and that fail in the midst of
//! them.

mod examples;
mod faults;
mod memory;
mod origin;
mod provider;
mod record_id;
mod strategies;
mod takeover;
mod throttled;

use kanat_tests::{FakeTarget, Rest, until};
use serde_json::Value;

pub use provider::{PAGE, Provider};

/// A flow that polls the instance `shop` and delivers each record to the instance `erp`; `poll` has
/// further keys of `source.poll`, indented by four blanks.
pub fn polling(name: &str, path: &str, poll: &str) -> String {
    format!(
        r#"flow: {name}
version: 1
source:
  connector: shop
  trigger: poll
  poll:
    url: "{{{{ instance.base_url }}}}{path}"
{poll}target:
  connector: erp
  endpoint: /in/{name}
  method: POST
mapping:
  id: source.id | required
"#
    )
}

/// How many messages a flow has.
async fn messages(api: &Rest, flow: &str) -> u64 {
    let body = api
        .get(&format!("/api/v1/messages?flowId={flow}&limit=1"))
        .await
        .expect(200);
    body["pagination"]["total"].as_u64().unwrap()
}

/// Waits until a flow has polled to the end of a cycle; says how its poll stands then.
async fn polled(api: &Rest, flow: &str) -> Value {
    until("a cycle has ended", || async {
        let flow = api.get(&format!("/api/v1/flows/{flow}")).await.expect(200);
        flow["poll"]["lastPolledAt"]
            .is_string()
            .then(|| flow["poll"].clone())
    })
    .await
}

/// Waits until so many records of a flow have reached the target; gives their ids in order, each as
/// often as it came.
async fn delivered(target: &FakeTarget, name: &str, count: usize) -> Vec<u64> {
    let path = format!("/in/{name}");
    until(
        &format!("{count} records of {name} are delivered"),
        || async {
            let received = target.received();
            let mut ids: Vec<u64> = received
                .iter()
                .filter(|r| r.path == path)
                .map(|r| r.json()["id"].as_u64().unwrap())
                .collect();
            ids.sort_unstable();
            (ids.len() >= count).then_some(ids)
        },
    )
    .await
}

/// All records, each once.
fn all(count: u64) -> Vec<u64> {
    (0..count).collect()
}
