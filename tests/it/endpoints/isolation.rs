//! Every endpoint with ids of another environment, and of another account.

use std::collections::BTreeMap;

use kanat_gateway::RouteInfo;
use kanat_tests::rest::text;
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::{Value, json};

use super::{call, ids, routes, short};
use crate::webhook::passthrough;

/// Lists of resources of an environment.
const LISTS: &[&str] = &[
    "flows",
    "adapters",
    "lookup-tables",
    "batch-jobs",
    "connectors/instances",
    "schedules",
    "published-apis",
];

/// Lists of resources of the account.
const LISTS_OF_ACCOUNT: &[&str] = &[
    "environments",
    "api-keys",
    "members",
    "governance/policies",
    "audit-log",
];

/// One resource of each kind, in the default environment.
struct Examples {
    /// Ids by the name of the service, such as `Flow`.
    ids: BTreeMap<&'static str, String>,
    _target: FakeTarget,
}

impl Examples {
    async fn make(api: &Rest) -> Self {
        let target = FakeTarget::start().await;
        let made = async |path: &str, body: Value| {
            let made = api.post(&format!("/api/v1/{path}"), &body).await;
            text(&made.expect(201)["id"])
        };
        let instance = api.http_instance("erp", &target.url()).await;
        let (flow, url) = api.deployed(&passthrough("apart")).await;
        let message = api.webhook(&url, &json!({})).await;
        api.message_becomes(&message, "delivered").await;
        let table = made("lookup-tables", json!({"name": "apart"})).await;
        let entries = format!("/api/v1/lookup-tables/{table}/entries");
        api.post(&entries, &json!({"key": "a", "value": "b"})).await;
        let scheduled = crate::schedule::scheduled("apart-by-clock", "0 0 1 1 *", "UTC");
        let (scheduled, _) = api.deployed(&scheduled).await;
        let schedule = crate::schedule::schedule_of(api, &scheduled).await;
        let code = "const transform = (input) => input";
        let adapter = made("adapters", json!({"name": "apart", "code": code})).await;
        api.flow(&crate::published_api::quote("quotes")).await;
        let quotes = json!({"flowName": "quotes", "path": "quotes"});
        let published = made("published-apis", quotes).await;
        let job = crate::batch_job::start(api, &flow, &crate::batch_job::records(1), 1).await;
        let policy = json!({"name": "apart", "expression": "true"});
        let policy = made("governance/policies", policy).await;
        let member = json!({"email": "ada@example.com", "role": "viewer"});
        let member = made("members", member).await;
        let key = made("api-keys", json!({"name": "apart"})).await;
        let environment = made("environments", json!({"name": "apart"})).await;
        let ids = BTreeMap::from([
            ("Adapter", adapter),
            ("ApiKey", key),
            ("BatchJob", job),
            ("Connector", instance),
            ("ConsumerKey", published.clone()),
            ("Environment", environment),
            ("Flow", flow),
            ("LookupTable", table),
            ("Member", member),
            ("Message", message),
            ("Policy", policy),
            ("PublishedApi", published),
            ("Schedule", text(&schedule["id"])),
        ]);
        Self {
            ids,
            _target: target,
        }
    }

    /// Returns the id of the resource that a route is about.
    fn id(&self, route: &RouteInfo) -> &str {
        let (service, _) = short(route).split_once("Service/").unwrap();
        self.ids.get(service).map_or("nobody_1", String::as_str)
    }
}

/// Returns the routes that name a resource.
fn routes_with_ids() -> impl Iterator<Item = RouteInfo> {
    let routes = routes().into_iter();
    routes.filter(|route| route.path.contains('{'))
}

async fn is_unknown(api: &Rest, route: &RouteInfo, id: &str) {
    let answer = call(api, route, &ids(id)).await;
    let what = format!("{} {}: {}", route.method, route.path, answer.text);
    assert_eq!(answer.status, 404, "{what}");
    answer.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_id_of_another_environment_does_not_exist() {
    let app = TestApp::start().await;
    let examples = Examples::make(&app.api).await;
    let production = app.api.with_header("x-environment", "production");
    for route in routes_with_ids() {
        let (service, _) = short(&route).split_once("Service/").unwrap();
        let is_of_account = ["ApiKey", "Environment", "Member", "Policy"].contains(&service);
        if !is_of_account {
            is_unknown(&production, &route, examples.id(&route)).await;
        }
    }
    // All is as it was.
    let read = async |path: String| app.api.get(&path).await.expect(200);
    let flow = read(format!("/api/v1/flows/{}", examples.ids["Flow"])).await;
    assert_eq!(flow["status"], "active");
    let table = format!("/api/v1/lookup-tables/{}", examples.ids["LookupTable"]);
    assert_eq!(read(table).await["version"], 2);
    for list in LISTS {
        let body = production.get(&format!("/api/v1/{list}")).await.expect(200);
        assert_eq!(body["data"], json!([]), "{list}");
    }
}

#[tokio::test]
async fn rows_of_another_account_do_not_exist() {
    let app = TestApp::start().await;
    let examples = Examples::make(&app.api).await;
    let copied = std::process::Command::new("python3")
        .args(["-c", include_str!("second_account.py")])
        .arg(app.data_dir().join("config.db"))
        .status()
        .unwrap();
    assert!(copied.success());
    for route in routes_with_ids() {
        let id = format!("{}_b", examples.id(&route));
        is_unknown(&app.api, &route, &id).await;
    }
    for list in LISTS.iter().chain(LISTS_OF_ACCOUNT) {
        let answer = app.api.get(&format!("/api/v1/{list}?limit=500")).await;
        assert_eq!(answer.status, 200, "{list}");
        assert!(!answer.text.contains("_b\""), "{list}: {}", answer.text);
    }
    let environments = app.api.get("/api/v1/environments").await.expect(200);
    let other = format!("{}_b", text(&environments["data"][0]["id"]));
    let elsewhere = app.api.with_header("x-environment", &other);
    elsewhere.get("/api/v1/flows").await.expect(404);
    for word in ["apart", "quotes", "erp"] {
        let found = app.api.get(&format!("/api/v1/search?q={word}")).await;
        assert!(!found.text.contains("_b\""), "{}", found.text);
    }
}
