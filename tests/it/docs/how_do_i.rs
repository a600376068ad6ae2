//! Every task of `docs/how-do-i.md`: its flow is made and tested, and gives what its comments say.

use std::collections::BTreeMap;

use kanat_tests::page::{Block, blocks};
use kanat_tests::python::root;
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::Value;

use crate::examples;

const PAGE: &str = "docs/how-do-i.md";

/// Fewest blocks that the page has.
const FEWEST_TASKS: usize = 60;

/// Parts that a flow needs, and what stands for them where a block does not have them.
const OTHER_PARTS: [(&str, &str); 2] = [
    ("source", "source: { trigger: webhook }\n"),
    ("target", "target: { connector: erp, endpoint: /tasks }\n"),
];

/// Part of a definition, with comments on what the flow gets and what it gives.
#[derive(Default)]
struct Task {
    /// Texts of the comments by their names, such as `source`.
    comments: BTreeMap<String, String>,
    yaml: String,
}

impl Task {
    fn read(block: &Block) -> Self {
        let mut task = Self::default();
        let mut name = "";
        let indent = if block.says("mapping") { "  " } else { "" };
        if block.says("mapping") {
            task.yaml = "mapping:\n".to_owned();
        }
        for line in block.text.lines() {
            let Some(comment) = line.strip_prefix("# ") else {
                task.yaml.push_str(&format!("{indent}{line}\n"));
                continue;
            };
            let mut text = comment;
            if !comment.starts_with(' ') {
                (name, text) = comment.split_once(':').expect("a comment has a name");
            }
            task.comments
                .entry(name.to_owned())
                .or_default()
                .push_str(text);
        }
        task
    }

    /// The definition of a flow with this name.
    fn definition(&self, name: &str) -> String {
        let mut yaml = format!("flow: {name}\n{}", self.yaml);
        for (part, other) in OTHER_PARTS {
            if !yaml.contains(&format!("\n{part}:")) {
                yaml.push_str(other);
            }
        }
        yaml
    }

    fn comment(&self, name: &str) -> Option<&str> {
        self.comments.get(name).map(|text| text.trim())
    }

    /// The request that tests the flow.
    fn sample(&self) -> String {
        let json = |name| self.comment(name).unwrap_or("{}");
        format!(
            r#"{{"sampleData": {}, "headers": {}, "query": {}, "stepOutputs": {}}}"#,
            json("source"),
            json("headers"),
            json("query"),
            json("steps")
        )
    }
}

/// JSON without the blanks between its parts.
fn compact(json: &str) -> String {
    let mut compact = String::new();
    let mut is_in_text = false;
    let mut is_escaped = false;
    for character in json.chars() {
        if is_in_text || !character.is_whitespace() {
            compact.push(character);
        }
        is_in_text ^= character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
    }
    compact
}

/// Whether the request has every part that is expected; of an address its end.
fn sends(request: &Value, expected: &Value) -> bool {
    let members = expected.as_object().expect("`sends` is an object");
    members.iter().all(|(name, value)| match name.as_str() {
        "path" => {
            let url = request["url"].as_str().unwrap_or_default();
            url.ends_with(value.as_str().expect("a path is a text"))
        }
        "headers" => {
            let headers = value.as_object().expect("headers are an object");
            let same = |(name, value): (&String, &Value)| &request["headers"][name] == value;
            headers.iter().all(same)
        }
        _ => &request[name] == value,
    })
}

async fn check(api: &Rest, task: &Task, name: &str) {
    let yaml = task.definition(name);
    let body = serde_json::json!({ "yamlConfig": yaml });
    let made = api.post("/api/v1/flows", &body).await.expect(201);
    let warnings = made["warnings"].as_array();
    assert!(warnings.is_none_or(Vec::is_empty), "{made}\n{yaml}");
    let path = format!("/api/v1/flows/{}/test", made["id"].as_str().unwrap());
    let answer = api
        .raw("POST", &path, "application/json", task.sample())
        .await;
    let text = compact(&answer.text);
    let tested = answer.expect(200);
    let place = format!("{name}\n{yaml}\n{text}");
    if let Some(reason) = task.comment("fails") {
        let message = tested["errors"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{place}");
        return;
    }
    assert_eq!(tested["errors"], Value::Array(Vec::new()), "{place}");
    match task.comment("gives") {
        None => {}
        Some("filtered") => assert_eq!(tested["matched"], false, "{place}"),
        // As text, so that digits and the order of keys count.
        Some(output) => {
            let output = format!(r#""output":{},"#, compact(output));
            assert!(text.contains(&output), "{output} {place}");
        }
    }
    if let Some(expected) = task.comment("sends") {
        let trace = tested["trace"].as_array().unwrap();
        let delivery = trace.iter().find(|record| record["stage"] == "delivery");
        let request = &delivery.unwrap_or_else(|| panic!("a delivery in {place}"))["request"];
        let expected = serde_json::from_str(expected).unwrap();
        assert!(sends(request, &expected), "{place}");
    }
}

#[tokio::test]
async fn every_task_gives_what_it_says() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    examples::prepare(&app.api, &target).await;
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let is_task = |block: &Block| block.says("mapping") || block.says("flow");
    let tasks: Vec<_> = blocks(&page).into_iter().filter(is_task).collect();
    assert!(tasks.len() >= FEWEST_TASKS, "{} tasks", tasks.len());
    for block in tasks {
        check(
            &app.api,
            &Task::read(&block),
            &format!("task-{}", block.line),
        )
        .await;
    }
    assert!(target.received().is_empty());
}
