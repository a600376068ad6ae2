//! Every endpoint of the descriptor set: it has a test, it asks for a credential, and it keeps
//! environments and accounts apart.

mod isolation;

use std::collections::{BTreeMap, BTreeSet};

use kanat_gateway::{Gateway, RouteInfo};
use kanat_tests::{Rest, TestApp, python::root};

/// The file under `tests/it/` that tests each gRPC method over REST.
const TESTS: &[(&str, &str)] = &[
    ("AccountService/GetMe", "account.rs"),
    ("AccountService/ListIdentityProviders", "member/roles.rs"),
    ("AdapterService/CreateAdapter", "adapter/create.rs"),
    ("AdapterService/DeleteAdapter", "adapter/delete.rs"),
    ("AdapterService/GetAdapter", "adapter/get.rs"),
    (
        "AdapterService/ListAdapterTemplates",
        "adapter/templates.rs",
    ),
    ("AdapterService/ListAdapters", "adapter/list.rs"),
    ("AdapterService/TestAdapter", "adapter/test.rs"),
    ("AdapterService/UpdateAdapter", "adapter/update.rs"),
    ("ApiKeyService/CreateApiKey", "api_key/create.rs"),
    ("ApiKeyService/DeleteApiKey", "api_key/delete.rs"),
    ("ApiKeyService/ListApiKeys", "api_key/list.rs"),
    ("AuditService/ListAuditEntries", "audit/list.rs"),
    ("AuditService/VerifyAuditLog", "audit/verify.rs"),
    ("BatchJobService/CancelBatchJob", "batch_job/cancel.rs"),
    ("BatchJobService/CreateBatchJob", "batch_job/create.rs"),
    ("BatchJobService/GetBatchJob", "batch_job/create.rs"),
    ("BatchJobService/ListBatchJobErrors", "batch_job/errors.rs"),
    ("BatchJobService/ListBatchJobs", "batch_job/list.rs"),
    ("BatchJobService/RetryBatchJob", "batch_job/errors.rs"),
    (
        "ConnectorService/CheckEndpointSchemas",
        "connector/schemas.rs",
    ),
    ("ConnectorService/CompleteOAuth", "connector/oauth.rs"),
    (
        "ConnectorService/CreateConnectorInstance",
        "connector/create.rs",
    ),
    (
        "ConnectorService/DeleteConnectorInstance",
        "connector/delete.rs",
    ),
    ("ConnectorService/GetCatalogAction", "connector/catalog.rs"),
    ("ConnectorService/GetCatalogEntry", "connector/catalog.rs"),
    ("ConnectorService/GetConnectorHealth", "connector/health.rs"),
    ("ConnectorService/GetConnectorInstance", "connector/get.rs"),
    (
        "ConnectorService/ListCatalogActions",
        "connector/catalog.rs",
    ),
    (
        "ConnectorService/ListCatalogEntries",
        "connector/catalog.rs",
    ),
    (
        "ConnectorService/ListConnectorInstances",
        "connector/list.rs",
    ),
    (
        "ConnectorService/ListEndpointSchemas",
        "connector/schemas.rs",
    ),
    (
        "ConnectorService/ReceiveOAuthCallback",
        "connector/oauth.rs",
    ),
    ("ConnectorService/StartOAuth", "connector/oauth.rs"),
    (
        "ConnectorService/TestConnectorInstance",
        "connector/test.rs",
    ),
    (
        "ConnectorService/UpdateConnectorInstance",
        "connector/update.rs",
    ),
    (
        "ConsumerKeyService/CreateConsumerKey",
        "published_api/keys.rs",
    ),
    (
        "ConsumerKeyService/ListConsumerKeys",
        "published_api/keys.rs",
    ),
    (
        "ConsumerKeyService/RevokeConsumerKey",
        "published_api/keys.rs",
    ),
    (
        "ConsumerKeyService/RotateConsumerKey",
        "published_api/keys.rs",
    ),
    (
        "ConsumerKeyService/UpdateConsumerKey",
        "published_api/keys.rs",
    ),
    ("EnvironmentService/CreateEnvironment", "environment.rs"),
    (
        "EnvironmentService/DeleteEnvironment",
        "environment/delete.rs",
    ),
    ("EnvironmentService/GetEnvironment", "environment.rs"),
    ("EnvironmentService/ListEnvironments", "environment.rs"),
    ("EnvironmentService/UpdateEnvironment", "environment.rs"),
    ("FlowService/CreateFlow", "flow/create.rs"),
    ("FlowService/DeleteFlow", "flow/delete.rs"),
    ("FlowService/DeployFlow", "flow/deploy.rs"),
    ("FlowService/DiffFlowVersions", "flow/diff.rs"),
    ("FlowService/GetFlow", "flow/get.rs"),
    ("FlowService/GetFlowPlan", "flow/plan.rs"),
    ("FlowService/GetFlowVersion", "flow/versions.rs"),
    ("FlowService/ListFlowVersions", "flow/versions.rs"),
    ("FlowService/ListFlows", "flow/list.rs"),
    ("FlowService/PauseFlow", "webhook/pause.rs"),
    ("FlowService/ResumeFlow", "webhook/pause.rs"),
    ("FlowService/RollbackFlow", "flow/rollback.rs"),
    (
        "FlowService/RotateWebhookToken",
        "flow/rotate_webhook_token.rs",
    ),
    ("FlowService/RunFlow", "flow/run.rs"),
    ("FlowService/TestFlow", "flow/test.rs"),
    ("FlowService/UpdateFlow", "flow/update.rs"),
    ("FlowService/ValidateFlow", "flow/validate.rs"),
    ("LanguageService/EvaluateExpression", "language/evaluate.rs"),
    ("LanguageService/GetFlowLanguage", "language/get.rs"),
    (
        "LookupTableService/CreateLookupTable",
        "lookup_table/create.rs",
    ),
    (
        "LookupTableService/DeleteLookupEntry",
        "lookup_table/entries.rs",
    ),
    (
        "LookupTableService/DeleteLookupTable",
        "lookup_table/delete.rs",
    ),
    (
        "LookupTableService/ExportLookupTable",
        "lookup_table/export.rs",
    ),
    ("LookupTableService/GetLookupTable", "lookup_table/get.rs"),
    (
        "LookupTableService/ImportLookupTable",
        "lookup_table/import.rs",
    ),
    (
        "LookupTableService/ListLookupTables",
        "lookup_table/list.rs",
    ),
    (
        "LookupTableService/SetLookupEntry",
        "lookup_table/entries.rs",
    ),
    (
        "LookupTableService/UpsertLookupEntries",
        "lookup_table/entries.rs",
    ),
    ("MemberService/AcceptInvitation", "member/accept.rs"),
    ("MemberService/GetInvitationPage", "member/invite.rs"),
    ("MemberService/GetMember", "member/list.rs"),
    ("MemberService/InviteMember", "member/invite.rs"),
    ("MemberService/ListMembers", "member/list.rs"),
    ("MemberService/RemoveMember", "member/remove.rs"),
    ("MemberService/ResendInvitation", "member/invite.rs"),
    ("MemberService/UpdateMember", "member/update.rs"),
    ("MessageService/DiscardMessage", "message/dead_letter.rs"),
    ("MessageService/GetMessage", "message/list.rs"),
    ("MessageService/ListMessages", "message/list.rs"),
    ("MessageService/ReplayMessage", "message/replay.rs"),
    ("MessageService/ReplayMessages", "message/replay.rs"),
    ("MessageService/RetryMessage", "message/dead_letter.rs"),
    ("MessageService/RetryMessages", "message/dead_letter.rs"),
    ("MessageService/StreamMessages", "message/stream.rs"),
    ("NodeService/ListNodes", "node.rs"),
    ("PolicyService/CreatePolicy", "policy/create.rs"),
    ("PolicyService/DeletePolicy", "policy/delete.rs"),
    ("PolicyService/GetPolicy", "policy/get.rs"),
    ("PolicyService/ListPolicies", "policy/list.rs"),
    ("PolicyService/UpdatePolicy", "policy/update.rs"),
    (
        "PublishedApiService/CreatePublishedApi",
        "published_api/create.rs",
    ),
    (
        "PublishedApiService/CreatePublishedApiVersion",
        "published_api/versions.rs",
    ),
    (
        "PublishedApiService/DeletePublishedApi",
        "published_api/delete.rs",
    ),
    (
        "PublishedApiService/DeprecatePublishedApiVersion",
        "published_api/versions.rs",
    ),
    (
        "PublishedApiService/GetPublishedApi",
        "published_api/get.rs",
    ),
    (
        "PublishedApiService/GetPublishedApiDocument",
        "published_api/document.rs",
    ),
    (
        "PublishedApiService/ListPublishedApiVersions",
        "published_api/versions.rs",
    ),
    (
        "PublishedApiService/ListPublishedApis",
        "published_api/list.rs",
    ),
    (
        "PublishedApiService/RetirePublishedApiVersion",
        "published_api/versions.rs",
    ),
    (
        "PublishedApiService/UpdatePublishedApi",
        "published_api/update.rs",
    ),
    ("ScheduleService/GetSchedule", "schedule/get.rs"),
    ("ScheduleService/ListSchedules", "schedule/list.rs"),
    ("ScheduleService/PreviewSchedule", "schedule/preview.rs"),
    ("ScheduleService/TriggerSchedule", "schedule/trigger.rs"),
    ("ScheduleService/UpdateSchedule", "schedule/update.rs"),
    ("SearchService/Search", "search.rs"),
    ("SecretService/RotateSecrets", "secret/rotate.rs"),
];

