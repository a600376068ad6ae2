//! `GET /governance/policies/{id}`.

use kanat_tests::TestApp;

use super::{PATH, as_role, path_of, policy};

#[tokio::test]
async fn a_policy_is_the_accounts_in_every_environment() {
    let app = TestApp::start().await;
    let made = policy(&app.api, "shared").await;
    let viewer = as_role(&app, "viewer", Some("production")).await;
    let found = viewer.get(&path_of(&made)).await;
    assert_eq!(found.header("etag"), "\"1\"");
    assert_eq!(found.expect(200), made);
    app.api
        .get(&format!("{PATH}/pol_unknown"))
        .await
        .expect_error(404, "NOT_FOUND");
}
