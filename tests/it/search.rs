//! `GET /search`: resources of every kind by their words.

use kanat_tests::{Rest, Service, on_both_databases, rest::text};
use serde_json::{Value, json};

on_both_databases!(
    Service;
    the_best_come_first,
    every_environment_has_a_search_of_its_own,
    a_query_that_is_none_is_refused,
);

const SHIPMENTS: &str = r"flow: shipments-intake
version: 1
source: {trigger: webhook}
mapping:
  buffalo: source.order.buffalo
target:
  connector: erp
  endpoint: /albatross/in
  headers: {Authorization: Bearer header-s3cret}
  method: POST
";

/// Ids by name.
struct Made {
    flow: Value,
    adapter: Value,
    instance: Value,
    published_api: Value,
    table: Value,
}

async fn fill(api: &Rest) -> Made {
    let made = async |path: &str, body: Value| {
        let made = api.post(&format!("/api/v1/{path}"), &body).await;
        made.expect(201)["id"].clone()
    };
    let config = json!({"base_url": "https://walrus.example", "auth": "none"});
    let instance = json!({"catalogId": "http", "name": "erp", "displayName": "Größte Anlage",
        "config": config});
    let code = "const transform = (input) => ({ buffalo: input.buffalo < 2 })";
    let adapter = json!({"name": "herd", "description": "Counts shipments", "code": code});
    let table = json!({"name": "countries", "description": "Where shipments go"});
    api.flow(&crate::published_api::quote("quotes")).await;
    let published_api = json!({"flowName": "quotes", "name": "quotes", "path": "offers/shipping"});
    Made {
        instance: made("connectors/instances", instance).await,
        flow: made("flows", json!({"yamlConfig": SHIPMENTS})).await,
        adapter: made("adapters", adapter).await,
        published_api: made("published-apis", published_api).await,
        table: made("lookup-tables", table).await,
    }
}

/// Names of what is found by a query, in order.
async fn names(api: &Rest, query: &str) -> Vec<String> {
    let found = api.get(&format!("/api/v1/search?q={query}")).await;
    let found = found.expect(200);
    let hits = found["data"].as_array().unwrap();
    hits.iter().map(|hit| text(&hit["name"])).collect()
}

async fn the_best_come_first(service: &Service) {
    let api = service.elsewhere();
    let environment = api.get("/api/v1/me").await.expect(200)["environment"]["id"].clone();
    let made = fill(service.api()).await;
    let hit = |kind: &str, id: &Value, name: &str, score: f64, excerpt: &str| {
        json!({"type": kind, "id": id, "name": name, "environmentId": environment,
            "score": score, "excerpt": excerpt})
    };

    let found = api.get("/api/v1/search?q=SHIP").await.expect(200);
    let hits = [
        hit(
            "flow",
            &made.flow,
            "shipments-intake",
            1.0,
            "<mark>shipments</mark>-intake",
        ),
        hit(
            "lookup_table",
            &made.table,
            "countries",
            0.1,
            "Where <mark>shipments</mark> go",
        ),
        hit(
            "adapter",
            &made.adapter,
            "herd",
            0.1,
            "Counts <mark>shipments</mark>",
        ),
        hit(
            "published_api",
            &made.published_api,
            "quotes",
            0.01,
            "offers/<mark>shipping</mark>",
        ),
    ];
    assert_eq!(found["data"], json!(hits));
    assert_eq!(
        found["pagination"],
        json!({"total": 4, "limit": 50, "offset": 0})
    );
    let page = api
        .get("/api/v1/search?q=ship&limit=1&offset=2")
        .await
        .expect(200);
    assert_eq!(page["data"], json!([hits[2]]));
    assert_eq!(
        page["pagination"],
        json!({"total": 4, "limit": 1, "offset": 2})
    );
    let page = api.get("/api/v1/search?q=ship&type=flow").await.expect(200);
    assert_eq!(page["data"], json!([hits[0]]));

    let found = api.get("/api/v1/search?q=grosste").await.expect(200);
    let instance = hit(
        "connector",
        &made.instance,
        "erp",
        0.1,
        "<mark>Größte</mark> Anlage",
    );
    assert_eq!(found["data"], json!([instance]));
    let found = api
        .get("/api/v1/search?q=buffalo&type=adapter")
        .await
        .expect(200);
    let excerpt = text(&found["data"][0]["excerpt"]);
    assert!(
        excerpt.ends_with("({ <mark>buffalo</mark>: input.<mark>buffalo</mark> &lt; 2 })"),
        "{excerpt}"
    );

    // Words anywhere, whatever stands between them in the query.
    assert_eq!(
        names(api, "albatross%20-%20INTAKE").await,
        ["shipments-intake"]
    );
    assert_eq!(names(api, "%22source.buff%22%20AND").await, [""; 0]);
    assert_eq!(names(api, "lbatross").await, [""; 0]);
    assert_eq!(names(api, "***").await, [""; 0]);
    // Configs are not searched, and of a definition what everybody may see.
    assert_eq!(names(api, "walrus").await, [""; 0]);
    assert_eq!(names(api, "s3cret").await, [""; 0]);

    // What is changed is found as it is now.
    let flow = format!("/api/v1/flows/{}", text(&made.flow));
    let renamed = json!({"name": "deliveries", "yamlConfig": SHIPMENTS
        .replace("shipments-intake", "deliveries")});
    service.api().patch(&flow, &renamed).await.expect(200);
    assert_eq!(names(api, "intake").await, [""; 0]);
    assert_eq!(names(api, "deliv").await, ["deliveries"]);
    service.api().delete(&flow).await.expect(204);
    assert_eq!(names(api, "deliv").await, [""; 0]);
}

async fn every_environment_has_a_search_of_its_own(service: &Service) {
    let elsewhere = service.elsewhere();
    let staging = service.api().with_header("x-environment", "staging");
    for (api, name) in [(service.api(), "orders here"), (&staging, "orders there")] {
        let table = json!({"name": name});
        api.post("/api/v1/lookup-tables", &table).await.expect(201);
    }
    assert_eq!(names(elsewhere, "orders").await, ["orders here"]);
    assert_eq!(
        names(&elsewhere.with_header("x-environment", "staging"), "orders").await,
        ["orders there"]
    );
    let body = json!({"name": "bound", "role": "viewer", "environmentId": "staging"});
    let key = service
        .api()
        .post("/api/v1/api-keys", &body)
        .await
        .expect(201);
    let bound = elsewhere.with_key(&text(&key["key"]));
    assert_eq!(names(&bound, "orders").await, ["orders there"]);
    bound
        .with_header("x-environment", "development")
        .get("/api/v1/search?q=orders")
        .await
        .expect_error(403, "PERMISSION_DENIED");
}

async fn a_query_that_is_none_is_refused(service: &Service) {
    let elsewhere = service.elsewhere();
    let refused = async |query: &str| {
        let answer = elsewhere.get(&format!("/api/v1/search{query}")).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        text(&details[0]["field"])
    };
    for query in ["", "?q=", "?q=a%00b", &format!("?q={}", "a".repeat(501))] {
        assert_eq!(refused(query).await, "q", "{query}");
    }
    assert_eq!(refused("?q=a&type=message").await, "type");
    assert_eq!(refused("?q=a&type=").await, "type");
    assert_eq!(refused("?q=a&limit=0").await, "limit");
    assert_eq!(names(elsewhere, &"a".repeat(500)).await, [""; 0]);
}