/// Bodies without which a call would be refused before its id is read.
const BODIES: &[(&str, &str)] = &[
    ("AdapterService/TestAdapter", r#"{"input": {}}"#),
    ("FlowService/RollbackFlow", r#"{"versionNumber": 1}"#),
    ("FlowService/RunFlow", r#"{"payload": {}}"#),
    ("FlowService/TestFlow", r#"{"sampleData": {}}"#),
    (
        "LookupTableService/ImportLookupTable",
        r#"{"csv": "key,value\na,b\n"}"#,
    ),
    (
        "LookupTableService/SetLookupEntry",
        r#"{"key": "a", "value": "b"}"#,
    ),
    (
        "LookupTableService/UpsertLookupEntries",
        r#"{"entries": [{"key": "a", "value": "b"}]}"#,
    ),
];

fn routes() -> Vec<RouteInfo> {
    let services = tonic::service::Routes::default();
    Gateway::new(&kanat_proto::DESCRIPTORS, services)
        .unwrap()
        .routes()
}

fn short(route: &RouteInfo) -> &str {
    route
        .grpc_method
        .strip_prefix("kanat.v1.")
        .unwrap_or(&route.grpc_method)
}

#[test]
fn every_endpoint_has_a_test() {
    let served: BTreeSet<String> = routes().iter().map(|r| short(r).to_owned()).collect();
    let tested: BTreeSet<String> = TESTS
        .iter()
        .map(|(method, _)| (*method).to_owned())
        .collect();
    let differing: Vec<_> = served.symmetric_difference(&tested).collect();
    assert!(
        differing.is_empty(),
        "without a test, or a test without an endpoint: {differing:?}"
    );
    for (method, file) in TESTS {
        let text = std::fs::read_to_string(root().join("tests/it").join(file)).unwrap_or_default();
        assert!(
            text.contains("#[tokio::test]") || text.contains("on_both_databases!"),
            "{method}: tests/it/{file} has no test"
        );
        // What the file calls: the last literal segment of the path says which operation it is.
        let routes = routes();
        let route = routes.iter().find(|r| short(r) == *method).unwrap();
        let operation = route
            .path
            .split('/')
            .rev()
            .find(|s| !s.starts_with('{'))
            .unwrap();
        let helpers = [
            "flows",
            "instances",
            "messages",
            "entries",
            "lookup-tables",
            "published-apis",
        ];
        assert!(
            text.contains(operation) || helpers.contains(&operation),
            "{method}: {file} never calls {operation}"
        );
    }
}

/// Calls a route with `ids` in place of its variables, and a body that suits it.
async fn call(api: &Rest, route: &RouteInfo, ids: &BTreeMap<&str, String>) -> kanat_tests::Answer {
    let mut path = route.path.clone();
    for (name, id) in ids {
        path = path.replace(&format!("{{{name}}}"), id);
    }
    let mut request = api.request(route.method.as_str(), &path);
    if route.method != http::Method::GET && route.method != http::Method::DELETE {
        let body = BODIES
            .iter()
            .find(|(method, _)| *method == short(route))
            .map_or("{}", |(_, body)| body);
        request = request
            .header("content-type", "application/json")
            .body(body);
    }
    Rest::send(request).await
}

/// Something for every variable that a path has.
fn ids(id: &str) -> BTreeMap<&'static str, String> {
    let fixed = [
        ("key", "a"),
        ("key_id", "ck_1"),
        ("version", "1"),
        ("catalog_id", "nothing"),
        ("slug", "nothing"),
    ];
    fixed
        .into_iter()
        .chain([("id", id)])
        .map(|(name, id)| (name, id.to_owned()))
        .collect()
}

#[tokio::test]
async fn every_endpoint_asks_for_a_credential() {
    let app = TestApp::start().await;
    let unknown_key = "kanat_ak_nobody_ever_made_this_key";
    for route in routes().iter().filter(|route| !route.public) {
        for api in [
            app.api.without_key(),
            app.api.with_key(unknown_key),
            app.api.with_key(""),
        ] {
            let answer = call(&api, route, &ids("x")).await;
            assert_eq!(
                answer.status, 401,
                "{} {}: {}",
                route.method, route.path, answer.text
            );
            assert_eq!(answer.header("www-authenticate"), "Bearer");
            answer.expect_error(401, "UNAUTHENTICATED");
        }
    }
}

#[tokio::test]
async fn an_unknown_id_does_not_exist() {
    let app = TestApp::start().await;
    for route in routes().iter().filter(|route| route.path.contains('{')) {
        let answer = call(&app.api, route, &ids("nobody_1")).await;
        assert_eq!(
            answer.status, 404,
            "{} {}: {}",
            route.method, route.path, answer.text
        );
        answer.expect_error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn an_unknown_path_is_404_and_another_method_405() {
    let app = TestApp::start().await;
    app.api
        .get("/api/v1/nothing")
        .await
        .expect_error(404, "NOT_FOUND");
    let answer = app.api.delete("/api/v1/flows").await;
    assert_eq!(answer.header("allow"), "POST, GET, HEAD, OPTIONS");
    answer.expect_error(405, "UNIMPLEMENTED");
}
