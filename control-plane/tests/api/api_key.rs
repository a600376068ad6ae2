//! Keys, roles and environments.

use kanat_proto::v1::api_key_service_client::ApiKeyServiceClient;
use kanat_proto::v1::lookup_table_service_client::LookupTableServiceClient;
use kanat_proto::v1::{
    ApiKey, CreateApiKeyRequest, CreateLookupTableRequest, DeleteApiKeyRequest, ListApiKeysRequest,
    ListLookupTablesRequest,
};
use tonic::Code;

use crate::plane::{AuthorizedService, TestPlane, faults};

fn new_key(name: &str) -> CreateApiKeyRequest {
    CreateApiKeyRequest {
        name: name.to_owned(),
        ..CreateApiKeyRequest::default()
    }
}

async fn make(plane: &TestPlane, request: CreateApiKeyRequest) -> ApiKey {
    plane
        .keys()
        .create_api_key(request)
        .await
        .unwrap()
        .into_inner()
}

async fn list_as(called: AuthorizedService) -> Result<(), tonic::Status> {
    LookupTableServiceClient::new(called)
        .list_lookup_tables(ListLookupTablesRequest::default())
        .await
        .map(|_| ())
}

async fn create_as(called: AuthorizedService, name: &str) -> Result<String, tonic::Status> {
    let request = CreateLookupTableRequest {
        name: name.to_owned(),
        description: None,
    };
    let made = LookupTableServiceClient::new(called)
        .create_lookup_table(request)
        .await?;
    Ok(made.into_inner().id)
}

#[tokio::test]
async fn a_call_without_a_known_key_is_refused() {
    let plane = TestPlane::start().await;
    for called in [
        plane.without_key(),
        plane.with_key("kanat_ak_unknown"),
        plane.with_key("x"),
        plane.with_key(""),
    ] {
        assert_eq!(
            list_as(called).await.unwrap_err().code(),
            Code::Unauthenticated
        );
    }
    list_as(plane.as_owner()).await.unwrap();
}

#[tokio::test]
async fn a_role_limits_what_its_key_may_do_and_give() {
    let plane = TestPlane::start().await;
    let with_role = |role: &str| CreateApiKeyRequest {
        role: Some(role.to_owned()),
        ..new_key(role)
    };
    let viewer = make(&plane, with_role("viewer")).await.key.unwrap();
    list_as(plane.with_key(&viewer)).await.unwrap();
    assert_eq!(
        create_as(plane.with_key(&viewer), "a")
            .await
            .unwrap_err()
            .code(),
        Code::PermissionDenied
    );

    let admin = make(&plane, with_role("admin")).await.key.unwrap();
    let mut keys = ApiKeyServiceClient::new(plane.with_key(&admin));
    assert_eq!(
        keys.create_api_key(with_role("owner"))
            .await
            .unwrap_err()
            .code(),
        Code::PermissionDenied
    );
    keys.create_api_key(with_role("editor")).await.unwrap();
    let owner = keys
        .list_api_keys(ListApiKeysRequest::default())
        .await
        .unwrap()
        .into_inner()
        .data
        .pop()
        .unwrap();
    let refused = keys
        .delete_api_key(DeleteApiKeyRequest {
            id: owner.id.clone(),
        })
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let last = plane
        .keys()
        .delete_api_key(DeleteApiKeyRequest { id: owner.id })
        .await
        .unwrap_err();
    assert_eq!(last.code(), Code::FailedPrecondition);

    let editor = make(&plane, with_role("editor")).await.key.unwrap();
    let refused = ApiKeyServiceClient::new(plane.with_key(&editor))
        .create_api_key(new_key("x"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn a_key_bound_to_an_environment_reaches_no_other() {
    let plane = TestPlane::start().await;
    let (names, default) = plane.environments().await;
    assert_eq!(names, ["development", "staging", "production"]);
    let bound = make(
        &plane,
        CreateApiKeyRequest {
            environment_id: Some("staging".to_owned()),
            ..new_key("s")
        },
    )
    .await;
    let text = bound.key.unwrap();
    let id = create_as(plane.with_key(&text), "countries").await.unwrap();
    create_as(plane.in_environment(&text, "staging"), "others")
        .await
        .unwrap();
    for other in ["production", default.as_str(), "nowhere"] {
        let refused = create_as(plane.in_environment(&text, other), "x")
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{other}");
    }
    let get = |called| async {
        let request = kanat_proto::v1::GetLookupTableRequest {
            id: id.clone(),
            search: None,
            limit: None,
        };
        LookupTableServiceClient::new(called)
            .get_lookup_table(request)
            .await
            .map(|_| ())
    };
    assert_eq!(
        get(plane.as_owner()).await.unwrap_err().code(),
        Code::NotFound
    );
    get(plane.in_environment(crate::plane::OWNER, "staging"))
        .await
        .unwrap();
    let unknown = list_as(plane.in_environment(crate::plane::OWNER, "nowhere"))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn a_wrong_request_for_a_key_names_its_field() {
    let plane = TestPlane::start().await;
    let cases = [
        (new_key(" "), "name"),
        (
            CreateApiKeyRequest {
                role: Some("king".to_owned()),
                ..new_key("a")
            },
            "role",
        ),
        (
            CreateApiKeyRequest {
                environment_id: Some("moon".to_owned()),
                ..new_key("a")
            },
            "environmentId",
        ),
        (
            CreateApiKeyRequest {
                expires_at: Some("tomorrow".to_owned()),
                ..new_key("a")
            },
            "expiresAt",
        ),
        (
            CreateApiKeyRequest {
                expires_at: Some("2020-01-01T00:00:00Z".to_owned()),
                ..new_key("a")
            },
            "expiresAt",
        ),
    ];
    for (request, field) in cases {
        let refused = plane.keys().create_api_key(request).await.unwrap_err();
        assert_eq!(
            faults(&refused),
            (Code::InvalidArgument, vec![field.to_owned()])
        );
    }
}

#[tokio::test]
async fn a_key_makes_none_that_lasts_longer_than_itself() {
    let plane = TestPlane::start().await;
    let end = "2099-01-01T00:00:00.000Z";
    let until = |name: &str, at: Option<&str>| CreateApiKeyRequest {
        role: Some("admin".to_owned()),
        expires_at: at.map(str::to_owned),
        ..new_key(name)
    };
    let admin = make(&plane, until("admin", Some(end))).await.key.unwrap();
    let mut keys = ApiKeyServiceClient::new(plane.with_key(&admin));
    let longer = keys
        .create_api_key(until("longer", Some("2099-01-01T00:00:01Z")))
        .await
        .unwrap_err();
    assert_eq!(longer.code(), Code::PermissionDenied, "{longer}");
    let shorter = keys
        .create_api_key(until("shorter", Some("2098-01-01T00:00:00Z")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        shorter.expires_at.as_deref(),
        Some("2098-01-01T00:00:00.000Z")
    );
    let open = keys
        .create_api_key(until("open", None))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(open.expires_at.as_deref(), Some(end));
    assert_eq!(make(&plane, new_key("endless")).await.expires_at, None);
}
