//! Schedules: they come with a deploy, and fire by the clock.

mod get;
mod list;
mod preview;
mod trigger;
mod update;

use kanat_tests::Rest;
use serde_json::Value;

/// A flow that the clock starts at these times, and that delivers to the instance `erp`.
pub fn scheduled(name: &str, cron: &str, timezone: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source:
  connector: erp
  trigger: schedule
  schedule: {cron:?}
  timezone: {timezone}
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  due: source.scheduled_at | required
  by_hand: source.manual
"
    )
}

/// The schedule of a flow, as lists show it.
pub async fn schedule_of(api: &Rest, flow: &str) -> Value {
    let body = api
        .get(&format!("/api/v1/schedules?flowId={flow}"))
        .await
        .expect(200);
    assert_eq!(body["pagination"]["total"], 1, "{body}");
    body["data"][0].clone()
}

/// The path of the schedule of a flow.
pub async fn path_of(api: &Rest, flow: &str) -> String {
    format!(
        "/api/v1/schedules/{}",
        schedule_of(api, flow).await["id"].as_str().unwrap()
    )
}
