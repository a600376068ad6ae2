//! Batch jobs: one message for each of many records, so many at a time.

mod cancel;
mod create;
mod deleted;
mod errors;
mod filtered;
mod list;

use kanat_tests::{Rest, until};
use serde_json::{Value, json};

pub const FLOW: &str = r"flow: import
version: 1
source:
  trigger: manual
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  n: source.n | required
on_error:
  retry: 1x fixed(10ms)
";

/// Records numbered from 0.
pub fn records(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({ "n": n })).collect()
}

/// Starts a job; gives its id.
pub async fn start(api: &Rest, flow: &str, records: &[Value], concurrency: u32) -> String {
    let body = json!({ "flowId": flow, "records": records, "concurrency": concurrency });
    let job = api.post("/api/v1/batch-jobs", &body).await.expect(202);
    job["id"].as_str().unwrap().to_owned()
}

pub async fn get(api: &Rest, id: &str) -> Value {
    api.get(&format!("/api/v1/batch-jobs/{id}"))
        .await
        .expect(200)
}

/// The job once its last record has ended. Its counts add up at every look.
pub async fn finished(api: &Rest, id: &str) -> Value {
    until(&format!("batch job {id} ends"), || async {
        let job = get(api, id).await;
        let count = |name: &str| job[name].as_u64().unwrap();
        assert_eq!(
            count("processed"),
            count("succeeded") + count("failed"),
            "{job}"
        );
        assert!(count("processed") <= count("total"), "{job}");
        job["finishedAt"].is_string().then_some(job)
    })
    .await
}
