//! Published APIs and the keys of their consumers.

mod answers;
mod calls;
mod create;
mod delete;
mod deploys;
mod document;
mod get;
mod http;
mod keys;
mod limits;
mod list;
mod raw;
mod schemas;
mod switch;
mod tokens;
mod update;
mod versions;
mod waiting;
mod warnings;

use kanat_tests::{Rest, rest::text};
use serde_json::{Value, json};

pub const PATH: &str = "/api/v1/published-apis";

/// A flow that checks, maps and answers.
pub fn quote(name: &str) -> String {
    format!(
        r"name: {name}
version: 1
source: {{trigger: api}}
mapping:
  total: source.total
"
    )
}

/// Publishes the flow of that name under a path; gives the API's path in the management API.
async fn published(api: &Rest, flow: &str, path: &str) -> String {
    let made = api
        .post(PATH, &json!({ "flowName": flow, "path": path }))
        .await
        .expect(201);
    format!("{PATH}/{}", text(&made["id"]))
}

/// The fields at fault of a request that must be refused.
fn fields(details: &Value) -> Vec<&str> {
    details
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["field"].as_str().unwrap())
        .collect()
}
