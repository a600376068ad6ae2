//! `DELETE /governance/policies/{id}`.

use kanat_tests::TestApp;

use super::{as_role, path_of, policy};

#[tokio::test]
async fn a_deleted_policy_is_gone_and_its_name_is_free() {
    let app = TestApp::start().await;
    let path = path_of(&policy(&app.api, "short-lived").await);
    let editor = as_role(&app, "editor", None).await;
    editor
        .delete(&path)
        .await
        .expect_error(403, "PERMISSION_DENIED");
    let stale = app.api.with_header("if-match", "\"7\"");
    stale.delete(&path).await.expect_error(409, "ABORTED");
    assert_eq!(app.api.delete(&path).await.status, 204);
    app.api.get(&path).await.expect_error(404, "NOT_FOUND");
    app.api.delete(&path).await.expect_error(404, "NOT_FOUND");
    policy(&app.api, "short-lived").await;
}
