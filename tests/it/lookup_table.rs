//! Lookup tables: the model of a resource.

mod create;
mod delete;
mod entries;
mod export;
mod get;
mod import;
mod list;

use kanat_tests::{Rest, rest::text};
use serde_json::json;

/// Makes a table with these entries; gives the path of the table.
async fn table(api: &Rest, name: &str, entries: &[(&str, &str)]) -> String {
    let made = api
        .post("/api/v1/lookup-tables", &json!({ "name": name }))
        .await
        .expect(201);
    let path = format!("/api/v1/lookup-tables/{}", text(&made["id"]));
    if !entries.is_empty() {
        let entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect();
        api.put(&format!("{path}/entries"), &json!({ "entries": entries }))
            .await
            .expect(200);
    }
    path
}
