//! Adapters: JavaScript of users, kept, tried, and run in flows.

mod create;
mod delete;
mod flows;
mod get;
mod hostile;
mod list;
mod templates;
mod test;
mod update;

use kanat_tests::{Rest, rest::text};
use serde_json::{Value, json};

/// Makes an adapter of that type; gives its path.
async fn adapter(api: &Rest, name: &str, kind: &str, code: &str) -> String {
    let body = json!({"name": name, "type": kind, "code": code});
    let made = api.post("/api/v1/adapters", &body).await.expect(201);
    format!("/api/v1/adapters/{}", text(&made["id"]))
}

/// The records of that stage in a message's trace.
fn stages<'m>(message: &'m Value, stage: &str) -> Vec<&'m Value> {
    message["trace"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| record["stage"] == stage)
        .collect()
}
