//! `GET /batch-jobs`.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, finished, records, start};

#[tokio::test]
async fn jobs_are_listed_newest_first_and_by_flow() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (one, _) = app.api.deployed(FLOW).await;
    let (other, _) = app
        .api
        .deployed(&FLOW.replace("flow: import", "flow: other"))
        .await;
    let mut ids = Vec::new();
    for flow in [&one, &other, &one] {
        ids.push(start(&app.api, flow, &records(1), 1).await);
    }
    for id in &ids {
        finished(&app.api, id).await;
    }
    let listed = |query: String| {
        let api = app.api.clone();
        async move {
            let page = api
                .get(&format!("/api/v1/batch-jobs{query}"))
                .await
                .expect(200);
            let ids: Vec<String> = page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["id"].as_str().unwrap().to_owned())
                .collect();
            (ids, page["pagination"].clone())
        }
    };
    assert_eq!(
        listed(String::new()).await.0,
        [ids[2].clone(), ids[1].clone(), ids[0].clone()]
    );
    let (found, pagination) = listed(format!("?flowId={one}&limit=1&offset=1")).await;
    assert_eq!(found, [ids[0].clone()]);
    assert_eq!(&pagination["total"], &json!(2));
    assert_eq!(&pagination["limit"], &json!(1));
    app.api
        .get("/api/v1/batch-jobs?flowId=flw_nobody")
        .await
        .expect_error(404, "NOT_FOUND");
}
